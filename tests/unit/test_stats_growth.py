"""Growth laws: each is found where it is the truth, and none is claimed where the points do not carry it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from timetrial.stats.curves import Fit, affine
from timetrial.stats.growth import Growth, growth, score

rng = np.random.default_rng
Array = np.ndarray[Any, Any]
LAWS: dict[str, tuple[Callable[[Array], Array], str]] = {
    "no growth": (lambda x: 0 * x + 0.3, "constant"),
    "proportional": (lambda x: 2 * x, "linear"),
    "with a fixed cost": (lambda x: 10 + x, "linear"),
    "falling by a line": (lambda x: 400 - 3 * x, "linear"),
    "logarithm": (lambda x: 3 + np.log(x), "logarithmic"),
    "batches": (lambda x: 1 + 20 / x, "inverse"),
    "inverse": (lambda x: 5 / x, "inverse"),
    "square": (lambda x: 0.1 * x**2, "super-linear"),
    "root": (lambda x: np.sqrt(x), "power"),
    "a square above a fixed cost": (lambda x: 200 + x**2, "super-linear"),
}


def measured(law: Callable[[Array], Array], count: int, noise: float, seed: int) -> Growth:
    x = np.geomspace(1, 100, count)
    return growth(x.tolist(), (law(x) * np.exp(rng(seed).normal(0, noise, count))).tolist())


@pytest.mark.parametrize("count", [6, 10])
@pytest.mark.parametrize("name", list(LAWS))
def test_the_law_is_found_behind_two_percent_of_noise(name: str, count: int) -> None:
    law, wanted = LAWS[name]
    found = [measured(law, count, 0.02, seed) for seed in range(20)]
    assert sum(one.law == wanted for one in found) >= 18


@pytest.mark.parametrize("name", ["proportional", "with a fixed cost", "inverse", "square", "root"])
def test_four_points_carry_a_clear_law(name: str) -> None:
    law, wanted = LAWS[name]
    assert sum(measured(law, 4, 0.01, seed).law == wanted for seed in range(20)) >= 18


def test_below_four_sizes_nothing_is_said() -> None:
    assert growth([1, 2, 4], [1, 2, 4]) == Growth("too few points", 3)
    assert growth([1, 1, 2, 2, 4, 4], [1, 1, 2, 2, 4, 4]).law == "too few points"
    assert growth([], []).law == "too few points"


@pytest.mark.parametrize("noise", [0.01, 0.05])
@pytest.mark.parametrize("count", [4, 6, 10, 20])
def test_growth_is_seldom_claimed_where_there_is_none(count: int, noise: float) -> None:
    found = [measured(lambda x: 0 * x + 1, count, noise, seed).law for seed in range(150)]
    assert sum(law != "constant" for law in found) / 150 <= 0.10


def test_super_linear_is_seldom_claimed_of_what_is_linear() -> None:
    found = [measured(lambda x: x, count, 0.02, seed).law for count in (4, 6, 10) for seed in range(100)]
    assert sum(law == "super-linear" for law in found) / 300 <= 0.04


@pytest.mark.parametrize("exponent", [-1.5, 0.5, 1.5, 3.0])
def test_the_exponent_has_its_interval(exponent: float) -> None:
    hits = 0
    for seed in range(60):
        found = measured(lambda x: x**exponent, 7, 0.03, seed).exponent
        assert found is not None and found.low is not None and found.high is not None
        hits += found.low <= exponent <= found.high
    assert hits / 60 >= 0.88


def test_the_exponent_is_that_of_the_line_in_log_log() -> None:
    x, y = np.geomspace(1, 100, 7), np.geomspace(1, 100, 7) ** 1.5 * np.exp(rng(1).normal(0, 0.1, 7))
    line = stats.linregress(np.log(x), np.log(y))
    found = growth(x.tolist(), y.tolist()).exponent
    assert found is not None
    half = stats.t.ppf(0.975, 5) * line.stderr
    assert (found.value, found.low, found.high) == pytest.approx((line.slope, line.slope - half, line.slope + half))


def test_an_exact_line_in_log_log_is_not_known_better_than_its_points() -> None:
    found = growth([1, 2, 4, 8], [1, 4, 16, 64], noise=0.05).exponent
    assert found is not None and found.low is not None
    assert found.value == pytest.approx(2)
    assert found.low == pytest.approx(2 - stats.t.ppf(0.975, 2) * 0.05 / (math.log(2) * math.sqrt(5)))


def test_the_exponent_above_a_fixed_cost_has_a_profile() -> None:
    """In log-log this curve bends, and the plain line's exponent would be far too low."""
    found = measured(lambda x: 300 + x**2, 10, 0.01, 3)
    assert found.law == "super-linear"
    assert found.exponent is not None and found.exponent.low is not None and found.exponent.high is not None
    assert found.exponent.low < 2 < found.exponent.high
    assert found.exponent.high - found.exponent.low < 0.5
    assert found.fixed == pytest.approx(300, rel=0.03)


