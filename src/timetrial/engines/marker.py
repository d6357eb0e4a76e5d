"""The file `environment.json`: written last, so that an environment that has it is whole.

A virtual environment cannot be moved and is tied to the Python it was made from, so its place is written in it too.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

FILE = "environment.json"

State = Literal["absent", "half made", "moved", "without python", "older pins", "good"]
USABLE: tuple[State, ...] = ("older pins", "good")


@dataclass(frozen=True)
class Marker:
    family: str
    engine: str  # for which it was made and checked
    requested: str | None  # version, where one was asked for
    python: str
    requirements_sha256: str
    versions: dict[str, str]  # every distribution in it
    path: str
    made: str  # UTC, ISO 8601
    broken: dict[str, list[str]] = field(default_factory=dict)  # engines it cannot serve: [problem, remedy]


def interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"


def write(folder: Path, marker: Marker) -> None:
    """Write the marker so that it is there whole or not at all, whatever happens meanwhile."""
    new = folder / f".{FILE}.new"
    with new.open("w", encoding="utf-8") as stream:
        json.dump(asdict(marker), stream, indent=2, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(folder / FILE)


def read(folder: Path) -> Marker | None:
    """The marker, or None where there is none that can be understood."""
    try:
        return Marker(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Condition:
    """In what state an environment's folder is; `problem` says it in words, and the remedy is always to make it."""

    folder: Path
    state: State
    marker: Marker | None
    problem: str | None

    @property
    def usable(self) -> bool:
        return self.state in USABLE


def condition(folder: Path, sha256: str) -> Condition:
    """Look at a folder that should hold an environment made from the requirements with this hash."""
    marker = read(folder)
    if not os.path.lexists(folder):
        return Condition(folder, "absent", None, None)
    if marker is None:
        return Condition(folder, "half made", None, f"the environment in {folder} is half made")
    if Path(marker.path).resolve() != folder.resolve():
        problem = f"the environment in {folder} was moved; it was made in {marker.path}"
        return Condition(folder, "moved", marker, problem)
    if not interpreter(folder).exists():
        problem = f"the environment in {folder} has lost the Python {marker.python} it was made from"
        return Condition(folder, "without python", marker, problem)
    if marker.requirements_sha256 != sha256:
        problem = f"the environment in {folder} was made from older pins"
        return Condition(folder, "older pins", marker, problem)
    return Condition(folder, "good", marker, None)
