"""IMDB reviews: the folders of the original, or a package's `reviews.json`, a list sorted by praise and blame.

The list is in the order of the original's parts: negative of the test, negative for training, then the positive.
Whichever it is read from, the reviews come out in the order of their SHA-256: the same, and with the classes mixed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from timetrial.data.readers.files import content, every
from timetrial.data.samples import Array, DataError, Samples, objects

NAMES = ("negative", "positive")
_LIMIT = 2**29
_Reviews = list[tuple[str, int]]


def read(folder: Path) -> Samples:
    listed = every(folder, "reviews.json")
    train, test = _parted(listed[0]) if listed else (_folders(folder, part) for part in ("train", "test"))
    return Samples(*_mixed(train), *_mixed(test), class_names=NAMES)


def _parted(path: Path) -> tuple[_Reviews, _Reviews]:
    """The official split put back, which halves each class."""
    reviews = _loaded(path)
    labels = [label for _, label in reviews]
    quarter, rest = divmod(len(reviews), 4)
    if rest or labels != [0] * 2 * quarter + [1] * 2 * quarter:
        raise DataError(
            f"{path}: should be half negative and then half positive; the official split is not to be found"
        )
    pieces = [reviews[start * quarter : (start + 1) * quarter] for start in range(4)]
    return pieces[1] + pieces[3], pieces[0] + pieces[2]


def _loaded(path: Path) -> _Reviews:
    try:
        found = json.loads(content(path, _LIMIT))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error})") from None
    if not isinstance(found, list):
        raise DataError(f"{path}: is not a list of reviews")
    for place, item in enumerate(found):
        if not (isinstance(item, dict) and isinstance(item.get("t"), str) and item.get("s") in (0, 1)):
            raise DataError(f'{path}: item {place + 1:,} is not {{"t": text, "s": 0 or 1}}')
    return [(item["t"], int(item["s"])) for item in found]


def _folders(folder: Path, part: str) -> _Reviews:
    found: _Reviews = []
    for label, name in enumerate(("neg", "pos")):
        paths = [path for path in sorted(folder.glob(f"**/{part}/{name}/*.txt")) if path.is_file()]
        if not paths:
            raise DataError(f"{folder}: has neither reviews.json nor files {part}/{name}/*.txt")
        found += [(_text(path), label) for path in paths]
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not a text in UTF-8") from None


def _mixed(reviews: _Reviews) -> tuple[Array, Array]:
    ordered = sorted(reviews, key=lambda review: (hashlib.sha256(review[0].encode()).digest(), review[1]))
    return objects([text for text, _ in ordered]), np.array([label for _, label in ordered])
