"""The three-way verdict: faster or slower, the same, or not decided yet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from timetrial.stats.intervals import Ratio, ratio, t_quantile

MOST = 1000  # further processes: what these would not decide is not worth the wait
Word = Literal["faster", "slower", "same", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """What is known of A against B. `more` further processes of each would decide, where that can be said."""

    word: Word
    speedup: Ratio
    more: int | None = None


def verdict(a: Sequence[float], b: Sequence[float], floor: float = 0.01) -> Verdict:
    """`floor` is the smallest difference that this session can see, at least 1 %."""
    found = ratio(a, b)
    margin = 1 + max(floor, 0.01)
    if found.low is None or found.high is None:
        return Verdict("undecided", found, max(2 - min(len(a), len(b)), 1))
    if found.low > margin:
        return Verdict("faster", found)
    if found.high < 1 / margin:
        return Verdict("slower", found)
    if found.low >= 1 / margin and found.high <= margin:
        return Verdict("same", found)
    return Verdict("undecided", found, _further(a, b, found, margin))


def _further(a: Sequence[float], b: Sequence[float], found: Ratio, margin: float) -> int:
    """Processes of each until the half width would reach the nearest border of the margin, at today's spread."""
    distance = abs(abs(math.log(found.value)) - math.log(margin))
    more = np.arange(1, MOST + 1)
    va = float(np.var(np.log(a), ddof=1)) / (len(a) + more)
    vb = float(np.var(np.log(b), ddof=1)) / (len(b) + more)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) + more - 1) + vb**2 / (len(b) + more - 1))
    enough = more[t_quantile(0.95, freedom) * np.sqrt(va + vb) < distance]
    return int(enough[0]) if len(enough) else MOST
