"""Directions of edges and hues: published as 154 numbers of a 32x32 image in colour.

How 154 come together was not published; 4x4 cells of 9 directions and 10 hues give it exactly, and are taken here.
"""

from __future__ import annotations

import numpy as np

from timetrial.data.samples import Array
from timetrial.data.steps.base import Step, as_image, by_parts, option, step
from timetrial.spec.shapes import Shape, describe


@step("hog")
class Hog(Step):
    """In each cell of a grid, how strong the gradients of each direction are; then the share of pixels of each hue.

    A pixel adds the magnitude of its gradient (of the channel where that is largest) to the one bin of its direction,
    from 0 to 180 degrees; sums are divided by the pixels of a cell. A grey pixel has the hue 0, as red has.
    """

    grid: int = option(int, "rows and columns of cells", default=4, least=1)
    directions: int = option(int, "bins from 0 to 180 degrees", default=9, least=1)
    hues: int = option(int, "bins of the hue; 0 leaves them out", default=10, least=0)

    def shape(self, before: Shape) -> Shape:
        self.need_rank(before, (2, 3), "images (rows, columns, channels)")
        rows, columns, channels = as_image(before)
        if rows % self.grid or columns % self.grid:
            wants = f"rows and columns that divide into {self.grid}"
            raise self.refuse(f"needs {wants}, but is given images of {describe(before)}")
        if self.hues and channels != 3:
            raise self.refuse(f"needs red, green and blue for hues, but is given {channels} channels; write hues=0")
        return (self.directions * self.grid**2 + self.hues,)

    def applied(self, x: Array) -> Array:
        """Images of bytes are taken from 0 to 1."""
        after = self.shape(x.shape[1:])
        most = np.float32(255 if x.dtype == np.uint8 else 1)
        x = x.reshape(len(x), *as_image(x.shape[1:]))
        return by_parts(x, after, lambda some: self._described(np.asarray(some, np.float32) / most), rows=256)

    def _described(self, x: Array) -> Array:
        edges = self._edges(*gradient(x)).reshape(len(x), -1)
        if not self.hues:
            return edges
        bins = np.minimum((hue(x) * self.hues).astype(np.intp), self.hues - 1).reshape(len(x), -1)
        return np.concatenate([edges, _histogram(bins, np.ones(bins.shape, np.float32), self.hues)], axis=1)

    def _edges(self, magnitude: Array, angle: Array) -> Array:
        count, rows, columns = magnitude.shape
        bins = np.minimum((angle * (self.directions / 180)).astype(np.intp), self.directions - 1)
        high, wide = rows // self.grid, columns // self.grid

        def cells(values: Array) -> Array:
            apart = values.reshape(count, self.grid, high, self.grid, wide).swapaxes(2, 3)
            return apart.reshape(count * self.grid**2, high * wide)

        return _histogram(cells(bins), cells(magnitude), self.directions)


def gradient(x: Array) -> tuple[Array, Array]:
    """Magnitude, and direction in degrees from 0 to 180, of the channel with the largest magnitude; 0 at the border."""
    down, across = np.zeros_like(x), np.zeros_like(x)
    down[:, 1:-1] = x[:, 2:] - x[:, :-2]
    across[:, :, 1:-1] = x[:, :, 2:] - x[:, :, :-2]
    magnitude = np.hypot(down, across)
    strongest = magnitude.argmax(3)[..., None]
    down, across, magnitude = (np.take_along_axis(a, strongest, 3)[..., 0] for a in (down, across, magnitude))
    angle = np.degrees(np.arctan2(down, across)) % 180
    return magnitude, angle


def hue(x: Array) -> Array:
    """From 0 to 1 around the circle of colours, red at both ends."""
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    most = x.max(-1)
    spread = most - x.min(-1)
    coloured = spread > 0
    divisor = np.where(coloured, spread, 1)
    sixth = np.select(
        [most == red, most == green],
        [(green - blue) / divisor, 2 + (blue - red) / divisor],
        4 + (red - green) / divisor,
    )
    turned: Array = np.where(coloured, sixth / 6 % 1, 0)
    return turned


def _histogram(bins: Array, values: Array, count: int) -> Array:
    """Of each row: the values' sums in their bins, divided by how many values there are."""
    rows, length = bins.shape
    flat = (np.arange(rows)[:, None] * count + bins).reshape(-1)
    sums = np.bincount(flat, weights=values.reshape(-1), minlength=rows * count)
    shares: Array = (sums / length).reshape(rows, count)
    return shares
