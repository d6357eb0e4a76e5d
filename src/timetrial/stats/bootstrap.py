"""A second opinion on the t interval: resampling, which assumes no shape of the spread.

The plain percentile interval is far too narrow for the five or ten processes of a study (at five processes it misses
the truth three times as often as it says), and BCa would correct its skewness by a third moment estimated from five
values. So it is the expanded percentile interval: percentiles farther out, by as much as the t interval is wider than
the normal one and a sample's spread smaller than the population's. On well-behaved samples it agrees with t, and where
it does not, the values are skewed or of two kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from timetrial.stats.intervals import Interval, interval, t_quantile

LEAST = 5  # processes: fewer have too few different resamples
TOLERANCE = 0.4  # of the t interval's half width


@dataclass(frozen=True)
class Crosscheck:
    """Both intervals, and by how much their bounds differ at most, in half widths of the t interval."""

    t: Interval
    bootstrap: Interval
    apart: float
    tolerance: float

    @property
    def agree(self) -> bool:
        return self.apart <= self.tolerance


def crosscheck(
    values: Sequence[float],
    confidence: float = 0.95,
    tolerance: float = TOLERANCE,
    resamples: int = 10_000,
    seed: int = 0,
) -> Crosscheck | None:
    """Of process medians; None for fewer than five."""
    count = len(values)
    if count < LEAST:
        return None
    t = interval(values, confidence)
    logs = np.sort(np.log(np.asarray(values, np.float64)))  # so that the order of processes changes nothing
    drawn = np.random.default_rng(seed).integers(0, count, (resamples, count))
    outer = expanded(count, confidence)
    low, high = np.quantile(logs[drawn].mean(axis=1), ((1 - outer) / 2, (1 + outer) / 2))
    other = Interval(t.value, math.exp(low), math.exp(high), count)
    assert t.low is not None and t.high is not None
    half = math.log(t.high / t.low) / 2
    differences = abs(low - math.log(t.low)), abs(high - math.log(t.high))
    return Crosscheck(t, other, float(max(differences) / half) if half > 1e-12 else 0.0, tolerance)


def expanded(count: int, confidence: float) -> float:
    """The share of resamples that makes a percentile interval as wide as a t interval of so many values."""
    from scipy.special import ndtr

    return float(2 * ndtr(math.sqrt(count / (count - 1)) * float(t_quantile(confidence, count - 1))) - 1)