def test_a_staircase_is_found_with_its_steps() -> None:
    x = np.arange(1.0, 13)
    y = np.repeat([64.0, 128.0, 256.0], 4) * np.exp(rng(2).normal(0, 0.01, 12))
    found = growth(x.tolist(), y.tolist())
    assert (found.law, found.steps, found.falling) == ("staircase", (5.0, 9.0), False)
    assert found.fitted[0] == pytest.approx(64, rel=0.02)


def test_what_goes_up_and_down_is_irregular_and_not_constant() -> None:
    found = growth([1, 2, 3, 4, 5, 6], [1.0, 3.0, 1.0, 3.0, 1.0, 3.0])
    assert found.law == "irregular"
    assert found.residual is not None and found.residual > 0.15


def test_what_the_points_do_not_tell_apart_is_a_rival() -> None:
    """Over a narrow range a root, a logarithm and a line are one curve."""
    x = np.linspace(10, 14, 5)
    found = growth(x.tolist(), np.sqrt(x).tolist())
    assert len({found.law, *found.rivals}) >= 3


def test_fixed_cost_and_direction() -> None:
    found = growth([1, 2, 4, 8, 16], [11, 12, 14, 18, 26])
    assert (found.law, found.falling, found.exponent) == ("linear", False, None)
    assert found.fixed == pytest.approx(10, rel=1e-3)
    falling = growth([1, 2, 4, 8, 16], [21, 11, 6, 3.5, 2.25])
    assert (falling.law, falling.falling) == ("inverse", True)
    assert falling.fixed == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2], [1]),
        ([0, 1, 2, 3], [1, 1, 1, 1]),
        ([1, 2, 3, 4], [1, -1, 1, 1]),
        ([1, 2, 3, 4], [1, 1, math.inf, 1]),
        ([1, 2, 3, 4], [1, 1, math.nan, 1]),
    ],
)
def test_what_has_no_logarithm_is_refused_with_a_remedy(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="leave out the cells that have no value"):
        growth(x, y)


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(sorted(LAWS)), st.floats(1e-3, 1e3), st.floats(1e-2, 1e2), st.integers(0, 50))
def test_neither_unit_matters_nor_the_order_of_points(name: str, unit: float, scale: float, seed: int) -> None:
    x = np.geomspace(1, 64, 6)
    y = LAWS[name][0](x) * np.exp(rng(seed).normal(0, 0.02, 6))
    one, other = growth(x.tolist(), y.tolist()), growth((scale * x)[::-1].tolist(), (unit * y)[::-1].tolist())
    if name != "logarithm":  # of which the fixed part depends on the unit of x, and rounding may decide a tie
        assert other.law == one.law
    assert other.residual == pytest.approx(one.residual, rel=1e-3, abs=1e-6)
    assert other.fitted[::-1] == pytest.approx([unit * value for value in one.fitted], rel=1e-3)


def test_aicc_by_hand() -> None:
    fit = Fit(np.ones(8), 0.05, 2)
    assert score(fit, 8) == pytest.approx(8 * math.log(0.05**2) + 4 + 12 / 5)
    assert score(Fit(np.ones(8), 0.0, 2), 8, noise=0.01) == score(Fit(np.ones(8), 0.01, 2), 8)
    assert score(Fit(np.ones(4), 0.01, 3), 4) == math.inf


def test_the_least_squares_of_logs_are_scipys() -> None:
    from scipy.optimize import least_squares

    x = np.geomspace(1, 50, 9)
    y = (4 + 0.7 * x) * np.exp(rng(5).normal(0, 0.1, 9))
    fixed, slope = affine(np.array([x, x**2]), y)
    for row, g in enumerate((x, x**2)):
        other = least_squares(lambda p, g=g: np.log(y) - np.log(p[0] + p[1] * g), [1.0, 0.1], bounds=(1e-9, np.inf))
        assert (fixed[row], slope[row]) == pytest.approx(other.x, rel=1e-4)
