"""What a study could see before it is run: the probability of each verdict, in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.stats.intervals import t_quantile
from timetrial.stats.verdicts import LEAST_FLOOR, MOST


@dataclass(frozen=True)
class Power:
    """Probability that a true difference is called by its name, for so many processes of each."""

    effect: float  # 0.02: one takes 2 % longer than the other
    spread: float  # between processes, relative
    processes: int
    power: float


def power(effect: float, spread: float, processes: int, floor: float = LEAST_FLOOR, confidence: float = 0.95) -> float:
    """Of FASTER (of SLOWER, for an effect below 0), by the noncentral t, at equal spread and count of both."""
    from scipy.special import nctdtr

    if processes < 2:
        return 0.0
    error = spread * math.sqrt(2 / processes)
    beyond = abs(math.log1p(effect)) - math.log1p(max(floor, LEAST_FLOOR))
    if error == 0:
        return float(beyond > 0)
    freedom = 2 * processes - 2
    unseen = float(nctdtr(freedom, beyond / error, t_quantile(confidence, freedom)))
    # Tens of standard errors away its series underflows to no number, where the answer is beyond doubt.
    return float(beyond > 0) if math.isnan(unseen) else 1 - unseen


def table(
    effects: Sequence[float], spreads: Sequence[float], processes: Sequence[int], floor: float = LEAST_FLOOR
) -> tuple[Power, ...]:
    return tuple(
        Power(effect, spread, count, power(effect, spread, count, floor))
        for effect in effects
        for spread in spreads
        for count in processes
    )


def processes_for(effect: float, spread: float, wanted: float = 0.8, floor: float = LEAST_FLOOR) -> int | None:
    """The least number of processes of each that sees the effect with this probability. None: a thousand would not."""
    return next((count for count in range(2, MOST + 1) if power(effect, spread, count, floor) >= wanted), None)


def smallest_effect(spread: float, processes: int, wanted: float = 0.8, floor: float = LEAST_FLOOR) -> float:
    """The difference that so many processes of each see with this probability."""
    if processes < 2 or not 0 < wanted < 1:
        raise ValueError(f"smallest_effect: {processes} processes never see with {wanted}; ask of 2 or more, below 1")
    low, high = max(floor, LEAST_FLOOR), 1.0
    while power(high, spread, processes, floor) < wanted:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, spread, processes, floor) >= wanted else (middle, high)
    return high
