"""From which size on is the second of two engines ahead? Curves are straight in log-log between the measured sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from timetrial.stats.intervals import t_quantile

Array = np.ndarray[Any, Any]
Samples = Mapping[float, Sequence[float]]  # process medians at each size
RESAMPLES = 4000


@dataclass(frozen=True)
class Crossover:
    """What is known of the second against the first, over the sizes at which both were measured.

    `always`, `never`: ahead, or behind, at all of them, for certain. `from`, `until`: the last change of the lead is at
    `at`, with an interval from `low` to `high`, and beyond `high` the lead is certain. A `low` of None lies below the
    measured sizes: it may be ahead, or behind, at all of them. `undecided`: who leads at the end is not certain, or
    whether the lead changes at all; what is given of `at`, `low` and `high` still holds. `crossings` are all changes of
    the lead as measured, those of two curves among them that only touch.
    """

    answer: Literal["always", "never", "from", "until", "undecided"]
    at: float | None
    low: float | None
    high: float | None
    crossings: tuple[float, ...]
    measured: tuple[float, float]


def crossover(
    first: Samples, second: Samples, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Crossover:
    sizes = _common(first, second)
    logs = np.log(sizes)
    lead = _along(first, sizes) @ _means(first) - _along(second, sizes) @ _means(second)
    crossings = _crossings(lead, logs)
    measured = float(sizes[0]), float(sizes[-1])
    at = crossings[-1] if crossings else None
    alone = any(len(values) < 2 for curve in (first, second) for values in curve.values())
    if alone or lead[-1] == 0:
        return Crossover("undecided", at, None, None, crossings, measured)
    draw = np.random.default_rng(seed)
    drawn = _drawn(first, sizes, confidence, resamples, draw) - _drawn(second, sizes, confidence, resamples, draw)
    changes = np.sort(_last_change(drawn, logs, bool(lead[-1] > 0)))
    tail = round((1 - confidence) / 2 * resamples)
    low, high = float(changes[tail]), float(changes[-1 - tail])
    bounds = [math.exp(bound) if math.isfinite(bound) else None for bound in (low, high)]
    return Crossover(_answer(high, at, bool(lead[-1] > 0)), at, bounds[0], bounds[1], crossings, measured)


def _answer(high: float, at: float | None, ahead: bool) -> Literal["always", "never", "from", "until", "undecided"]:
    """By bounds in logs. Minus infinity: who is ahead at the end is so everywhere; plus: may not be so even there."""
    if high == -math.inf:
        return "always" if ahead else "never"
    if at is None or high == math.inf:
        return "undecided"
    return "from" if ahead else "until"


def _common(first: Samples, second: Samples) -> Array:
    """All sizes at which at least one was measured and the other on both sides of it."""
    if not first or not second or min(*first, *second) <= 0:
        raise ValueError("crossover: needs two curves over sizes above 0; measure both at two sizes or more")
    low, high = max(min(first), min(second)), min(max(first), max(second))
    sizes = np.array(sorted({size for size in (*first, *second) if low <= size <= high}), np.float64)
    if len(sizes) < 2:
        raise ValueError("crossover: the curves share fewer than two sizes; measure both over the same range")
    return sizes


def _along(curve: Samples, sizes: Array) -> Array:
    """Weights that turn a curve's logs at its own sizes into those at the common sizes."""
    own = np.log(sorted(curve))
    return np.array([np.interp(np.log(sizes), own, row) for row in np.eye(len(own))]).T


def _means(curve: Samples) -> Array:
    return np.array([np.mean(np.log(curve[size])) for size in sorted(curve)])


def _drawn(curve: Samples, sizes: Array, confidence: float, resamples: int, draw: np.random.Generator) -> Array:
    """Curves of resampled processes. Resamples of a few processes scatter too little, so that their means are moved
    away from the sample's mean until an interval of them has the width of Student's."""
    columns = []
    for size in sorted(curve):
        logs = np.sort(np.log(np.asarray(curve[size], np.float64)))
        count = len(logs)
        means = logs[draw.integers(0, count, (resamples, count))].mean(axis=1)
        wider = math.sqrt(count / (count - 1)) * float(t_quantile(confidence, count - 1) / t_quantile(confidence, 1e9))
        columns.append(logs.mean() + wider * (means - logs.mean()))
    found: Array = np.stack(columns, axis=1) @ _along(curve, sizes).T
    return found


def _crossings(lead: Array, logs: Array) -> tuple[float, ...]:
    ahead = lead > 0
    starts = np.flatnonzero(ahead[:-1] != ahead[1:])
    found = _zero(lead[starts], lead[starts + 1], logs[starts], logs[starts + 1])
    return tuple(float(value) for value in np.exp(found))


def _zero(left: Array, right: Array, start: Array, end: Array) -> Array:
    """Where the straight line from left to right is zero; they differ in sign."""
    found: Array = start + left / (left - right) * (end - start)
    return found


def _last_change(leads: Array, logs: Array, ahead_at_end: bool) -> Array:
    """For each row where the lead changes last; minus infinity: nowhere; plus: another is ahead at the end."""
    ahead = leads > 0
    changes = ahead[:, :-1] != ahead[:, 1:]
    start = changes.shape[1] - 1 - np.argmax(changes[:, ::-1], axis=1)
    rows = np.arange(len(leads))
    left, right = leads[rows, start], leads[rows, start + 1]
    found = np.full(len(leads), -np.inf)
    some = changes.any(axis=1)
    found[some] = _zero(left[some], right[some], logs[start[some]], logs[start[some] + 1])
    found[ahead[:, -1] != ahead_at_end] = np.inf
    return found
