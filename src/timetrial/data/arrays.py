"""Arrays and bytes into files, flushed. What the disk refuses is told with the file's name and the reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from timetrial.data.samples import Array


@dataclass(frozen=True)
class _Plain:
    """A file that NumPy does not know for one: into those it writes past Python, and cannot say what went wrong."""

    write: Callable[[bytes], object]


def write_array(path: Path, array: Array) -> None:
    with _flushed(path) as file:
        np.save(_Plain(file.write), np.ascontiguousarray(array), allow_pickle=False)


def write_bytes(path: Path, content: bytes) -> None:
    with _flushed(path) as file:
        file.write(content)


@contextmanager
def _flushed(path: Path) -> Iterator[BinaryIO]:
    try:
        with open(path, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
