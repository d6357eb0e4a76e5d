"""Reads a dataset from the shelf for a network: all of it, a view that leaves columns out, or windows of a text."""

from __future__ import annotations

import numpy as np

from timetrial.data.registry import Dataset, absent
from timetrial.data.samples import Array, DataError, Samples, Wanted
from timetrial.data.shelf import load, look_up


def read(dataset: Dataset, wanted: Wanted) -> Samples:
    samples = raw(dataset)
    if samples.x_train.ndim == 1 and samples.x_train.dtype == np.uint8:
        return windows(dataset, samples, wanted)
    return samples


def raw(dataset: Dataset) -> Samples:
    """As it is kept, or how to get it."""
    kept = look_up(dataset.shelf) if dataset.shelf else None
    if kept is None:
        raise DataError(absent(dataset))
    samples = load(kept)
    if not dataset.dropped:
        return samples
    x_train, x_test = (np.delete(x, dataset.dropped, axis=1) for x in (samples.x_train, samples.x_test))
    return Samples(x_train, samples.y_train, x_test, samples.y_test, class_names=samples.class_names)


def windows(dataset: Dataset, samples: Samples, wanted: Wanted) -> Samples:
    """A long text in pieces as long as the network reads at once; the target of each byte is the one after it."""
    shape = wanted.network.input.shape
    if len(shape) != 1 or not wanted.network.input.tokens:
        raise DataError(
            f"dataset '{dataset.name}' is a text, but network '{wanted.network.name}' takes no tokens; "
            "give it an input of some steps with `tokens: 256`"
        )
    pieces = []
    for text, most in ((samples.x_train, wanted.samples), (samples.x_test, wanted.samples)):
        count = (len(text) - 1) // shape[0]
        if count < 1:
            raise DataError(f"dataset '{dataset.name}': {len(text):,} bytes are too few for windows of {shape[0]}")
        count = min(count, most) if most else count
        pieces += [_window(text[place : place + count * shape[0]], shape[0]) for place in (0, 1)]
    return Samples(*pieces)


def _window(text: Array, steps: int) -> Array:
    return text.reshape(-1, steps).astype(np.int32)
