"""Running an engine's Python: with a clean environment, from a folder that shadows nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
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
_ASK_VERSION = "import json, sys; print(json.dumps(list(sys.version_info[:3])))"


class NoPython(ValueError):
    """The chosen interpreter is not there, does not run, or is too old."""


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


def resolve(python: str | Path, oldest: tuple[int, int], purpose: str) -> tuple[Path, str]:
    """The interpreter meant by a path or by a command's name, and its version; refused where it is too old."""
    found = shutil.which(str(python))
    if found is None:
        raise NoPython(f"there is no Python '{python}'; give the path of an interpreter with --python")
    path = Path(found).absolute()
    version = _version(path)
    if version[:2] < oldest:
        wanted = ".".join(map(str, oldest))
        raise NoPython(
            f"{path} is Python {_dotted(version)}, but {purpose} needs Python {wanted} or newer; "
            "give another one with --python"
        )
    return path, _dotted(version)


def _version(path: Path) -> tuple[int, ...]:
    try:
        done = run_script(path, _ASK_VERSION, env=clean_env(), isolated=False, timeout=30)
        return tuple(int(part) for part in json.loads(done.stdout))
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError):
        raise NoPython(f"{path} does not run as a Python interpreter; give another one with --python") from None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
