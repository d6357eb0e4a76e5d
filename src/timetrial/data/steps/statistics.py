"""Steps that centre and scale: over the training samples, or within each sample."""

from __future__ import annotations

import numpy as np

from timetrial.data.samples import Array
from timetrial.data.steps.base import Apply, Step, by_parts, option, parts, step
from timetrial.spec.shapes import Shape, describe

NOTHING = 1e-8  # deviations below are rounding: such values are constant and are not divided


def mean_of(x: Array, axes: tuple[int, ...] = (0,)) -> Array:
    """Of each value of a sample, added up in double precision."""
    return np.asarray(np.mean(x, axis=axes, dtype=np.float64))


def whole(deviation: Array, floor: float = NOTHING) -> Array:
    """Deviations to divide by: 1 where there is none."""
    return np.where(deviation > floor, deviation, 1.0)


@step("subtract-mean")
class SubtractMean(Step):
    """x - the training samples' mean of the same pixel and channel."""

    def fitted(self, train: Array) -> Apply:
        mean = mean_of(train)
        return lambda x: by_parts(x, x.shape[1:], lambda some: some - mean)


@step("standardise")
class Standardise(Step):
    """(x - mean) / deviation of the training samples, for each value or for each channel; a constant becomes 0."""

    over: str = option(str, "what has a mean of its own", default="value", choices=("value", "channel"))

    def fitted(self, train: Array) -> Apply:
        axes = (0,) if self.over == "value" else tuple(range(train.ndim - 1))
        mean = mean_of(train, axes)
        squares = sum(np.square(train[some] - mean).sum(axes) for some in parts(train))
        count = train.size / mean.size
        deviation = whole(np.sqrt(np.asarray(squares) / count))
        return lambda x: by_parts(x, x.shape[1:], lambda some: (some - mean) / deviation)


@step("standardise-each")
class StandardiseEach(Step):
    """(x - mean) / max(deviation, 1 / sqrt(n)) of each sample's own n values."""

    def applied(self, x: Array) -> Array:
        return by_parts(x, x.shape[1:], _standardised)


def _standardised(x: Array) -> Array:
    axes, count = tuple(range(1, x.ndim)), np.prod(x.shape[1:])
    centred = x - x.mean(axes, dtype=np.float64, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axes, keepdims=True))
    standard: Array = centred / np.maximum(deviation, 1 / np.sqrt(count))
    return standard


@step("gcn")
class GlobalContrast(Step):
    """A mean subtracted, then each sample divided by its own deviation, each channel for itself."""

    subtract: str = option(
        str,
        "the mean: of a column of the training samples, or of the sample",
        "column",
        choices=("column", "sample", "nothing"),
    )
    channels: str = option(str, "whether each channel is divided by its own", "apart", choices=("apart", "together"))
    floor: float = option(float, "deviations up to this are not divided by", default=NOTHING, least=0)

    def fitted(self, train: Array) -> Apply:
        mean = mean_of(train) if self.subtract == "column" else np.float64(0)
        axes = self._axes(train.shape[1:])
        return lambda x: by_parts(x, x.shape[1:], lambda some: self._divided(some - mean, axes))

    def _axes(self, shape: Shape) -> tuple[int, ...]:
        apart = self.channels == "apart" and len(shape) == 3
        return (1, 2) if apart else tuple(range(1, len(shape) + 1))

    def _divided(self, x: Array, axes: tuple[int, ...]) -> Array:
        if self.subtract == "sample":
            x = x - x.mean(axes, keepdims=True)
        divided: Array = x / whole(x.std(axes, keepdims=True), self.floor)
        return divided


@step("drop")
class Drop(Step):
    """Leaves out one column of a table."""

    column: int = option(int, "which, counted from 0", least=0)

    def shape(self, before: Shape) -> Shape:
        self.need_rank(before, (1,), "rows of a table")
        if self.column >= before[0]:
            raise self.refuse(f"leaves out column {self.column}, but there are {describe(before)}, counted from 0")
        return (before[0] - 1,)

    def applied(self, x: Array) -> Array:
        return np.delete(x, self.column, axis=1)


@step("impute")
class Impute(Step):
    """A value for each missing one."""

    missing = True
    value: float = option(float, "what stands for a missing one", default=0.0)

    def applied(self, x: Array) -> Array:
        return np.where(np.isnan(x), np.float32(self.value), x).astype(np.float32) if x.dtype.kind == "f" else x
