"""GIST: how much of each scale and direction there is in each region of an image.

Published are 20 Gabor filters, a grid of 4x4 and three channels, together 960 numbers. How the filters are laid out was
not: here are three scales of 8, 8 and 4 directions, with the transfer functions of Oliva and Torralba. Without their
first step (evening out the contrast), for the study does not speak of it; brightness alone gives no answer.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise, product

import numpy as np
from scipy import fft

from timetrial.data.samples import Array
from timetrial.data.steps.base import Step, as_image, by_parts, option, step
from timetrial.spec.shapes import Shape, describe

DIRECTIONS = {20: (8, 8, 4), 32: (8, 8, 8, 8)}
FINEST, COARSER = 0.3, 1.85  # cycles a pixel of the finest scale; how much fewer the next one has
BATCH = 4  # what fits into a core's cache


@step("gist")
class Gist(Step):
    """Mean modulus of each Gabor filter's answer in each cell of a grid, channel by channel."""

    filters: int = option(int, "Gabor filters: 20 (8 + 8 + 4 directions) or 32 (4 scales of 8)", 20, choices=(20, 32))
    grid: int = option(int, "rows and columns of regions", default=4, least=1)
    border: int = option(int, "pixels mirrored around the image, at most its size", default=8, least=0)

    def shape(self, before: Shape) -> Shape:
        self.need_rank(before, (2, 3), "images (rows, columns, channels)")
        rows, columns, channels = as_image(before)
        if min(rows, columns) < max(self.grid, self.border):
            wants = f"at least {max(self.grid, self.border)} rows and columns"
            raise self.refuse(f"needs {wants}, but is given images of {describe(before)}")
        return (channels * self.filters * self.grid**2,)

    def applied(self, x: Array) -> Array:
        """Images of bytes are taken from 0 to 1."""
        after = self.shape(x.shape[1:])
        most = np.float32(255 if x.dtype == np.uint8 else 1)
        x = x.reshape(len(x), *as_image(x.shape[1:]))
        return by_parts(x, after, lambda some: self._described(np.moveaxis(some, 3, 1) / most), BATCH)

    def _described(self, planes: Array) -> Array:
        rows, columns = planes.shape[2:]
        around, side = self.border, (self.border, self.border)
        padded = np.pad(planes, ((0, 0), (0, 0), side, side), mode="symmetric")
        bank = filter_bank(padded.shape[2], padded.shape[3], DIRECTIONS[self.filters])
        answers = fft.ifft2(fft.fft2(padded)[:, :, None] * bank, overwrite_x=True)
        moduli = np.abs(answers[..., around : around + rows, around : around + columns])
        return region_means(moduli, self.grid).reshape(len(planes), -1)


@lru_cache(maxsize=8)
def filter_bank(rows: int, columns: int, directions: tuple[int, ...]) -> Array:
    """Transfer functions over the frequencies of a discrete Fourier transform; none lets a constant through."""
    down, across = np.meshgrid(np.fft.fftfreq(rows), np.fft.fftfreq(columns), indexing="ij")
    radius, angle = np.hypot(down, across), np.arctan2(down, across)
    bank = []
    for scale, count in enumerate(directions):
        centre, sharpness = FINEST / COARSER**scale, 16 * count**2 / 32**2
        for number in range(count):
            off = (angle + np.pi * number / count + np.pi) % (2 * np.pi) - np.pi
            bank.append(np.exp(-3.5 * (radius / centre - 1) ** 2 - 2 * np.pi * sharpness * off**2))
    filters = np.stack(bank).astype(np.float32)
    filters[:, 0, 0] = 0
    return filters


def region_means(maps: Array, grid: int) -> Array:
    """Means over the cells of a grid; where it does not divide the map, some are a pixel larger."""
    rows, columns = (pairwise(np.arange(grid + 1) * side // grid) for side in maps.shape[-2:])
    means = [maps[..., a:b, c:d].mean((-2, -1)) for (a, b), (c, d) in product(rows, columns)]
    return np.stack(means, axis=-1)
