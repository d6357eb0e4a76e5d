"""Shared libraries of the system under the names that old wheels ask for: links in the environment's own folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from timetrial.engines.registry import LINKS

_USUAL = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
_OPEN_MPI = "/usr/lib64/openmpi/lib"  # where Fedora and its kin keep it apart


def link(libraries: Mapping[str, str], folder: Path) -> bool:
    """Make the links in an environment's folder, as far as the system has the libraries. Whether anything changed."""
    changed = False
    for wanted, serving in libraries.items():
        place, found = folder / LINKS / wanted, find(serving)
        if found is None or (place.exists() and place.resolve() == found.resolve()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(found)
        changed = True
    return changed


def find(name: str) -> Path | None:
    """A shared library by its file name: where the loader's cache has it, or in the usual folders."""
    folders = (*os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep), *_USUAL, _OPEN_MPI)
    named = (Path(folder) / name for folder in folders if folder)
    return _cached(name) or next((path for path in named if path.is_file()), None)


def _cached(name: str) -> Path | None:
    try:
        done = subprocess.run(
            [_ldconfig(), "-p"], capture_output=True, text=True, errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (line.strip() for line in done.stdout.splitlines())
    paths = (Path(line.rpartition(" => ")[2]) for line in lines if line.startswith(f"{name} ") and "x86-64" in line)
    return next((path for path in paths if path.is_file()), None)


def _ldconfig() -> str:
    """It is often off a user's PATH."""
    return next((place for place in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if Path(place).exists()), "ldconfig")
