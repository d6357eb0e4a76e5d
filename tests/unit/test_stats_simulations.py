"""Studies of one and the same cell, again and again: how often is it found different from itself? And what is seen?"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from timetrial.stats.intervals import process_value, ratio
from timetrial.stats.power import power, processes_for, smallest_effect, table
from timetrial.stats.verdicts import verdict

rng = np.random.default_rng
Array = np.ndarray[Any, Any]
STUDIES = 2000


def missed(studies: Array, truth: float = 1.0) -> float:
    """Share of studies, each two rows of process times, whose ratio's interval misses the truth."""
    found = [ratio(a, b) for a, b in studies]
    return sum(not (one.low or 0) <= truth <= (one.high or math.inf) for one in found) / len(found)


def alarms(studies: Array) -> float:
    return sum(verdict(a, b).word in ("faster", "slower") for a, b in studies) / len(studies)


def plain(draw: np.random.Generator, count: int) -> Array:
    return np.exp(draw.normal(0, 0.02, (STUDIES, 2, count)))


def student(draw: np.random.Generator, count: int) -> Array:
    return np.exp(0.01 * draw.standard_t(3, (STUDIES, 2, count)))


def contaminated(draw: np.random.Generator, count: int) -> Array:
    """One process in ten is disturbed, and then takes longer."""
    disturbed = (draw.random((STUDIES, 2, count)) < 0.1) * draw.exponential(0.1, (STUDIES, 2, count))
    return np.exp(draw.normal(0, 0.01, (STUDIES, 2, count)) + disturbed)


def nested(draw: np.random.Generator, count: int, laps: int) -> Array:
    """Laps: each process has an offset of its own of 1 %, its laps scatter by 0.5 %."""
    offsets = draw.normal(0, 0.01, (STUDIES, 2, count, 1))
    return np.exp(offsets + draw.normal(0, 0.005, (STUDIES, 2, count, laps)))


# --- false alarms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 5, 10])
def test_the_interval_misses_in_one_of_twenty(count: int) -> None:
    assert missed(plain(rng(1), count)) == pytest.approx(0.05, abs=0.02)


def test_so_it_does_where_there_is_a_difference() -> None:
    studies = plain(rng(2), 5)
    studies[:, 1] *= 1.3
    assert missed(studies, 1.3) == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("count", [3, 5, 10])
@pytest.mark.parametrize("tails", [student, contaminated])
def test_heavy_tails_make_it_more_cautious_not_less(tails: Callable[..., Array], count: int) -> None:
    assert 0.01 <= missed(tails(rng(3), count)) <= 0.07


@pytest.mark.parametrize("simulated", [plain, student, contaminated])
def test_the_margin_makes_false_alarms_of_the_verdict_rarer_still(simulated: Callable[..., Array]) -> None:
    studies = simulated(rng(4), 5)
    assert alarms(studies) < missed(studies)
    assert alarms(studies) <= 0.05


def test_a_quiet_cell_is_the_same_as_itself() -> None:
    studies = np.exp(rng(5).normal(0, 0.002, (500, 2, 5)))
    assert sum(verdict(a, b).word == "same" for a, b in studies) / 500 > 0.99


@pytest.mark.parametrize("count", [3, 5, 10])
def test_processes_summed_up_by_the_median_of_their_laps_are_a_sample(count: int) -> None:
    medians = np.median(nested(rng(6), count, 10), axis=-1)
    assert missed(medians) == pytest.approx(0.05, abs=0.02)
    one = nested(rng(6), count, 10)[0, 0, 0]
    assert process_value(one) == medians[0, 0, 0]


@pytest.mark.parametrize("count", [3, 10])
def test_pooled_laps_are_not(count: int) -> None:
    """A third and more of all studies find the cell different from itself, with five laps; the more laps, the worse."""
    few = nested(rng(7), count, 5).reshape(STUDIES, 2, -1)
    assert 0.30 < missed(few) < 0.48
    many = nested(rng(7), count, 20).reshape(STUDIES, 2, -1)
    assert missed(many) > 0.5


# --- order ------------------------------------------------------------------------------------------------------------


def under_drift(order: Callable[[np.random.Generator], Array], count: int = 10) -> Array:
    """A session in which the machine slows down by 3 % while two names of one cell are run, at 0.5 % of noise."""
    draw = rng(8)
    drift = np.linspace(0, 0.03, 2 * count)
    found = np.empty((STUDIES, 2, count))
    for study in found:
        study[:] = np.exp(drift[order(draw)] + draw.normal(0, 0.005, (2, count)))
    return found


def one_after_the_other(draw: np.random.Generator) -> Array:
    return np.arange(20).reshape(2, 10)


def always_first(draw: np.random.Generator) -> Array:
    return np.arange(20).reshape(10, 2).T


def randomised_blocks(draw: np.random.Generator) -> Array:
    return draw.permuted(np.arange(20).reshape(10, 2), axis=1).T


