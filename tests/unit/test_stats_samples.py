"""Outliers, percentiles, and the bootstrap beside the t interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from timetrial.stats.bootstrap import crosscheck, expanded
from timetrial.stats.intervals import interval
from timetrial.stats.outliers import Outliers, outliers
from timetrial.stats.tails import LEAST, tails

rng = np.random.default_rng

# --- outliers ---------------------------------------------------------------------------------------------------------


def test_the_fences_are_tukeys() -> None:
    """Quartiles of 0 … 100 are 25 and 75: fences at -50 and 150, -125 and 225."""
    plain = [float(value) for value in range(101)]
    assert outliers(plain) == Outliers(101)
    # Symmetric additions leave the quartiles all but where they are.
    found = outliers([*plain, -60.0, 160.0, 165.0, -200.0, -250.0, -300.0, 400.0])
    assert found == Outliers(108, mild_low=1, mild_high=2, severe_low=3, severe_high=1)
    assert (found.mild, found.severe) == (3, 4)
    assert not found.warn


def test_more_than_five_percent_of_severe_ones_warn() -> None:
    quiet = [float(value) for value in np.linspace(0.99, 1.01, 95)]
    assert not outliers([*quiet, *[9.0] * 5]).warn
    assert outliers([*quiet, *[9.0] * 6]).warn


def test_nothing_has_no_outliers() -> None:
    assert outliers([]) == Outliers(0)
    assert not outliers([]).warn
    assert outliers([3.0]) == Outliers(1)


@settings(deadline=None)
@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=60), st.sampled_from([0.25, 4.0, 1024.0]))
def test_counts_do_not_depend_on_unit_or_order(values: list[int], unit: float) -> None:
    found = outliers(values)
    assert outliers([value * unit for value in values[::-1]]) == found
    assert found.mild + found.severe <= found.count / 2


def test_a_normal_sample_has_the_share_of_outliers_that_it_should() -> None:
    found = outliers(rng(1).normal(10, 1, 100_000))
    assert found.mild / found.count == pytest.approx(0.00698, abs=0.001)
    assert found.severe / found.count < 1e-4


# --- tails ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("percent", "least"), [(90, 64), (95, 130), (99, 662)])
def test_a_percentile_needs_its_sample(percent: int, least: int) -> None:
    values = [float(value) for value in range(least)]
    assert getattr(tails(values), f"p{percent}") == pytest.approx(np.percentile(values, percent))
    assert getattr(tails(values[1:]), f"p{percent}") is None
    assert LEAST[percent] == least
    # Where the numbers come from: the largest value is below the percentile in 0.13 % of samples at most.
    assert (percent / 100) ** least < 0.0013 < (percent / 100) ** (least - 2)


def test_the_median_needs_nothing_but_a_value() -> None:
    assert tails([2.0]).p50 == 2.0
    assert (tails([]).p50, tails([]).count) == (None, 0)
    assert tails([1.0, 2.0, 10.0]).p50 == 2.0


def test_percentiles_rise() -> None:
    found = tails(rng(2).lognormal(0, 1, 700))
    values = [found.p50, found.p90, found.p95, found.p99]
    assert None not in values
    assert values == sorted(values)  # type: ignore[type-var]


# --- bootstrap --------------------------------------------------------------------------------------------------------


def test_fewer_than_five_processes_are_not_resampled() -> None:
    assert crosscheck([1.0, 1.1, 1.2, 1.3]) is None
    assert crosscheck([1.0, 1.1, 1.2, 1.3, 1.4]) is not None


@pytest.mark.parametrize("count", [6, 10, 25])
def test_it_is_scipys_percentile_interval_at_the_wider_confidence(count: int) -> None:
    values = np.exp(rng(count).normal(0, 0.02, count))
    found = crosscheck(values, resamples=20_000)
    other = stats.bootstrap(
        (np.log(values),), np.mean, confidence_level=expanded(count, 0.95), method="percentile",
        n_resamples=20_000, rng=rng(1),
    ).confidence_interval  # fmt: skip
    assert found is not None and found.bootstrap.low is not None and found.bootstrap.high is not None
    assert (math.log(found.bootstrap.low), math.log(found.bootstrap.high)) == pytest.approx(other, abs=0.0012)
    assert found.t == interval(values)


def test_with_many_processes_the_correction_vanishes() -> None:
    assert expanded(100_000, 0.95) == pytest.approx(0.95, abs=1e-4)
    assert 0.95 < expanded(20, 0.95) < expanded(10, 0.95) < expanded(5, 0.95) < 1


@pytest.mark.parametrize(("count", "share"), [(5, 0.85), (8, 0.97), (20, 0.99)])
def test_on_plain_samples_the_two_agree(count: int, share: float) -> None:
    draw = rng(3)
    found = [crosscheck(np.exp(draw.normal(0, 0.02, count)), resamples=2000) for _ in range(150)]
    assert sum(one is not None and one.agree for one in found) / 150 >= share


@pytest.mark.parametrize("count", [5, 7, 10])
def test_one_process_far_off_and_they_do_not(count: int) -> None:
    found = crosscheck([*np.exp(rng(4).normal(0, 0.003, count - 1)), 1.2])
    assert found is not None
    assert not found.agree
    assert found.apart > found.tolerance == 0.4


def test_equal_processes_agree() -> None:
    found = crosscheck([0.25] * 6)
    assert found is not None and found.agree and found.apart == 0.0


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0.5, 2.0), min_size=5, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_the_order_of_processes_and_a_second_time_change_nothing(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = crosscheck(values, resamples=500), crosscheck(shuffled, resamples=500)
    assert one is not None and other is not None
    assert one.bootstrap.low == other.bootstrap.low
    assert one.apart == pytest.approx(other.apart, rel=1e-6)


def test_its_coverage_is_that_of_t_where_the_plain_percentiles_fail() -> None:
    """Why it is expanded."""
    draw, trials, count = rng(5), 1500, 5
    hits = plain = 0
    for logs in draw.normal(0, 0.02, (trials, count)):
        means = logs[draw.integers(0, count, (800, count))].mean(axis=1)
        outer = expanded(count, 0.95)
        low, high = np.quantile(means, ((1 - outer) / 2, (1 + outer) / 2))
        hits += low <= 0 <= high
        low, high = np.quantile(means, (0.025, 0.975))
        plain += low <= 0 <= high
    assert hits / trials == pytest.approx(0.93, abs=0.025)  # resamples of five cannot reach beyond their extremes
    assert plain / trials < 0.87
