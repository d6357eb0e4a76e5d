"""Where two measured curves cross, and how well that is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timetrial.stats.crossover import Crossover, crossover

rng = np.random.default_rng
SIZES = (1, 2, 4, 8, 16, 32, 64)
Curve = dict[float, list[float]]


def steep(x: float) -> float:
    return 1.0 + x


def flat(x: float) -> float:
    return 5.0 + 0.4 * x


def curve(of: object, draw: np.random.Generator, spread: float = 0.01, count: int = 5) -> Curve:
    return {x: [float(v) for v in of(x) * np.exp(draw.normal(0, spread, count))] for x in SIZES}  # type: ignore[operator]


def exact(values: dict[float, float]) -> Curve:
    return {x: [value, value] for x, value in values.items()}


def test_the_crossing_is_that_of_straight_lines_in_log_log() -> None:
    """y = x and y = 4 cross at 4, and y = x and y = 8 / x at the root of 8: both straight there."""
    first = exact({1: 1, 16: 16})
    assert crossover(first, exact({1: 4, 16: 4})).at == pytest.approx(4)
    found = crossover(first, exact({1: 8, 16: 0.5}))
    assert found.at == pytest.approx(math.sqrt(8))
    assert (found.low, found.high) == pytest.approx((found.at, found.at))
    assert (found.answer, found.measured) == ("from", (1.0, 16.0))


def test_the_second_is_ahead_from_there_on_or_until_there() -> None:
    draw = rng(1)
    found = crossover(curve(steep, draw), curve(flat, draw))
    assert found.answer == "from"
    assert found.low is not None and found.at is not None and found.high is not None
    assert found.low < found.at < found.high
    assert found.low < 20 / 3 < found.high  # where 1 + x is 5 + 0.4 x
    draw = rng(1)
    second, first = curve(steep, draw), curve(flat, draw)
    other = crossover(first, second)
    assert other.answer == "until"
    assert other.at == pytest.approx(found.at)


def test_always_and_never() -> None:
    draw = rng(2)
    quick, slow = curve(flat, draw), curve(lambda x: 2 * flat(x), draw)
    assert crossover(slow, quick) == Crossover("always", None, None, None, (), (1.0, 64.0))
    assert crossover(quick, slow) == Crossover("never", None, None, None, (), (1.0, 64.0))


def test_a_curve_beside_itself_is_undecided() -> None:
    answers = []
    for seed in range(100):
        draw = rng(seed)
        answers.append(crossover(curve(flat, draw), curve(flat, draw), resamples=500).answer)
    assert answers.count("undecided") >= 90
    same = exact({1: 1, 2: 2})
    assert crossover(same, same) == Crossover("undecided", None, None, None, (), (1.0, 2.0))


def test_a_single_process_gives_a_point_and_no_answer() -> None:
    first, second = exact({1: 1, 16: 16}), exact({1: 4, 16: 4})
    second[16] = [4.0]
    found = crossover(first, second)
    assert (found.answer, found.low, found.high) == ("undecided", None, None)
    assert found.at == pytest.approx(4)


def test_close_to_the_end_of_what_was_measured_it_is_undecided_but_tells_what_it_knows() -> None:
    draw = rng(4)
    found = crossover(curve(steep, draw, 0.05, 4), curve(lambda x: 64.0, draw, 0.05, 4))
    assert found.answer == "undecided"
    assert found.low is not None and 30 < found.low < 64
    assert found.high is None


def test_close_to_its_start_the_lower_bound_is_open() -> None:
    draw = rng(5)
    found = crossover(curve(steep, draw, 0.05, 4), curve(lambda x: 2.05, draw, 0.05, 4))
    assert found.low is None
    assert found.high is not None and found.high < 2
    assert found.answer in ("from", "undecided")  # by whether the lead changes at all, as measured


def test_of_several_crossings_the_last_counts_and_all_are_told() -> None:
    first = exact({1: 1, 10: 1, 100: 1})
    found = crossover(first, exact({1: 0.5, 10: 2, 100: 0.5}))
    assert found.answer == "from"
    assert found.crossings == pytest.approx((math.sqrt(10), 10 * math.sqrt(10)))
    assert found.at == found.crossings[-1]


def test_curves_over_other_sizes_meet_on_what_they_share() -> None:
    found = crossover(exact({1: 1, 4: 4, 64: 64}), exact({2: 8, 32: 8}))
    assert found.measured == (2.0, 32.0)
    assert found.at == pytest.approx(8)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [({}, {1: 1.0}, "two sizes or more"), ({0: 1.0, 1: 1.0}, {0: 1.0, 1: 1.0}, "above 0"),
     ({1: 1.0, 2: 1.0}, {3: 1.0, 4: 1.0}, "same range"), ({1: 1.0}, {1: 1.0}, "same range")],
)  # fmt: skip
def test_curves_that_cannot_be_compared_are_refused_with_a_remedy(
    first: dict[float, float], second: dict[float, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        crossover(exact(first), exact(second))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.floats(1e-3, 1e3), st.randoms(use_true_random=False))
def test_neither_unit_nor_order_matters_and_a_seed_repeats(seed: int, unit: float, random: object) -> None:
    draw = rng(seed)
    first, second = curve(steep, draw), curve(flat, draw)
    moved = {x: [unit * v for v in values] for x, values in reversed(first.items())}
    for values in moved.values():
        random.shuffle(values)  # type: ignore[attr-defined]
    found = crossover(first, second, resamples=300)
    other = crossover(moved, {x: [unit * v for v in values] for x, values in second.items()}, resamples=300)
    assert other.answer == found.answer
    assert (other.at, other.low, other.high) == pytest.approx((found.at, found.low, found.high), rel=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000))
def test_more_confidence_is_wider(seed: int) -> None:
    draw = rng(seed)
    first, second = curve(steep, draw), curve(flat, draw)
    less, more = crossover(first, second, 0.8, 500), crossover(first, second, 0.95, 500)
    assert less.low is not None and less.high is not None and more.low is not None and more.high is not None
    assert more.low <= less.low <= less.high <= more.high


@pytest.mark.parametrize(("count", "spread"), [(3, 0.02), (5, 0.05), (10, 0.02)])
def test_the_interval_covers_the_crossing(count: int, spread: float) -> None:
    truth = crossover(exact({x: steep(x) for x in SIZES}), exact({x: flat(x) for x in SIZES})).at
    assert truth is not None
    draw, studies, hits = rng(6), 200, 0
    for _ in range(studies):
        found = crossover(curve(steep, draw, spread, count), curve(flat, draw, spread, count), resamples=400)
        hits += (found.low or 0) <= truth <= (found.high or math.inf)
    assert hits / studies >= 0.92
