"""When to stop repeating a cell, and how far it still is. Targets belong to the runner."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np

from timetrial.stats.intervals import interval, t_quantile
from timetrial.stats.verdicts import LEAST_FLOOR, MOST, Verdict, verdict


def width_reached(values: Sequence[float], target: float) -> bool:
    """Is the half width of the interval at most `target` of the value? Never with one process."""
    half = interval(values).half_width
    return half is not None and half <= target


def further(values: Sequence[float], target: float) -> int:
    """Number of further processes until the half width is at most `target`, at today's spread; a thousand at most."""
    count = len(values)
    if count < 2:
        return 2 - count
    spread = float(np.std(np.log(values), ddof=1))

    def enough(more: int) -> bool:
        freedom = count + more - 1
        return math.expm1(float(t_quantile(0.95, freedom)) * spread / math.sqrt(count + more)) <= target

    return bisect.bisect_left(range(MOST), True, key=enough)


def decided(a: Sequence[float], b: Sequence[float], floor: float = LEAST_FLOOR, looks: int = 1) -> Verdict:
    """The verdict while a study goes on. `looks` is how often its design may look: this one and all others counted."""
    return verdict(a, b, floor, guarded(looks))


def guarded(looks: int, confidence: float = 0.95) -> float:
    """Confidence of each look, so that all together are wrong no more often than one look at `confidence` would be.

    Looks at one growing sample see mostly the same values, so that sharing the error evenly among them (Bonferroni)
    gives away more than half of it. Pocock's constant level for evenly spaced looks at a normal mean lies between the
    error over the root of their number and over the number itself. The power 3/4 follows it closely up to ten looks,
    and stays on the safe side for more, and for looks after every single process.
    """
    if looks < 1:
        raise ValueError(f"guarded: a design has at least one look, not {looks}; count this one too")
    return 1 - (1 - confidence) / math.pow(looks, 0.75)
