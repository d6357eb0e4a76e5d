"""Confidence of a verdict, its p-value, and Holm's correction over a table."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from timetrial.stats.intervals import ratio
from timetrial.stats.verdicts import Verdict, holm, p_value, verdict

rng = np.random.default_rng
MARGIN = math.log(1.01)
samples = st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=10).filter(lambda v: np.std(np.log(v), ddof=1) > 1e-5)
confidences = st.floats(0.5, 0.999)


def drawn(draw: np.random.Generator, mean: float, spread: float = 0.01, count: int = 5) -> np.ndarray[Any, Any]:
    return np.exp(draw.normal(mean, spread, count))


# --- confidence -------------------------------------------------------------------------------------------------------


def test_the_verdict_rests_on_the_interval_of_its_confidence() -> None:
    a, b = drawn(rng(1), 0.0), drawn(rng(2), 0.02)
    for confidence in (0.8, 0.95, 0.999):
        found = verdict(a, b, confidence=confidence)
        assert found.speedup == ratio(a, b, confidence)
        assert found.confidence == confidence


@settings(deadline=None)
@given(samples, samples, confidences, confidences)
def test_more_confidence_never_decides_what_less_did_not(a: list[float], b: list[float], x: float, y: float) -> None:
    less, more = verdict(a, b, confidence=min(x, y)), verdict(a, b, confidence=max(x, y))
    assert more.word in (less.word, "undecided")


@settings(deadline=None)
@given(samples, samples, st.randoms(use_true_random=False), st.floats(1e-3, 1e3))
def test_neither_the_order_of_processes_nor_the_unit_matters(
    a: list[float], b: list[float], random: Any, unit: float
) -> None:
    moved = [value * unit for value in a]
    random.shuffle(moved)
    p, other = p_value(a, b), p_value(moved, [value * unit for value in b])
    assert p == pytest.approx(other, rel=1e-6, abs=1e-9)


def test_more_confidence_asks_for_more_processes() -> None:
    a, b = drawn(rng(3), 0.0, 0.03), drawn(rng(4), 0.0, 0.03)
    wanted = [verdict(a, b, confidence=confidence).more or 0 for confidence in (0.9, 0.95, 0.99, 0.999)]
    assert wanted == sorted(wanted)
    assert wanted[0] < wanted[-1]


# --- p-values ---------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(samples, samples)
def test_the_p_value_is_twice_that_of_scipys_one_sided_test_at_the_nearest_border(
    a: list[float], b: list[float]
) -> None:
    la, lb = np.log(a), np.log(b)
    gap = lb.mean() - la.mean()

    def one_sided(border: float, alternative: Any) -> float:
        return float(stats.ttest_ind(lb - border, la, equal_var=False, alternative=alternative).pvalue)

    faster, slower = one_sided(MARGIN, "greater"), one_sided(-MARGIN, "less")
    same = max(one_sided(MARGIN, "less"), one_sided(-MARGIN, "greater"))
    least = min(faster, slower, same)
    assume(abs(abs(gap) - MARGIN) > 1e-9)
    assert p_value(a, b) == pytest.approx(2 * least, rel=1e-5, abs=1e-12)


@settings(deadline=None)
@given(samples, samples)
def test_a_pair_is_decided_just_where_its_p_value_says(a: list[float], b: list[float]) -> None:
    p = p_value(a, b)
    assert p is not None
    assume(1e-9 < p < 0.9)
    assert verdict(a, b, confidence=1 - p * 1.001).word != "undecided"
    assert verdict(a, b, confidence=1 - p * 0.999).word == "undecided"


def test_p_values_at_the_ends() -> None:
    assert p_value([1.0], [2.0, 2.0]) is None
    assert p_value([1.0, 1.0], [2.0, 2.0]) == 0.0
    assert p_value([1.0, 1.0], [1.0, 1.0]) == 0.0  # the same, for certain
    a = drawn(rng(5), 0.0)
    assert p_value(a, a * 1.01) == pytest.approx(1.0)  # on the border nothing can be said


@settings(deadline=None)
@given(samples, samples)
def test_exchanging_the_two_leaves_the_p_value(a: list[float], b: list[float]) -> None:
    assert p_value(a, b) == pytest.approx(p_value(b, a), rel=1e-9, abs=1e-12)


# --- Holm -------------------------------------------------------------------------------------------------------------


def test_a_family_of_one_is_a_verdict() -> None:
    a, b = drawn(rng(6), 0.0), drawn(rng(7), 0.05)
    assert holm({"only": (a, b)}) == {"only": verdict(a, b)}
    assert holm({}) == {}


def test_the_steps_are_holms() -> None:
    """By hand: sorted p against the error over what is left, until the first that is above it."""
    draw = rng(14)
    pairs = {i: (drawn(draw, 0.0), drawn(draw, gap)) for i, gap in enumerate([0.0, 0.1, 0.03, 0.02, 0.035, 0.3])}
    p = {key: p_value(*pair) or 0.0 for key, pair in pairs.items()}
    order = sorted(p, key=p.__getitem__)
    survive = list(itertools.takewhile(lambda key: p[key] <= 0.05 / (6 - order.index(key)), order))
    found = holm(pairs)
    assert {key for key, one in found.items() if one.word != "undecided"} == set(survive)
    assert 1 < len(survive) < len([key for key in p if p[key] <= 0.05])  # the case has something to show
    assert list(found) == list(pairs)
    for rank, key in enumerate(order):
        expected = 1 - 0.05 / (6 - min(rank, len(survive)))
        assert found[key].confidence == pytest.approx(expected)


def test_what_does_not_survive_says_how_many_more() -> None:
    draw = rng(19)
    pairs = {i: (drawn(draw, 0.0, 0.02), drawn(draw, 0.05, 0.02)) for i in range(8)}
    alone = {key: verdict(*pair) for key, pair in pairs.items()}
    for key, found in holm(pairs).items():
        assert found.word in (alone[key].word, "undecided")
        if found.word == "undecided":
            assert found.more is not None and found.more >= (alone[key].more or 1)
    assert any(alone[key].word == "faster" and found.word == "undecided" for key, found in holm(pairs).items())


def test_a_pair_of_single_processes_makes_no_claim_and_takes_no_share() -> None:
    a, b = drawn(rng(10), 0.0), drawn(rng(11), 0.05)
    found = holm({"single": ([1.0], [2.0]), "pair": (a, b)})
    assert found["single"] == Verdict("undecided", ratio([1.0], [2.0]), 1)
    assert found["pair"] == verdict(a, b)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(samples, samples), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_the_table_does_not_matter(pairs: list[tuple[list[float], list[float]]], random: Any) -> None:
    keys = list(range(len(pairs)))
    random.shuffle(keys)
    forward = holm(dict(enumerate(pairs)))
    shuffled = holm({key: pairs[key] for key in keys})
    assert {k: v.word for k, v in forward.items()} == {k: v.word for k, v in shuffled.items()}


# --- simulation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truths", [[MARGIN] * 6, [0.3, 0.3, MARGIN, -MARGIN, MARGIN, 0.0]])
def test_a_whole_table_against_one_anchor_is_wrong_in_one_of_twenty_tables(truths: list[float]) -> None:
    """On the border of the margin every decision but UNDECIDED is wrong: the worst case, and pairs share the anchor."""
    draw, tables = rng(12), 1000
    wrong = wrong_alone = 0
    for _ in range(tables):
        anchor = drawn(draw, 0.0, 0.005)
        pairs = {index: (anchor, drawn(draw, truth, 0.005)) for index, truth in enumerate(truths)}
        border = [index for index, truth in enumerate(truths) if abs(truth) == MARGIN]
        found = holm(pairs)
        wrong += any(found[index].word != "undecided" for index in border)
        wrong_alone += any(verdict(*pairs[index]).word != "undecided" for index in border)
        assert all(found[i].word == "faster" for i, truth in enumerate(truths) if truth == 0.3)
    assert wrong / tables <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / tables)
    assert wrong_alone / tables > 0.08


def test_processes_wildly_apart_have_bounds_that_are_still_numbers() -> None:
    found = verdict([1.0, 2.0], [162.0, 1e-6], confidence=0.999)
    assert found.word == "undecided"
    assert found.speedup.low is not None and found.speedup.high is not None
    assert 0 < found.speedup.low < found.speedup.high < math.inf