def bias(studies: Array) -> float:
    return abs(float(np.log(studies[:, 1]).mean() - np.log(studies[:, 0]).mean()))


def test_randomised_complete_blocks_withstand_drift() -> None:
    studies = under_drift(randomised_blocks)
    assert bias(studies) < 0.0003
    assert missed(studies) <= 0.07


def test_one_cell_after_the_other_does_not() -> None:
    studies = under_drift(one_after_the_other)
    assert bias(studies) == pytest.approx(0.0158, abs=0.0005)
    assert missed(studies) > 0.95
    assert alarms(studies) > 0.2


def test_the_same_one_always_first_is_biased_a_little() -> None:
    assert bias(under_drift(always_first)) == pytest.approx(0.03 / 19, abs=0.0003)


# --- power ------------------------------------------------------------------------------------------------------------

EFFECTS, SPREADS, PROCESSES = (0.01, 0.02, 0.05), (0.005, 0.01, 0.02), (5, 10, 20)


@pytest.mark.parametrize("found", table(EFFECTS, SPREADS, PROCESSES), ids=str)
def test_power_is_the_noncentral_t(found: Any) -> None:
    freedom = 2 * found.processes - 2
    shift = (math.log1p(found.effect) - math.log(1.01)) / (found.spread * math.sqrt(2 / found.processes))
    expected = stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, shift)
    assert found.power == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("spread", [0.005, 0.02])
@pytest.mark.parametrize("count", PROCESSES)
@pytest.mark.parametrize("effect", EFFECTS)
def test_power_is_how_often_the_verdict_sees_the_effect(effect: float, count: int, spread: float) -> None:
    draw, studies = rng(9), 500
    a, b = np.exp(draw.normal(0, spread, (2, studies, count)))
    seen = sum(verdict(x, (1 + effect) * y).word == "faster" for x, y in zip(a, b, strict=True)) / studies
    expected = power(effect, spread, count)
    # Welch's freedom is a little below Student's.
    assert seen == pytest.approx(expected, abs=4 * math.sqrt(max(expected * (1 - expected), 0.002) / studies) + 0.015)


def test_power_grows_with_effect_and_processes_and_falls_with_spread() -> None:
    cells = {(one.effect, one.spread, one.processes): one.power for one in table(EFFECTS, SPREADS, PROCESSES)}
    values = np.array([[[cells[e, s, p] for p in PROCESSES] for s in SPREADS] for e in EFFECTS])
    assert (np.diff(values, axis=0) >= 0).all()
    assert (np.diff(values[1:], axis=1) <= 0).all()
    assert (np.diff(values[1:], axis=2) >= 0).all()
    # An effect on the border of the margin is called in 2.5 %, whatever is spent.
    assert values[0] == pytest.approx(0.025, abs=1e-6)


def test_the_power_is_a_number_however_far_away_the_effect() -> None:
    values = [power(effect, 0.01, 8) for effect in np.geomspace(0.011, 5, 400)]
    assert all(before <= after + 1e-12 for before, after in pairwise(values))
    assert values[-1] == 1.0


def test_known_corners_of_the_power() -> None:
    assert power(0.5, 0.01, 5) == pytest.approx(1.0)
    assert power(0.0, 0.005, 20) < 1e-4
    assert power(0.05, 0.01, 1) == 0.0
    assert (power(0.05, 0.0, 3), power(0.005, 0.0, 3)) == (1.0, 0.0)
    assert power(1 / 1.05 - 1, 0.02, 5) == pytest.approx(power(0.05, 0.02, 5))
    assert power(0.05, 0.02, 5, floor=0.04) < power(0.05, 0.02, 5)


@settings(deadline=None, max_examples=30)
@given(st.floats(0.015, 0.2), st.floats(0.003, 0.03))
def test_as_many_processes_as_it_says_and_no_fewer_see_the_effect(effect: float, spread: float) -> None:
    count = processes_for(effect, spread)
    assert count is not None
    assert power(effect, spread, count) >= 0.8
    assert count == 2 or power(effect, spread, count - 1) < 0.8


@settings(deadline=None, max_examples=30)
@given(st.floats(0.001, 0.05), st.integers(2, 30), st.floats(0.1, 0.95))
def test_the_smallest_effect_is_seen_as_often_as_wanted(spread: float, processes: int, wanted: float) -> None:
    effect = smallest_effect(spread, processes, wanted)
    assert effect > 0.01
    assert power(effect, spread, processes) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(("processes", "wanted"), [(1, 0.8), (5, 1.0), (5, 0.0)])
def test_an_effect_that_is_never_or_always_seen_is_refused(processes: int, wanted: float) -> None:
    with pytest.raises(ValueError, match="ask of 2 or more"):
        smallest_effect(0.01, processes, wanted)


def test_what_no_study_sees_has_no_number() -> None:
    assert processes_for(0.01, 0.01) is None
