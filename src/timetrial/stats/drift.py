"""Did the machine change while the session went on? Judged by its canary, a fixed small computation beside each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from timetrial.stats.intervals import Ratio, t_quantile
from timetrial.stats.verdicts import LEAST_FLOOR

LIMIT = 0.02  # a smaller change of the machine is no reason to repeat a run
LEAST = 5  # values: below, no order of them is rare enough to be called a trend
SIDE = 2  # values on either side of a jump
Kind = Literal["none", "slide", "jump", "unknown"]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Drift:
    """`flagged` are the runs whose canary lies beyond `limit` from the session's median.

    `slide` is canary time at the session's end over that at its start along a straight line, `jump` that from the run
    `jump_at` on over that before it. `kind` names the one that is certain, beyond the limit, and describes it better.
    """

    kind: Kind
    limit: float
    deviations: tuple[float, ...]
    flagged: tuple[int, ...]
    slide: Ratio | None = None
    jump: Ratio | None = None
    jump_at: int | None = None


def drift(
    positions: Sequence[float], values: Sequence[float], floor: float = LEAST_FLOOR, confidence: float = 0.95
) -> Drift:
    """`positions` are the times of the runs, or their numbers; `values` their canary times."""
    order = np.argsort(np.asarray(positions, np.float64), kind="stable")
    at, logs = np.asarray(positions, np.float64)[order], np.log(np.asarray(values, np.float64))[order]
    if not len(logs):
        return Drift("unknown", max(LIMIT, floor), (), ())
    limit, each = max(LIMIT, floor), 1 - (1 - confidence) / 2  # two questions share the error
    deviations = tuple(float(value) for value in np.expm1(np.log(np.asarray(values)) - np.median(logs)))
    flagged = tuple(index for index, value in enumerate(deviations) if abs(value) > limit)
    if len(at) < LEAST or at[0] == at[-1]:
        return Drift("unknown", limit, deviations, flagged)
    slide, line = _slide(at, logs, each)
    jump, split, step = _jump(logs, each)
    models: tuple[tuple[Kind, Ratio, Array], ...] = (("slide", slide, line), ("jump", jump, step))
    left = [(float(np.abs(logs - model).sum()), kind) for kind, change, model in models if _real(change, limit)]
    kind = min(left)[1] if left else "none"
    return Drift(kind, limit, deviations, flagged, slide, jump, int(order[split]))


def _real(change: Ratio, limit: float) -> bool:
    assert change.low is not None and change.high is not None
    return not change.low <= 1 <= change.high and abs(change.value - 1) > limit


def _slide(at: Array, logs: Array, confidence: float) -> tuple[Ratio, Array]:
    """Theil and Sen's line, the median of the slopes of all pairs: a disturbed run or two does not turn it."""
    from scipy.special import ndtri

    first, second = np.triu_indices(len(at), 1)
    apart = at[second] > at[first]
    slopes = np.sort((logs[second] - logs[first])[apart] / (at[second] - at[first])[apart])
    count, pairs = len(at), len(slopes)
    # Sen's interval: so many slopes from either end as Kendall's rank correlation would have by chance.
    reach = ndtri(0.5 + confidence / 2) * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    rank = max(round((pairs - reach) / 2) - 1, 0)
    slope = float(np.median(slopes))
    span = float(at[-1] - at[0])
    line = slope * at + np.median(logs - slope * at)
    low, high = float(slopes[rank]), float(slopes[pairs - 1 - rank])
    return Ratio(*(math.exp(value * span) for value in (slope, low, high))), line


def _jump(logs: Array, confidence: float) -> tuple[Ratio, int, Array]:
    """The split into before and after whose means lie farthest apart, in standard errors."""
    count = len(logs)
    splits = np.arange(SIDE, count - SIDE + 1)
    total = np.cumsum(logs - logs.mean())[splits - 1]
    # Taken about the mean of all, what is before and what is after sum to zero.
    changes = -total / splits - total / (count - splits)
    between = total**2 * count / (splits * (count - splits))
    within = np.maximum(np.var(logs) * count - between, 0.0) / (count - 2)
    best = int(np.argmax(between))
    split, change = int(splits[best]), float(changes[best])
    error = math.sqrt(float(within[best]) * count / (split * (count - split)))
    # The split was chosen after looking at all of them: each gets its share of the error.
    sure = 1 - (1 - confidence) / len(splits)
    half = float(t_quantile(sure, count - 2)) * error
    step = np.where(np.arange(count) < split, logs[:split].mean(), logs[split:].mean())
    return Ratio(math.exp(change), math.exp(change - half), math.exp(change + half)), split, step
