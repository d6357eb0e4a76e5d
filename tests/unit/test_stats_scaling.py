"""Speed-up, efficiency, and from how many threads or devices on one more no longer helps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timetrial.stats.intervals import Ratio, interval, ratio
from timetrial.stats.scaling import scaling
from timetrial.stats.verdicts import verdict

rng = np.random.default_rng


def amdahl(serial: float, count: int, overhead: float = 0.0) -> float:
    return serial + (1 - serial) / count + overhead * count


def measured(
    times: dict[int, float], spread: float = 0.003, processes: int = 5, seed: int = 1
) -> dict[int, list[float]]:
    draw = rng(seed)
    return {
        count: [float(v) for v in time * np.exp(draw.normal(0, spread, processes))] for count, time in times.items()
    }


def test_speed_up_and_efficiency_are_ratios_to_the_smallest_count() -> None:
    samples = measured({2: 1.0, 4: 0.6, 8: 0.5})
    found = scaling(samples)
    assert [point.count for point in found.points] == [2, 4, 8]
    first, second, third = found.points
    assert (first.speedup, first.efficiency, first.step) == (Ratio(1.0, 1.0, 1.0), Ratio(1.0, 1.0, 1.0), None)
    assert third.speedup == ratio(samples[8], samples[2])
    assert third.speedup.low is not None and third.efficiency.low is not None
    assert third.efficiency.value == pytest.approx(third.speedup.value / 4)
    assert third.efficiency.low == pytest.approx(third.speedup.low / 4)
    assert second.time == interval(samples[4])
    assert second.step is not None and second.step.word == "faster"
    assert second.step.speedup.value == verdict(samples[4], samples[2]).speedup.value


def test_while_each_step_helps_the_decay_lies_beyond() -> None:
    found = scaling(measured({n: amdahl(0.05, n) for n in (1, 2, 4, 8)}))
    assert (found.answer, found.decay, found.more) == ("grows", None, None)


def test_where_it_gets_slower_again_it_decays_at_the_best() -> None:
    found = scaling(measured({n: amdahl(0.05, n, 0.03) for n in (1, 2, 4, 8, 16)}))
    assert (found.answer, found.decay) == ("decays", 4)
    assert found.points[-1].step is not None and found.points[-1].step.word == "slower"


def test_where_more_brings_the_same_it_decays_too() -> None:
    found = scaling(measured({1: 1.0, 2: 0.6, 3: 0.6, 4: 0.6}, spread=0.001, processes=8))
    assert (found.answer, found.decay) == ("decays", 2)


def test_a_plateau_before_a_gain_is_no_decay() -> None:
    """Two threads on one physical core bring nothing, the next core does."""
    found = scaling(measured({1: 1.0, 2: 1.0, 4: 0.5}, spread=0.001))
    assert found.answer == "grows"
    assert found.points[1].step is not None and found.points[1].step.word == "same"


def test_what_is_not_told_apart_is_undecided_and_says_how_many_more() -> None:
    found = scaling(measured({1: 1.0, 2: 0.5, 4: 0.49}, spread=0.03, seed=2))
    assert (found.answer, found.decay) == ("undecided", 2)
    assert found.more is not None and found.more > 3


def test_more_than_the_count_itself_is_marked() -> None:
    found = scaling(measured({1: 1.0, 2: 0.4, 4: 0.25}))
    assert [point.superlinear for point in found.points] == [False, True, False]


def test_single_processes_are_undecided() -> None:
    found = scaling({1: [1.0], 2: [0.5]})
    assert (found.answer, found.decay) == ("undecided", 1)
    assert not found.points[1].superlinear


def test_one_count_says_nothing() -> None:
    found = scaling({1: [1.0, 1.1, 1.2]})
    assert (found.answer, found.decay, len(found.points)) == ("undecided", None, 1)


@pytest.mark.parametrize("samples", [{}, {0: [1.0]}, {-1: [1.0], 2: [1.0]}])
def test_counts_are_refused_with_a_remedy(samples: dict[int, list[float]]) -> None:
    with pytest.raises(ValueError, match="name the threads or devices"):
        scaling(samples)


def test_counts_that_were_not_measured_are_refused_too() -> None:
    with pytest.raises(ValueError, match=r"at \[4\]; leave these counts out"):
        scaling({1: [1.0], 4: []})


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 500), st.sampled_from([0.25, 8.0]), st.randoms(use_true_random=False))
def test_neither_unit_nor_order_matters(seed: int, unit: float, random: object) -> None:
    samples = measured({n: amdahl(0.1, n, 0.02) for n in (1, 2, 4, 8)}, 0.02, 4, seed)
    counts = list(samples)
    random.shuffle(counts)  # type: ignore[attr-defined]
    found, other = scaling(samples), scaling({n: [unit * v for v in samples[n]] for n in counts})
    assert (other.answer, other.decay) == (found.answer, found.decay)
    assert [p.efficiency.value for p in other.points] == pytest.approx([p.efficiency.value for p in found.points])


def test_a_decay_is_seldom_claimed_where_there_is_none() -> None:
    """Each step brings 1.5 %, just above what counts."""
    wrong = sum(
        scaling(measured({1: 1.0, 2: 0.985, 3: 0.97}, 0.004, 4, seed)).answer == "decays" for seed in range(300)
    )
    assert wrong / 300 <= 0.08
