"""Running an engine's Python: with a clean environment, from a folder that shadows nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What would lead another interpreter to the wrong packages, or pip to the wrong place.
_MISLEADING = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "__PYVENV_LAUNCHER__",
)
_ASK_VERSION = (
    "import json, platform, sys; print(json.dumps([platform.python_implementation()] + list(sys.version_info[:3])))"
)


class NoPython(ValueError):
    """The chosen interpreter is not there, does not run, or is too old or too new."""


@dataclass(frozen=True)
class Range:
    """The Pythons that packages accept; without a newest one, all that are not too old."""

    oldest: tuple[int, int]
    newest: tuple[int, int] | None = None

    def holds(self, version: tuple[int, ...]) -> bool:
        return self.oldest <= version[:2] and (self.newest is None or version[:2] <= self.newest)

    @property
    def word(self) -> str:
        """`3.6`, or the oldest where there is a choice."""
        return _dotted(self.oldest)

    def __str__(self) -> str:
        if self.newest is None:
            return f"Python {self.word} or newer"
        return (
            f"CPython {self.word}" if self.newest == self.oldest else f"CPython {self.word} to {_dotted(self.newest)}"
        )


def clean_env(extra: Mapping[str, str] | None = None, keep_python: bool = False) -> dict[str, str]:
    """This process's environment without what misleads a foreign interpreter; `keep_python` for this very one."""
    if keep_python:
        return {**os.environ, **(extra or {})}
    kept = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    return {**kept, "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1", **(extra or {})}


def run_script(
    python: Path, script: str, *, env: Mapping[str, str], isolated: bool, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a script given as text. `isolated` keeps everything out that does not belong to the interpreter itself."""
    flags = ["-I"] if isolated else []
    with tempfile.TemporaryDirectory(prefix="timetrial-") as empty:
        return subprocess.run(
            [str(python), *flags, "-c", script],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=dict(env),
            cwd=empty,
            timeout=timeout,
            check=False,
        )


def resolve(python: str | Path, wanted: Range, purpose: str) -> tuple[Path, str]:
    """The interpreter meant by a path or by a command's name, and its version; refused where it is out of range."""
    found = shutil.which(str(python))
    if found is None:
        raise NoPython(f"there is no Python '{python}'; give the path of an interpreter with --python")
    path = Path(found).absolute()
    kind, version = _version(path)
    # The wheels of old frameworks are CPython's; today's are left to pip, which says what it finds.
    if not wanted.holds(version) or (wanted.newest is not None and kind != "CPython"):
        title = "Python" if kind == "CPython" else kind
        raise NoPython(
            f"{path} is {title} {_dotted(version)}, but {purpose} needs {wanted}; give another one with --python"
        )
    return path, _dotted(version)


def _version(path: Path) -> tuple[str, tuple[int, ...]]:
    try:
        done = run_script(path, _ASK_VERSION, env=clean_env(), isolated=False, timeout=30)
        kind, *version = json.loads(done.stdout)
        return str(kind), tuple(int(part) for part in version)
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError):
        raise NoPython(f"{path} does not run as a Python interpreter; give another one with --python") from None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
