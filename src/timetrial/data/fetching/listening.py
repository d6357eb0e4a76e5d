"""What the one who waits is told."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    def say(self, line: str) -> None: ...

    def moved(self, what: str, done: int, total: int) -> None:
        """So many bytes of a file are here; `total` is 0 where it is not known."""


class FetchFailed(Exception):
    """A source cannot be had now. One line; the next source is tried."""


class Quiet:
    """A listener that keeps everything to itself, or hands lines on."""

    def say(self, line: str) -> None: ...

    def moved(self, what: str, done: int, total: int) -> None: ...
