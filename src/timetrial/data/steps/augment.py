"""Chance in the training samples: drawn once from the trial's seed, so that every engine sees the same images."""

from __future__ import annotations

import numpy as np

from timetrial.data.samples import Array
from timetrial.data.steps.base import Augmentation, Random, as_image, option, parts, step
from timetrial.spec.shapes import Shape, describe


class _OfImages(Augmentation):
    def shape(self, before: Shape) -> Shape:
        self.need_rank(before, (2, 3), "images (rows, columns, channels)")
        return before


@step("crop")
class Crop(_OfImages):
    """A square window: anywhere in a training image, in the middle of a test image."""

    size: int = option(int, "rows and columns of the window", default=24, least=1)

    def shape(self, before: Shape) -> Shape:
        rows, columns, channels = as_image(super().shape(before))
        if min(rows, columns) < self.size:
            raise self.refuse(f"of {self.size}x{self.size} does not fit into images of {describe(before)}")
        return self.size, self.size, channels

    def drawn(self, x: Array, random: Random) -> Array:
        rows, columns = x.shape[1:3]
        top = random.integers(0, rows - self.size + 1, len(x))
        return self._cut(x, top, random.integers(0, columns - self.size + 1, len(x)))

    def still(self, x: Array) -> Array:
        top, left = ((side - self.size) // 2 for side in x.shape[1:3])
        return self._cut(x, np.full(len(x), top), np.full(len(x), left))

    def _cut(self, x: Array, top: Array, left: Array) -> Array:
        x = x.reshape(len(x), *as_image(x.shape[1:]))
        windows = np.lib.stride_tricks.sliding_window_view(x, (self.size, self.size), axis=(1, 2))
        return np.ascontiguousarray(np.moveaxis(windows[np.arange(len(x)), top, left], 1, 3))


@step("flip")
class Flip(_OfImages):
    """Left and right exchanged in every other training image, on average."""

    def drawn(self, x: Array, random: Random) -> Array:
        flipped = random.random(len(x)) < 0.5
        out = x.copy()
        out[flipped] = x[flipped, :, ::-1]
        return out


@step("brightness")
class Brightness(_OfImages):
    """x + d, one d for each training image, evenly from -most to most."""

    most: float = option(float, "the largest change, in units of the values", default=63.0, least=0)

    def drawn(self, x: Array, random: Random) -> Array:
        change = random.uniform(-self.most, self.most, len(x)).astype(np.float32)
        return np.asarray(x, np.float32) + change.reshape(-1, *(1 for _ in x.shape[1:]))

    def still(self, x: Array) -> Array:
        return np.asarray(x, np.float32)


@step("contrast")
class Contrast(_OfImages):
    """(x - mean) f + mean, each channel about its own mean, one f for each training image, evenly from low to high."""

    low: float = option(float, "the smallest factor", default=0.2, least=0)
    high: float = option(float, "the largest factor", default=1.8, least=0)

    def shape(self, before: Shape) -> Shape:
        if self.high < self.low:
            raise self.refuse(f"has a largest factor of {self.high:g}, below its smallest of {self.low:g}")
        return super().shape(before)

    def drawn(self, x: Array, random: Random) -> Array:
        factors = random.uniform(self.low, self.high, len(x)).astype(np.float32)
        factors = factors.reshape(-1, *(1 for _ in x.shape[1:]))
        out = np.empty(x.shape, np.float32)
        for some in parts(x):
            mean = x[some].mean((1, 2), dtype=np.float64, keepdims=True).astype(np.float32)
            out[some] = (x[some] - mean) * factors[some] + mean
        return out

    def still(self, x: Array) -> Array:
        return np.asarray(x, np.float32)
