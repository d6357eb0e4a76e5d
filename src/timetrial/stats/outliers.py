"""Tukey's count of outliers. They are counted, never dropped: what disturbed a lap may be the engine's own doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MILD, SEVERE = 1.5, 3.0  # interquartile ranges beyond the quartiles
WARN = 0.05  # share of severe ones


@dataclass(frozen=True)
class Outliers:
    """How many of `count` values lie beyond the fences, low and high apart. A severe one is not counted as mild."""

    count: int
    mild_low: int = 0
    mild_high: int = 0
    severe_low: int = 0
    severe_high: int = 0

    @property
    def mild(self) -> int:
        return self.mild_low + self.mild_high

    @property
    def severe(self) -> int:
        return self.severe_low + self.severe_high

    @property
    def warn(self) -> bool:
        """More than 5 % are severe: the machine was disturbed, or the laps are of two kinds."""
        return self.severe > WARN * self.count


def outliers(values: Sequence[float]) -> Outliers:
    times = np.asarray(values, np.float64)
    if not times.size:
        return Outliers(0)
    first, third = np.quantile(times, (0.25, 0.75))
    unit = third - first
    severe_low, severe_high = (times < first - SEVERE * unit).sum(), (times > third + SEVERE * unit).sum()
    low, high = (times < first - MILD * unit).sum(), (times > third + MILD * unit).sum()
    return Outliers(times.size, int(low - severe_low), int(high - severe_high), int(severe_low), int(severe_high))
