"""NORB: pairs of grey images as binary matrices, in parts whose names end with `-dat.mat` and `-cat.mat`.

A matrix: a number that tells the type, the number of sizes, the sizes (at least three are written), the numbers;
least significant byte first. Small NORB has 96x96 pixels and five classes, the cluttered one 108x108 and six.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from timetrial.data.readers.files import bounded, content, every
from timetrial.data.samples import Array, DataError, Samples

_TYPES = {0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8", 0x1E3D4C54: "<i4", 0x1E3D4C55: "u1", 0x1E3D4C56: "<i2"}
_MOST_SIZES = 8
NAMES = ("animal", "human", "airplane", "truck", "car", "nothing")


def read(folder: Path) -> Samples:
    parts = [_joined(folder, part, what) for part in ("training", "testing") for what in ("dat", "cat")]
    pairs = [np.ascontiguousarray(part.transpose(0, 2, 3, 1)) if place % 2 == 0 else part.astype(np.int64)
             for place, part in enumerate(parts)]  # fmt: skip
    return Samples(*pairs, class_names=NAMES[: int(pairs[1].max(initial=0)) + 1])


def _joined(folder: Path, part: str, what: str) -> Array:
    paths = every(folder, f"*norb*{part}*-{what}.mat")
    if not paths:
        raise DataError(f"{folder}: has no file *norb*-{part}-{what}.mat")
    pieces = [matrix(path) for path in paths]
    sizes = 4 if what == "dat" else 1
    for path, piece in zip(paths, pieces, strict=True):
        if piece.ndim != sizes or piece.shape[1:] != pieces[0].shape[1:]:
            raise DataError(f"{path}: is a matrix of {list(piece.shape)}, not one size in {sizes} directions")
    return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]


def matrix(path: Path) -> Array:
    data = content(path)
    head = np.frombuffer(data[: 4 * (2 + _MOST_SIZES)].ljust(4 * (2 + _MOST_SIZES), b"\0"), "<i4")
    if int(head[0]) not in _TYPES:
        raise DataError(f"{path}: does not begin as a binary matrix does ({data[:4].hex(' ') or 'it is empty'})")
    count = int(head[1])
    if not 1 <= count <= _MOST_SIZES:
        raise DataError(f"{path}: says that it has {count} sizes")
    shape = tuple(map(int, head[2 : 2 + count]))
    kind, start = np.dtype(_TYPES[int(head[0])]), 4 * (2 + max(3, count))
    if min(shape) < 0:
        raise DataError(f"{path}: has a negative size in {list(shape)}")
    expected = bounded(path, start + math.prod(shape) * kind.itemsize)
    if len(data) != expected:
        raise DataError(f"{path}: has {len(data):,} bytes, a matrix of {list(shape)} has {expected:,}; fetch it again")
    return np.frombuffer(data, kind, math.prod(shape), start).reshape(shape)
