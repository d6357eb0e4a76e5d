"""The A/A floor: how far one cell seems to lie from itself in this session, measured under two names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.stats.intervals import Ratio, ratio
from timetrial.stats.verdicts import LEAST_FLOOR


@dataclass(frozen=True)
class Floor:
    """The smallest relative difference that this session can see, and the evidence: the twins' ratio.

    `low` and `high` hold the difference between the twins, as it was seen, with its interval: a `high` far above the
    value says that the floor itself is not known well. Without twins all but the value is None.
    """

    value: float = LEAST_FLOOR
    low: float | None = None
    high: float | None = None
    twins: Ratio | None = None

    @property
    def told_apart(self) -> bool:
        """The twins differ for certain: something other than the cell moved the times, and no verdict can be trusted
        below the floor."""
        return self.low is not None and self.low > 0


def floor(anchor: Sequence[float], twin: Sequence[float]) -> Floor:
    """Of process medians. The twins are the same cell, so that what lies between them is the session's own doing."""
    if not len(anchor) or not len(twin):
        return Floor()
    found = ratio(anchor, twin)
    value = max(_size(found.value), LEAST_FLOOR)
    if found.low is None or found.high is None:
        return Floor(value, None, None, found)
    sizes = _size(found.low), _size(found.high)
    return Floor(value, 0.0 if found.low <= 1 <= found.high else min(sizes), max(sizes), found)


def _size(of: float) -> float:
    """Of a ratio and of its reciprocal alike: 0.02 for 1.02 and for 1 / 1.02."""
    return math.expm1(abs(math.log(of)))
