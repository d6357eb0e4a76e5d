"""What more threads or devices bring: speed-up, efficiency, and from how many on one more no longer helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from timetrial.stats.intervals import Interval, Ratio, interval, ratio
from timetrial.stats.verdicts import LEAST_FLOOR, Verdict, holm


@dataclass(frozen=True)
class Point:
    """At one count. `speedup` is over the smallest count, `efficiency` its share of what that many could bring."""

    count: int
    time: Interval
    speedup: Ratio
    efficiency: Ratio
    step: Verdict | None = None  # against the next smaller count

    @property
    def superlinear(self) -> bool:
        """More than the count itself, for certain: the smallest count was short of something else, often of memory."""
        return self.efficiency.low is not None and self.efficiency.low > 1 + LEAST_FLOOR


@dataclass(frozen=True)
class Scaling:
    """`decays`: no count beyond `decay` is faster, and each smaller one is beaten by some larger one.

    `grows`: each count but the largest is beaten by a larger one, so that the decay lies beyond what was measured.
    `undecided`: it may be at `decay` or at a larger count; `more` further processes of each would tell.
    """

    points: tuple[Point, ...]
    answer: Literal["decays", "grows", "undecided"]
    decay: int | None = None
    more: int | None = None


def scaling(samples: Mapping[int, Sequence[float]], floor: float = LEAST_FLOOR, confidence: float = 0.95) -> Scaling:
    """Of process medians at each count of threads or devices. The intervals are each at `confidence`; the decay rests
    on all pairs of counts, and Holm's correction keeps the error of all of them together."""
    counts = sorted(samples)
    if not counts or counts[0] < 1:
        raise ValueError(f"scaling: needs counts of at least 1, not {counts}; name the threads or devices of each cell")
    if empty := [count for count in counts if not len(samples[count])]:
        raise ValueError(f"scaling: no process was measured at {empty}; leave these counts out")
    pairs = {(more, less): (samples[more], samples[less]) for less in counts for more in counts if more > less}
    verdicts = holm(pairs, floor, confidence)
    steps = {more: verdicts[more, less] for less, more in pairwise(counts)}
    points = tuple(_point(count, counts[0], samples, steps.get(count), confidence) for count in counts)
    return _decay(points, counts, verdicts)


def _point(
    count: int, base: int, samples: Mapping[int, Sequence[float]], step: Verdict | None, confidence: float
) -> Point:
    speedup = Ratio(1.0, 1.0, 1.0) if count == base else ratio(samples[count], samples[base], confidence)
    share = base / count
    bounds = (None if bound is None else bound * share for bound in (speedup.low, speedup.high))
    efficiency = Ratio(speedup.value * share, *bounds)
    return Point(count, interval(samples[count], confidence), speedup, efficiency, step)


def _decay(points: tuple[Point, ...], counts: list[int], verdicts: Mapping[tuple[int, int], Verdict]) -> Scaling:
    """The first count that no larger one certainly beats is where adding may have stopped to help."""
    for less in counts:
        against = [verdicts[more, less] for more in counts if more > less]
        if any(found.word == "faster" for found in against):
            continue
        if less == counts[-1]:
            break
        open_ = [found.more for found in against if found.word == "undecided"]
        if not open_:
            return Scaling(points, "decays", less)
        return Scaling(points, "undecided", less, max((more for more in open_ if more is not None), default=None))
    return Scaling(points, "grows" if len(counts) > 1 else "undecided")
