"""A listener that remembers, and what is left in a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Told:
    lines: list[str] = field(default_factory=list)
    last: tuple[str, int, int] | None = None

    def say(self, line: str) -> None:
        self.lines.append(line)

    def moved(self, what: str, done: int, total: int) -> None:
        self.last = (what, done, total)


def left(folder: Path) -> list[str]:
    """What is there besides locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock")) if folder.exists() else []
