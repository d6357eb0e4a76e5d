"""CIFAR-10: the binary version of its authors, or the same images as the rows of PNG files.

Binary: a label, then 1,024 red, 1,024 green and 1,024 blue bytes for each image. PNG: each row of pixels is an image.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from timetrial.data.readers.files import content, every, one
from timetrial.data.readers.pictures import pixels
from timetrial.data.samples import Array, DataError, Samples

SIDE, CLASSES = 32, 10
_RECORD = 1 + 3 * SIDE * SIDE
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def read(folder: Path) -> Samples:
    both = _binary(folder) if every(folder, "data_batch_*.bin") else _sprites(folder)
    return Samples(*both, class_names=NAMES)


def _binary(folder: Path) -> tuple[Array, Array, Array, Array]:
    train = [_records(path) for path in _in_order(every(folder, "data_batch_*.bin"))]
    x, y = (np.concatenate(part) for part in zip(*train, strict=True))
    return x, y, *_records(one(folder, "test_batch.bin"))


def _records(path: Path) -> tuple[Array, Array]:
    data = content(path)
    if not data or len(data) % _RECORD:
        raise DataError(f"{path}: has {len(data):,} bytes, which is no multiple of {_RECORD}; it is cut off")
    table = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    planes = table[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), table[:, 0]


def _sprites(folder: Path) -> tuple[Array, Array, Array, Array]:
    paths = _in_order(every(folder, "data_batch_*.png"))
    if not paths:
        raise DataError(f"{folder}: has neither data_batch_1.bin (with the others) nor data_batch_1.png")
    x = np.concatenate([_images(path) for path in paths])
    y = _labels(one(folder, "train_lables.json"), len(x))  # spelt so in the package
    test = _images(one(folder, "test_batch.png"))
    return x, y, test, _labels(one(folder, "test_lables.json"), len(test))


def _in_order(paths: list[Path]) -> list[Path]:
    numbers = {int(re.findall(r"\d+", path.name)[0]): path for path in paths if re.search(r"\d", path.name)}
    for place, number in enumerate(sorted(numbers), 1):
        if place != number:
            raise DataError(f"{numbers[number].parent}: data_batch_{place} is missing")
    return [numbers[number] for number in sorted(numbers)]


def _images(path: Path) -> Array:
    rows = pixels(path, formats=("PNG",), mode="RGB")
    if rows.shape[1] != SIDE * SIDE:
        raise DataError(f"{path}: is {rows.shape[1]} pixels wide; with one image in a row it would be {SIDE * SIDE}")
    return rows.reshape(-1, SIDE, SIDE, 3)


def _labels(path: Path, count: int) -> Array:
    try:
        labels = json.loads(content(path))
        found = np.array(labels, np.int64)
    except (ValueError, TypeError, OverflowError):
        raise DataError(f"{path}: is not a list of whole numbers") from None
    if found.shape != (count,):
        raise DataError(f"{path}: has labels of shape {list(found.shape)} for {count:,} images")
    return found
