"""Intervals over processes.

A process is summed up by the median of its laps: processes are the sample, laps are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST = 350.0  # of logs: the square of its exponential is still a float


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval (95 % unless asked otherwise); of one process the bounds are None."""

    value: float
    low: float | None
    high: float | None
    processes: int

    @property
    def half_width(self) -> float | None:
        """Relative to the value."""
        if self.low is None or self.high is None:
            return None
        return math.sqrt(self.high / self.low) - 1


@dataclass(frozen=True)
class Ratio:
    """time of B / time of A: the speed-up of A over B."""

    value: float
    low: float | None
    high: float | None


def process_value(laps: Sequence[float]) -> float:
    return float(np.median(laps))


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """t interval on the logs of process medians."""
    logs = np.log(np.asarray(values, np.float64))
    n, mean = len(logs), float(logs.mean())
    if n < 2:
        return Interval(math.exp(mean), None, None, n)
    half = float(t_quantile(confidence, n - 1)) * float(logs.std(ddof=1)) / math.sqrt(n)
    return Interval(math.exp(mean), exp(mean - half), exp(mean + half), n)


def ratio(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Ratio:
    """Speed-up of A over B, Welch's interval on logs."""
    found = gap(a, b)
    if found.error is None:
        return Ratio(math.exp(found.log), None, None)
    half = found.error * float(t_quantile(confidence, found.freedom)) if found.error else 0.0
    return Ratio(math.exp(found.log), exp(found.log - half), exp(found.log + half))


@dataclass(frozen=True)
class Gap:
    """Log of time of B / time of A, its standard error (None: a single process has none) and Welch's freedom."""

    log: float
    error: float | None
    freedom: float


def gap(a: Sequence[float], b: Sequence[float]) -> Gap:
    la, lb = np.log(np.asarray(a, np.float64)), np.log(np.asarray(b, np.float64))
    mean = float(lb.mean() - la.mean())
    if len(la) < 2 or len(lb) < 2:
        return Gap(mean, None, 0.0)
    error, freedom = welch(float(la.var(ddof=1)), len(la), float(lb.var(ddof=1)), len(lb))
    return Gap(mean, error, freedom)


def welch(variance_a: float, count_a: int, variance_b: float, count_b: int) -> tuple[float, float]:
    """Standard error of the difference of two means, and its degrees of freedom."""
    va, vb = variance_a / count_a, variance_b / count_b
    if va + vb == 0:
        return 0.0, float(count_a + count_b - 2)
    # Shares, not squares of variances: those of quiet processes would underflow.
    share = va / (va + vb)
    return math.sqrt(va + vb), 1 / (share**2 / (count_a - 1) + (1 - share) ** 2 / (count_b - 1))


def exp(log: float) -> float:
    """Kept within what can be multiplied and divided: two wildly different processes have bounds beyond any float."""
    return math.exp(min(max(log, -LARGEST), LARGEST))


def t_quantile(confidence: float, freedom: Any) -> Any:
    """Half widths of Student's t in standard errors; of one number of degrees of freedom, or of an array of them."""
    from scipy.special import stdtrit

    return stdtrit(freedom, 0.5 + confidence / 2)
