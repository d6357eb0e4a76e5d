"""One at a time may make or remove a folder: an engine's environment, or a dataset."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Held:
    descriptor: int
    waited: bool  # somebody else held it first, so the world may have changed meanwhile


@contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[Held]:
    """Hold the lock of a folder. The lock file lies beside it and is never removed, for removing it
    would let two processes hold a lock of the same name."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder.parent / f".{folder.name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield Held(descriptor, _wait(descriptor, folder.name, say))
    finally:
        os.close(descriptor)


def _wait(descriptor: int, name: str, say: Callable[[str], None]) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"{name}: another process is at work on it; waiting")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True
    return False
