"""IDX: the format of MNIST and its followers. Two zero bytes, the type, the number of sizes, the sizes, the numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from timetrial.data.readers.files import bounded, content, head, one
from timetrial.data.samples import Array, DataError, Samples

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_HEADER = 4 + 4 * 8


def read(folder: Path) -> Samples:
    parts = []
    for prefix in ("train", "t10k"):
        images, labels = (one(folder, *(f"{prefix}-{what}{dot}idx{n}-ubyte" for dot in "-."))
                          for what, n in (("images", 3), ("labels", 1)))  # fmt: skip
        parts += [array(images), _without_gaps(labels, array(labels))]
    return Samples(*parts)


def _without_gaps(path: Path, labels: Array) -> Array:
    """A stray label would make classes of all the numbers below it."""
    if labels.size and labels.ndim == 1 and labels.dtype == np.uint8:
        most, missing = labels.max(), np.flatnonzero(np.bincount(labels) == 0)
        if len(missing):
            raise DataError(
                f"{path}: sample {labels.argmax() + 1:,} has label {most}, the largest, but none has label "
                f"{missing[0]}; classes are numbered from 0 without a gap"
            )
    return labels


def array(path: Path) -> Array:
    """One file. It must hold exactly the numbers that its header announces."""
    kind, sizes = _header(path, head(path, _HEADER))
    start = 4 + 4 * len(sizes)
    count = math.prod(sizes)
    expected = bounded(path, start + count * kind.itemsize)
    data = content(path, expected)
    if len(data) < expected:
        raise DataError(f"{path}: ends after {len(data):,} of {expected:,} bytes; it is cut off, fetch it again")
    numbers = np.frombuffer(data, kind, count, start).reshape(sizes)
    return numbers.astype(kind.newbyteorder("="), copy=False)


def _header(path: Path, start: bytes) -> tuple[np.dtype, tuple[int, ...]]:
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or not 1 <= start[3] <= 8:
        raise DataError(f"{path}: does not begin as an IDX file does ({start[:4].hex(' ') or 'it is empty'})")
    if len(start) < 4 + 4 * start[3]:
        raise DataError(f"{path}: ends inside its header; it is cut off, fetch it again")
    return np.dtype(_TYPES[start[2]]), tuple(map(int, np.frombuffer(start, ">u4", start[3], 4)))
