"""Adaptive stopping: what it promises still holds though it looks again and again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timetrial.stats.intervals import interval, ratio
from timetrial.stats.stopping import decided, further, guarded, width_reached
from timetrial.stats.verdicts import verdict

rng = np.random.default_rng
samples = st.lists(st.floats(0.9, 1.1), min_size=2, max_size=10)


def exactly(spread: float, count: int) -> list[float]:
    """A sample whose logs have this deviation, whatever its size."""
    logs = rng(count).standard_normal(count)
    return [float(value) for value in np.exp(spread * (logs - logs.mean()) / logs.std(ddof=1))]


@settings(deadline=None)
@given(samples, st.floats(1e-4, 0.5))
def test_the_width_is_reached_where_the_interval_says(values: list[float], target: float) -> None:
    half = interval(values).half_width
    assert half is not None
    assert width_reached(values, target) == (half <= target)


def test_one_process_never_reaches_a_width() -> None:
    assert not width_reached([1.0], 1e9)
    assert further([1.0], 0.01) == 1
    assert further([], 0.01) == 2


@pytest.mark.parametrize("target", [0.05, 0.01, 0.005])
@pytest.mark.parametrize("spread", [0.005, 0.01, 0.02])
def test_as_many_further_processes_as_it_says_reach_the_width_and_one_less_does_not(
    spread: float, target: float
) -> None:
    more = further(exactly(spread, 3), target)
    assert more < 1000
    assert width_reached(exactly(spread, 3 + more), target)
    assert more == 0 or not width_reached(exactly(spread, 3 + more - 1), target)


def test_what_is_reached_needs_none_and_what_is_out_of_reach_a_thousand() -> None:
    assert further([1.0, 1.0, 1.0], 0.005) == 0
    assert further([1.0, 3.0], 0.001) == 1000


@settings(deadline=None)
@given(samples, st.floats(1e-3, 0.1), st.floats(1e-3, 0.1))
def test_a_finer_target_never_needs_fewer(values: list[float], x: float, y: float) -> None:
    assert further(values, min(x, y)) >= further(values, max(x, y))


def test_one_look_is_a_verdict() -> None:
    a, b = exactly(0.01, 5), [1.03 * value for value in exactly(0.01, 6)]
    assert decided(a, b) == verdict(a, b)
    assert guarded(1) == pytest.approx(0.95)


def test_more_looks_cost_confidence_but_less_than_an_even_share() -> None:
    levels = [1 - guarded(looks) for looks in range(1, 30)]
    assert levels == sorted(levels, reverse=True)
    assert all(level > 0.05 / looks for looks, level in enumerate(levels[1:], 2))
    with pytest.raises(ValueError, match="at least one look"):
        guarded(0)


# Pocock's constant levels for 5 % over evenly spaced looks (Biometrika 64, 1977).
@pytest.mark.parametrize(("looks", "pocock"), [(2, 0.0294), (3, 0.0221), (4, 0.0182), (5, 0.0158), (10, 0.0106)])
def test_the_level_stays_by_pococks(looks: int, pocock: float) -> None:
    assert 0.8 * pocock < 1 - guarded(looks) < 1.02 * pocock


def alarms(first: int, last: int, every: int, confidence: float, studies: int = 2000) -> float:
    """Studies of one and the same cell in which any look finds it different from itself."""
    draw, counts = rng(7), range(first, last + 1, every)
    wrong = 0
    for a, b in np.exp(draw.normal(0, 0.02, (studies, 2, last))):
        found = (ratio(a[:count], b[:count], confidence) for count in counts)
        wrong += any(one.low is not None and one.high is not None and not one.low <= 1 <= one.high for one in found)
    return wrong / studies


@pytest.mark.parametrize(("first", "last", "every"), [(3, 10, 1), (3, 20, 1), (5, 20, 5), (10, 30, 10)])
def test_however_often_the_design_looks_it_is_wrong_in_one_of_twenty(first: int, last: int, every: int) -> None:
    """The pure interval: with the verdict's margin false alarms are rarer still."""
    looks = len(range(first, last + 1, every))
    noise = 3 * math.sqrt(0.05 * 0.95 / 2000)
    assert alarms(first, last, every, guarded(looks)) <= 0.05 + noise


def test_unguarded_looks_would_be_wrong_far_more_often() -> None:
    assert alarms(3, 10, 1, 0.95, studies=800) > 0.1


def test_on_the_border_of_the_margin_it_stays_undecided() -> None:
    """There every decision is wrong, FASTER as well as SAME."""
    draw, studies, wrong = rng(8), 600, 0
    for a, b in np.exp(draw.normal(0, 0.004, (studies, 2, 10))):
        wrong += any(decided(a[:n], 1.01 * b[:n], looks=8).word != "undecided" for n in range(3, 11))
    assert wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


def test_a_clear_difference_stops_early() -> None:
    draw, ends = rng(9), []
    for a, b in np.exp(draw.normal(0, 0.01, (100, 2, 10))):
        ends.append(next((n for n in range(3, 11) if decided(a[:n], 1.2 * b[:n], looks=8).word == "faster"), None))
    assert None not in ends
    assert np.mean([end for end in ends if end]) < 4
