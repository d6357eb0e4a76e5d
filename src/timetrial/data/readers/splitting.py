"""Parts samples that come without a split: always the same way, and of each class its share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from timetrial.data.samples import Array, DataError, Samples


def split(place: Path, x: Array, y: Array, test: float, names: tuple[str, ...] = ()) -> Samples:
    train_places, test_places = places(place, y, test, names)
    return Samples(x[train_places], y[train_places], x[test_places], y[test_places], class_names=names)


def places(place: Path, y: Array, test: float, names: tuple[str, ...] = ()) -> tuple[Array, Array]:
    """Which samples are for training and which for the test, each in the order in which they came.

    `place` and the classes' `names`, where they are not their numbers, are for what is wrong.
    """
    if not 0 < test < 1:
        raise DataError(f"a share of {test:g} for the test is not between 0 and 1")
    rng = np.random.default_rng(0)
    classes = np.unique(y) if np.issubdtype(y.dtype, np.integer) else [None]
    chosen = np.zeros(len(y), bool)
    for label in classes:
        members = np.arange(len(y)) if label is None else np.flatnonzero(y == label)
        count = max(1, round(test * len(members)))
        if count >= len(members):
            what = "it" if label is None else f"class {names[label] if names else label}"
            some = f"{len(members)} sample{'s'[: len(members) > 1]}"
            raise DataError(f"{place}: {what} has {some}, too few for a training and a test part")
        chosen[rng.permutation(members)[:count]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
