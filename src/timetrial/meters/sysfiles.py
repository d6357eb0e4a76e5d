"""Small files of /proc and /sys below a root: read as text, or None."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class SysFiles:
    root: Path

    def text(self, path: str) -> str | None:
        """A file's text without surrounding space; None where it is missing, empty or may not be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip(" \t\n\0") or None
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def lines(self, path: str) -> list[str]:
        return (self.text(path) or "").splitlines()

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def upwards(self, base: str, path: str) -> list[str]:
        """A control group's folder and all above it up to `base`: a limit on any of them holds. In a container the
        path may be the host's and not be there; what is above it still is."""
        inner = PurePosixPath(path.lstrip("/"))
        return [f"{base}/{part}" for part in (inner, *inner.parents) if self.exists(f"{base}/{part}")]

    def texts(self, folders: Iterable[str], name: str) -> list[str]:
        found = (self.text(f"{folder}/{name}") for folder in folders)
        return [text for text in found if text is not None]


def parse_list(text: str | None) -> tuple[int, ...] | None:
    """The kernel's way to write core numbers: `0-3,8` is (0, 1, 2, 3, 8)."""
    if not text:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return None
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(sorted(set(numbers)))
