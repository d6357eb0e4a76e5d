"""Random stand-ins. They can be learned (the label depends on the input), so that a loss which does not fall is news.

Behind every sample is a cause of a few numbers: the input is the cause, repeated and half hidden in noise, and the
label is computed from the cause. The size of a sample therefore costs nothing but its own numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from timetrial.data.samples import Array, Samples, Wanted
from timetrial.spec.shapes import Shape, elements

if TYPE_CHECKING:
    from timetrial.data.registry import Dataset

CAUSE = 64
MOST_SAMPLES, MOST_BYTES = 4096, 256 * 2**20
LEAST_BATCHES = 8  # so that the timed laps do not see the same batch again at once


def read(dataset: Dataset, wanted: Wanted) -> Samples:
    shape = dataset.input_shape or wanted.network.input.shape
    train = wanted.samples or _default_count(shape, wanted.recipe.batch)
    test = max(train // 4, min(train, wanted.recipe.batch))
    rng = np.random.default_rng(wanted.seed)
    if dataset.classes is not None:
        x, y = _classified(rng, shape, train + test, dataset.classes, ())
    else:
        x, y = _stand_in(rng, wanted, train + test)
    return Samples(x[:train], y[:train], x[train:], y[train:])


def _default_count(shape: Shape, batch: int) -> int:
    affordable = MOST_BYTES // (4 * elements(shape))
    return max(min(MOST_SAMPLES, affordable), LEAST_BATCHES * batch)


def _stand_in(rng: np.random.Generator, wanted: Wanted, count: int) -> tuple[Array, Array]:
    """Made to the measure of the network and its loss."""
    source, output = wanted.network.input, wanted.network.output_shape
    classified = wanted.recipe.loss == "cross_entropy"
    if source.tokens:
        x = rng.integers(0, source.tokens, (count, *source.shape), dtype=np.int32)
        if classified:
            return x, _spread(x.reshape(count, -1)[:, 0] % output[-1], output[:-1], output[-1])
        shares: Array = np.resize(x.reshape(count, -1).T / source.tokens, (CAUSE, count)).T
        return x, _targets(rng, shares, wanted)
    if classified:
        return _classified(rng, source.shape, count, output[-1], output[:-1])
    cause: Array = rng.random((count, CAUSE), dtype=np.float32)
    return _numbers(rng, cause, source.shape), _targets(rng, cause, wanted)


def _classified(
    rng: np.random.Generator, shape: Shape, count: int, classes: int, positions: Shape
) -> tuple[Array, Array]:
    patterns = rng.random((classes, CAUSE), dtype=np.float32)
    chosen = rng.integers(0, classes, count, dtype=np.int32)
    return _numbers(rng, patterns[chosen], shape), _spread(chosen, positions, classes)


def _numbers(rng: np.random.Generator, cause: Array, shape: Shape) -> Array:
    """From 0 to 1, as images are."""
    x = rng.random((len(cause), elements(shape)), dtype=np.float32)
    x *= 0.5
    for start in range(0, x.shape[1], CAUSE):
        part = x[:, start : start + CAUSE]
        part += 0.5 * cause[:, : part.shape[1]]
    return x.reshape(-1, *shape)


def _spread(classes: Array, positions: Shape, count: int) -> Array:
    """The class at every position of the output: one further at each."""
    steps = np.arange(elements(positions), dtype=np.int32).reshape(positions)
    everywhere: Array = classes.reshape(-1, *(1 for _ in positions)) + steps
    return (everywhere % count).astype(np.int32)


def _targets(rng: np.random.Generator, cause: Array, wanted: Wanted) -> Array:
    output = wanted.network.output_shape
    mixing = rng.standard_normal((CAUSE, elements(output))) / np.sqrt(CAUSE)
    targets: Array = ((cause - 0.5) @ mixing).reshape(-1, *output)
    if wanted.recipe.loss == "binary_cross_entropy":
        targets = targets > 0
    return targets.astype(np.float32)
