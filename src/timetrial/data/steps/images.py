"""Steps that make an image another size, shape or range of values, each image for itself."""

from __future__ import annotations

import numpy as np

from timetrial.data.samples import Array
from timetrial.data.steps.base import Step, as_image, by_parts, option, step
from timetrial.spec.shapes import Shape, elements

GREY = np.array([0.299, 0.587, 0.114], np.float32)  # the luminance of ITU-R BT.601


class _OfImages(Step):
    def need_image(self, shape: Shape) -> Shape:
        self.need_rank(shape, (2, 3), "images (rows, columns, channels)")
        return as_image(shape)


@step("raw")
class Raw(Step):
    """The values as they are stored: images from 0 to 255."""

    def applied(self, x: Array) -> Array:
        return np.asarray(x, np.float32)


@step("scale")
class Scale(Step):
    """x / most."""

    most: float = option(float, "the largest value there is; it becomes 1", default=255.0, least=1e-30)

    def applied(self, x: Array) -> Array:
        return by_parts(x, x.shape[1:], lambda some: np.asarray(some, np.float32) / np.float32(self.most))


@step("half")
class Half(Step):
    """The values that half precision (16 bits) can hold, handed on in single precision."""

    def applied(self, x: Array) -> Array:
        return by_parts(x, x.shape[1:], self._rounded)

    def _rounded(self, x: Array) -> Array:
        with np.errstate(over="ignore"):  # found by the check that follows
            kept = x.astype(np.float16)
        if not np.isfinite(kept).all():
            raise self.refuse("is given values beyond 65,504, the largest in half precision; write 'scale' before it")
        return kept


@step("grey")
class Grey(_OfImages):
    """0.299 red + 0.587 green + 0.114 blue."""

    def shape(self, before: Shape) -> Shape:
        rows, columns, channels = self.need_image(before)
        if channels not in (1, 3):
            raise self.refuse(f"needs one channel or three (red, green, blue), but is given {channels}")
        return rows, columns, 1

    def applied(self, x: Array) -> Array:
        if x.shape[3:] != (3,):
            return np.asarray(x, np.float32).reshape(len(x), *self.shape(x.shape[1:]))
        return by_parts(x, self.shape(x.shape[1:]), lambda some: (some @ GREY)[..., None])


@step("resize")
class Resize(_OfImages):
    """Each new pixel is a mean of old ones, weighted by a triangle as wide as the larger of an old and a new pixel."""

    height: int = option(int, "rows", least=1)
    width: int = option(int, "columns", least=1)

    def shape(self, before: Shape) -> Shape:
        return self.height, self.width, self.need_image(before)[-1]

    def applied(self, x: Array) -> Array:
        return _resized(x, self.shape(x.shape[1:]))


@step("enlarge")
class Enlarge(_OfImages):
    """Rows and columns times `factor`, interpolated as `resize` does."""

    factor: int = option(int, "how many times as many rows and columns", default=2, least=1)

    def shape(self, before: Shape) -> Shape:
        rows, columns, channels = self.need_image(before)
        return self.factor * rows, self.factor * columns, channels

    def applied(self, x: Array) -> Array:
        return _resized(x, self.shape(x.shape[1:]))


@step("width")
class Width(_OfImages):
    """The columns that hold something other than zero, stretched or shrunk to `size` columns; the rows stay."""

    size: int = option(int, "columns", default=20, least=1)

    def shape(self, before: Shape) -> Shape:
        rows, _, channels = self.need_image(before)
        return rows, self.size, channels

    def applied(self, x: Array) -> Array:
        x = x.reshape(len(x), *as_image(x.shape[1:]))
        out = np.zeros((len(x), *self.shape(x.shape[1:])), np.float32)
        boxes = _boxes(x)
        for left, right in np.unique(boxes, axis=0):
            same = np.flatnonzero((boxes == (left, right)).all(1))
            out[same] = weights(right - left, self.size) @ x[same, :, left:right].astype(np.float32)
        return out


@step("flatten")
class Flatten(Step):
    """All numbers of a sample in one row."""

    def shape(self, before: Shape) -> Shape:
        return (elements(before),)

    def applied(self, x: Array) -> Array:
        return x.reshape(len(x), -1) if len(x) else x.reshape(0, elements(x.shape[1:]))


@step("rows")
class Rows(_OfImages):
    """An image as a sequence: one step a row."""

    def shape(self, before: Shape) -> Shape:
        rows, columns, channels = self.need_image(before)
        return rows, columns * channels

    def applied(self, x: Array) -> Array:
        return x.reshape(len(x), *self.shape(x.shape[1:]))


def weights(old: int, new: int) -> Array:
    """What each of `old` pixels gives to each of `new`, as a matrix (new, old): bilinear, a mean when it shrinks."""
    scale = old / new
    reach = max(scale, 1.0)
    centres = (np.arange(new) + 0.5) * scale
    distances = np.abs(np.arange(old) + 0.5 - centres[:, None]) / reach
    triangle = np.maximum(0.0, 1.0 - distances)
    matrix: Array = (triangle / triangle.sum(1, keepdims=True)).astype(np.float32)
    return matrix


def _resized(x: Array, shape: Shape) -> Array:
    rows, columns, channels = as_image(x.shape[1:])
    down, across = weights(rows, shape[0]), weights(columns, shape[1])

    def one(some: Array) -> Array:
        lines = down @ some.astype(np.float32).reshape(len(some), rows, columns * channels)
        return across @ lines.reshape(len(some), shape[0], columns, channels)

    return by_parts(x, shape, one, rows=64)


def _boxes(x: Array) -> Array:
    """First column with ink and the one after the last; of an empty image all of it."""
    ink: Array = np.any(x != 0, axis=(1, 3))
    empty = ~ink.any(1)
    ink[empty] = True
    return np.stack([ink.argmax(1), ink.shape[1] - ink[:, ::-1].argmax(1)], 1)
