"""Where an older Python may be: with pyenv, uv, conda, on the PATH, in the system's usual places."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from timetrial.engines.interpreters import NoPython, Range, resolve

_SYSTEM = ("/usr/bin", "/usr/local/bin", "/opt/python*/bin", "/opt/local/bin")
_CONDAS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", ".conda")


def search(wanted: Range, purpose: str) -> tuple[Path, str]:
    """The first interpreter in range that runs, and its version."""
    refused = []
    for path in _candidates(wanted.word):
        try:
            return resolve(path, wanted, purpose)
        except NoPython:
            refused.append(str(path))
    looked = (
        f"pyenv ({_pyenv()}/versions), uv ({_uv()}), conda ({', '.join(map(str, _condas()))}), "
        f"python{wanted.word} on PATH and in {', '.join(_SYSTEM)}"
    )
    unfit = f" ({', '.join(refused)} {'is' if len(refused) == 1 else 'are'} there, but unfit)" if refused else ""
    raise NoPython(
        f"{purpose} needs CPython {wanted.word}, and there is none in {looked}{unfit}; get one with "
        f"`pyenv install {wanted.word}` or `conda create -n python{wanted.word} python={wanted.word}` "
        "(uv has none so old), or give the path of an interpreter with --python"
    )


def _candidates(word: str) -> Iterator[Path]:
    seen = set()
    for path in _places(word):
        if path.is_file() and path not in seen:
            seen.add(path)
            yield path


def _places(word: str) -> Iterator[Path]:
    yield from _newest_first(_pyenv() / "versions", f"{word}*/bin/python")
    yield from _newest_first(_uv(), f"cpython-{word}*/bin/python{word}")
    for prefix in _conda_environments():
        yield prefix / "bin" / f"python{word}"
    if on_path := shutil.which(f"python{word}"):
        yield Path(on_path)
    for folder in _SYSTEM:
        yield from _newest_first(Path("/"), f"{folder.lstrip('/')}/python{word}")


def _newest_first(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern), key=lambda path: [int(n) if n.isdigit() else 0 for n in _parts(path)])[::-1]


def _parts(path: Path) -> list[str]:
    return path.parts[-3].replace("-", ".").split(".")


def _pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")


def _uv() -> Path:
    chosen = os.environ.get("UV_PYTHON_INSTALL_DIR")
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(chosen or Path(data) / "uv" / "python")


def _condas() -> list[Path]:
    """Where conda itself may be."""
    roots = [Path.home() / name for name in _CONDAS] + [Path("/opt/conda"), Path("/opt/miniconda3")]
    command = os.environ.get("CONDA_EXE")
    return ([Path(command).parent.parent] if command else []) + roots


def _conda_environments() -> Iterator[Path]:
    """Environments that conda has noted, then those of its folders."""
    try:
        noted = (Path.home() / ".conda" / "environments.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        noted = []
    yield from (Path(line.strip()) for line in noted if line.strip())
    for root in _condas():
        yield root
        yield from sorted((root / "envs").glob("*"))
