"""Intervals over processes.

A process is summed up by the median of its laps: processes are the sample, laps are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; without spread (one process) the bounds are None."""

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
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)


def ratio(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Ratio:
    """Speed-up of A over B, Welch's interval on logs."""
    la, lb = np.log(np.asarray(a, np.float64)), np.log(np.asarray(b, np.float64))
    mean = float(lb.mean() - la.mean())
    if len(la) < 2 or len(lb) < 2:
        return Ratio(math.exp(mean), None, None)
    va, vb = float(la.var(ddof=1)) / len(la), float(lb.var(ddof=1)) / len(lb)
    if va + vb == 0:
        return Ratio(math.exp(mean), math.exp(mean), math.exp(mean))
    freedom = (va + vb) ** 2 / (va**2 / (len(la) - 1) + vb**2 / (len(lb) - 1))
    half = float(t_quantile(confidence, freedom)) * math.sqrt(va + vb)
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def t_quantile(confidence: float, freedom: Any) -> Any:
    """Half widths of Student's t in standard errors; of one number of degrees of freedom, or of an array of them."""
    from scipy.special import stdtrit

    return stdtrit(freedom, 0.5 + confidence / 2)
