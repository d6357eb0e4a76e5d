"""From the output of `venv` and pip: what went wrong, in one sentence, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Old versions of pip also name the file: (from -r FILE (line 1)).
_NO_VERSION = re.compile(
    r"satisfies the requirement (\S+)(?: \(from (?!versions:)[^\n]*?\))? \(from versions: ([^)]*)\)"
)
_OTHER_PYTHON = re.compile(r"([^\s;]+) Requires-Python ([^;\n]+)")  # pip's list of versions it passed over
_NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|Name or service not known|Temporary failure in name resolution"
    r"|ConnectTimeout|Read timed out|ReadTimeoutError|Network is unreachable|Connection refused|ProxyError"
)
_SHOWN_VERSIONS = 12
_NO_LIBRARY = re.compile(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file")


@dataclass(frozen=True)
class Diagnosis:
    cause: str
    remedy: str


def diagnose(output: str, megabytes: int) -> Diagnosis:
    """Why an environment could not be made. Causes are tried from the most telling to the least."""
    for sign in (_space, _permission, _no_venv, _certificate, _network, _no_match, _conflict):
        found = sign(output, megabytes)
        if found is not None:
            return found
    return Diagnosis("pip could not install the packages", "read the log, then try again")


def _space(output: str, megabytes: int) -> Diagnosis | None:
    if "No space left on device" not in output and "Disk quota exceeded" not in output:
        return None
    remedy = f"free about {2 * megabytes} MB, or set TIMETRIAL_HOME (and TMPDIR, where pip unpacks) to a larger disk"
    return Diagnosis("the disk is full", remedy)


def _permission(output: str, megabytes: int) -> Diagnosis | None:
    if not re.search(r"Permission denied|PermissionError|Read-only file system", output):
        return None
    return Diagnosis("a file could not be written", "set TIMETRIAL_HOME to a folder that you may write to")


def _no_venv(output: str, megabytes: int) -> Diagnosis | None:
    if not re.search(r"No module named '?venv'?|ensurepip is not available|No module named '?ensurepip'?", output):
        return None
    remedy = "install the system's package python3-venv, or give another interpreter with --python"
    return Diagnosis("this Python cannot make virtual environments", remedy)


def _certificate(output: str, megabytes: int) -> Diagnosis | None:
    if not re.search(r"CERTIFICATE_VERIFY_FAILED|SSLError", output):
        return None
    return Diagnosis("the package index's certificate was not accepted", "set PIP_CERT to your network's certificates")


def _network(output: str, megabytes: int) -> Diagnosis | None:
    if not _NO_NETWORK.search(output):
        return None
    remedy = "check the network or the proxy, or point pip at local wheels with PIP_FIND_LINKS and PIP_NO_INDEX=1"
    return Diagnosis("the package index could not be reached", remedy)


def _no_match(output: str, megabytes: int) -> Diagnosis | None:
    found = _NO_VERSION.search(output)
    if found is None:
        return None
    requirement, offered = found.group(1), [word for word in found.group(2).split(", ") if word not in ("none", "")]
    other = _python_wanted(requirement, output)
    if other is not None:
        return Diagnosis(f"{requirement} needs Python {other}", "give such an interpreter with --python")
    if not offered:
        return Diagnosis(
            f"pip finds no {requirement} for this Python and machine",
            "check pip's index settings (`pip config list`), or give another interpreter with --python",
        )
    shown, rest = _near(requirement.partition("==")[2], offered)
    return Diagnosis(f"pip finds no {requirement}; there are {', '.join(shown)}{rest}", "ask for one of these versions")


def _near(version: str, offered: list[str]) -> tuple[list[str], str]:
    """Versions to ask for instead, newest first, and how many others there are: about the asked one, and of its major
    version where there are such. `offered` is oldest first."""
    alike = [one for one in offered if _numbers(one)[:1] == _numbers(version)[:1]] or offered
    place = sum(_numbers(one) < _numbers(version) for one in alike)
    end = min(len(alike), max(place + _SHOWN_VERSIONS // 2, _SHOWN_VERSIONS))
    shown = alike[max(0, end - _SHOWN_VERSIONS) : end]
    left = len(offered) - len(shown)
    kind = "older" if shown[-1] == offered[-1] else "others"
    return shown[::-1], f" and {left} {kind}" if left else ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _python_wanted(requirement: str, output: str) -> str | None:
    """The Pythons that the asked version wants, where pip passed it over for that alone."""
    version = requirement.partition("==")[2]
    return next((wanted.strip() for passed, wanted in _OTHER_PYTHON.findall(output) if passed == version), None)


def _conflict(output: str, megabytes: int) -> Diagnosis | None:
    if "ResolutionImpossible" not in output and "conflicting dependencies" not in output:
        return None
    return Diagnosis("no set of packages satisfies this version", "ask for a version nearer to the shipped one")


def treat(output: str, engine: str) -> str | None:
    """From the output of a check that failed: what the system lacks and how to get it; None where that is not told."""
    lacking = _lacking(output)
    return f"{lacking}, then timetrial engines add {engine}" if lacking else None


def _lacking(output: str) -> str | None:
    if "no C++ compiler" in output:
        return "install g++ (Debian: apt-get install g++)"
    if "Python.h: No such file" in output:
        return "install the headers of the Python it was made from (Debian: the package python3-dev)"
    library = _NO_LIBRARY.search(output)
    if library is None:
        return None
    if library.group(1).startswith("libmpi"):
        return "install Open MPI 3 or 4 (Debian: apt-get install libopenmpi3)"
    return f"install the system's package that brings {library.group(1)}"
