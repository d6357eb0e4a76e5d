"""The three-way verdict: faster or slower, the same, or not decided yet; of one pair, or of all pairs of a table."""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from timetrial.stats.intervals import Gap, Ratio, gap, ratio, t_quantile, welch

LEAST_FLOOR = 0.01  # a smaller difference is never claimed, however quiet the session
MOST = 1000  # further processes: what these would not decide is not worth the wait
Word = Literal["faster", "slower", "same", "undecided"]
Sample = Sequence[float]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Verdict:
    """What is known of A against B. `more` further processes of each would decide, where that can be said.

    `confidence` is that of the interval behind it: higher than 95 % where many claims, or many looks, share the error.
    """

    word: Word
    speedup: Ratio
    more: int | None = None
    confidence: float = 0.95


def verdict(a: Sample, b: Sample, floor: float = LEAST_FLOOR, confidence: float = 0.95) -> Verdict:
    """`floor` is the smallest difference that this session can see, at least 1 %."""
    found = ratio(a, b, confidence)
    margin = _margin(floor)
    if found.low is None or found.high is None:
        return Verdict("undecided", found, max(2 - min(len(a), len(b)), 1), confidence)
    if found.low > margin:
        return Verdict("faster", found, None, confidence)
    if found.high < 1 / margin:
        return Verdict("slower", found, None, confidence)
    if found.low >= 1 / margin and found.high <= margin:
        return Verdict("same", found, None, confidence)
    return Verdict("undecided", found, _further(a, b, _distance(gap(a, b), margin), confidence), confidence)


def p_value(a: Sample, b: Sample, floor: float = LEAST_FLOOR) -> float | None:
    """The smallest error at which this pair is decided, whichever way; None for a single process.

    The three claims are three one-sided tests, each against the border of the margin. FASTER: that the log ratio is not
    above the upper one. SLOWER: not below the lower one. SAME: not inside, two tests at once, of which the border that
    is nearer to the estimate gives the larger p. Only the claim of the region in which the estimate lies can have a p
    below a half, and it is that of the distance to the nearest border. It is doubled because one truth can make two
    claims false (inside the margin: FASTER and SLOWER; on the upper border: FASTER and SAME). Doubled, it is the error
    at which the ratio's interval just touches the border, and the verdict, whichever of the three it is, can only be
    wrong where that interval misses the truth.
    """
    from scipy.special import stdtr

    found = gap(a, b)
    if found.error is None:
        return None
    distance = _distance(found, _margin(floor))
    if found.error == 0:
        return 0.0 if distance else 1.0
    return 2 * float(stdtr(found.freedom, -distance / found.error))


def holm(
    pairs: Mapping[Key, tuple[Sample, Sample]], floor: float = LEAST_FLOOR, confidence: float = 0.95
) -> dict[Key, Verdict]:
    """Verdicts on all pairs of a table, of which with the given confidence not a single one is wrong.

    The family is every pair that could be decided, not only those that are: its size would else depend on the data, and
    the few false alarms among many pairs would be judged as if they had been the only ones asked about. A pair of a
    single process makes no claim and takes no share. Holm's steps: the pair with the smallest p must be decided at
    1/m of the error, the next at 1/(m - 1), and so on; the first that is not ends it. It and all with a larger p are
    undecided, with the number of further processes that would decide them at the confidence where it ended.
    """
    known = {key: p for key, pair in pairs.items() if (p := p_value(*pair, floor)) is not None}
    found: dict[Key, Verdict] = {}
    level, going = confidence, True
    for rank, key in enumerate(sorted(known, key=known.__getitem__)):
        if going:
            level = 1 - (1 - confidence) / (len(known) - rank)
        found[key] = verdict(*pairs[key], floor, level)
        going = going and found[key].word != "undecided"
    return {key: found.get(key) or verdict(*pair, floor, confidence) for key, pair in pairs.items()}


def _margin(floor: float) -> float:
    return 1 + max(floor, LEAST_FLOOR)


def _distance(found: Gap, margin: float) -> float:
    """From the log ratio to the nearest border of the margin."""
    return abs(abs(found.log) - math.log(margin))


def _further(a: Sample, b: Sample, distance: float, confidence: float) -> int:
    """Processes of each until the half width would reach the nearest border of the margin, at today's spread."""
    va, vb = float(np.var(np.log(a), ddof=1)), float(np.var(np.log(b), ddof=1))

    def enough(more: int) -> bool:
        error, freedom = welch(va, len(a) + more, vb, len(b) + more)
        return float(t_quantile(confidence, freedom)) * error < distance

    # The half width only falls with more processes, so that the first that is enough is found by halving.
    return min(bisect.bisect_left(range(1, MOST), True, key=enough) + 1, MOST)
