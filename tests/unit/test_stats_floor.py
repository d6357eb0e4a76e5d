"""What a session cannot see (floor), and whether the machine changed under it (drift)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from timetrial.stats.drift import drift
from timetrial.stats.floor import Floor, floor
from timetrial.stats.intervals import ratio
from timetrial.stats.verdicts import verdict

rng = np.random.default_rng
samples = st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=10)

# --- floor ------------------------------------------------------------------------------------------------------------


def test_the_floor_is_the_difference_between_the_twins() -> None:
    found = floor([1.0, 1.0, 1.0], [1.03, 1.03, 1.03])
    assert found.value == pytest.approx(0.03)
    assert (found.low, found.high) == pytest.approx((0.03, 0.03))
    assert found.told_apart


def test_the_floor_is_never_below_one_percent() -> None:
    found = floor([1.0, 1.001, 0.999], [1.001, 1.002, 1.0])
    assert found.value == 0.01
    assert found.low == 0.0
    assert found.high is not None and 0.001 < found.high < 0.01
    assert not found.told_apart


def test_without_a_twin_the_floor_is_the_least_and_has_no_evidence() -> None:
    assert floor([], [1.0]) == floor([1.0], []) == Floor(0.01, None, None, None)
    single = floor([1.0], [1.05])
    assert single.value == pytest.approx(0.05)
    assert (single.low, single.high) == (None, None)
    assert not single.told_apart


@settings(deadline=None)
@given(samples, samples)
def test_it_does_not_matter_which_of_the_two_is_the_twin(anchor: list[float], twin: list[float]) -> None:
    one, other = floor(anchor, twin), floor(twin, anchor)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert one.low == pytest.approx(other.low, rel=1e-6, abs=1e-9)
    assert one.high == pytest.approx(other.high, rel=1e-6, abs=1e-9)
    assert one.twins == ratio(anchor, twin)


@settings(deadline=None)
@given(samples, samples)
def test_the_difference_lies_in_its_interval(anchor: list[float], twin: list[float]) -> None:
    found = floor(anchor, twin)
    seen = math.expm1(abs(np.log(twin).mean() - np.log(anchor).mean()))
    assert found.low is not None and found.high is not None
    assert found.low * (1 - 1e-9) - 1e-12 <= seen <= found.high * (1 + 1e-9) + 1e-12


def test_at_its_own_floor_no_twin_is_faster() -> None:
    draw = rng(1)
    for _ in range(200):
        anchor, twin = np.exp(draw.normal(0, 0.02, (2, 5)))
        assert verdict(anchor, twin, floor(anchor, twin).value).word not in ("faster", "slower")


# --- drift ------------------------------------------------------------------------------------------------------------


def session(seed: int, shape: np.ndarray, noise: float = 0.004) -> list[float]:  # type: ignore[type-arg]
    return [float(v) for v in 0.02 * np.exp(shape + rng(seed).normal(0, noise, len(shape)))]


def test_a_quiet_session_has_neither_drift_nor_flags() -> None:
    found = drift(range(12), session(1, np.zeros(12)))
    assert (found.kind, found.flagged, found.limit) == ("none", (), 0.02)


@pytest.mark.parametrize("count", [6, 10, 30])
def test_a_slow_slide_is_seen_though_no_run_lies_far_from_the_median(count: int) -> None:
    found = drift(range(count), session(2, np.linspace(-0.016, 0.016, count), 0.001))
    assert found.kind == "slide"
    assert found.flagged == ()
    assert found.slide is not None and found.slide.low is not None and found.slide.high is not None
    assert found.slide.value == pytest.approx(math.exp(0.032), abs=0.004)
    assert found.slide.low > 1.02


@pytest.mark.parametrize(("count", "at"), [(6, 3), (10, 4), (10, 8), (30, 11)])
def test_a_jump_is_seen_with_its_place_and_its_size(count: int, at: int) -> None:
    found = drift(range(count), session(3, np.where(np.arange(count) < at, 0.0, 0.04), 0.002))
    assert found.kind == "jump"
    assert found.jump_at == at
    assert found.jump is not None and found.jump.low is not None
    assert found.jump.value == pytest.approx(1.04, abs=0.005)
    assert found.jump.low > 1.02
    assert found.flagged


def test_a_single_disturbed_run_is_flagged_and_is_no_drift() -> None:
    values = session(4, np.zeros(15))
    values[6] *= 1.3
    found = drift(range(15), values)
    assert found.kind == "none"
    assert found.flagged == (6,)
    assert found.deviations[6] == pytest.approx(0.3, abs=0.02)


def test_runs_are_flagged_beyond_the_floor_where_that_is_larger() -> None:
    values = [1.0, 1.0, 1.03, 1.0, 0.96]
    assert drift(range(5), values).flagged == (2, 4)
    assert drift(range(5), values, floor=0.035).flagged == (4,)
    assert drift(range(5), values, floor=0.05).flagged == ()


def test_a_drift_below_what_matters_is_none_however_certain() -> None:
    found = drift(range(20), session(5, np.linspace(0, 0.012, 20), 0.0005))
    assert found.kind == "none"
    assert found.slide is not None and found.slide.low is not None and found.slide.low > 1


def test_few_values_have_deviations_and_no_trend() -> None:
    found = drift([0, 1, 2], [1.0, 1.0, 1.1])
    assert (found.kind, found.slide, found.jump, found.flagged) == ("unknown", None, None, (2,))
    assert drift([], []).deviations == ()


def test_positions_need_not_be_in_order_nor_even() -> None:
    values = session(6, np.linspace(0, 0.05, 9))
    times = [0.0, 1.0, 5.0, 6.0, 7.0, 20.0, 21.0, 30.0, 31.0]
    found = drift(times, values)
    back = drift(times[::-1], values[::-1])
    assert (back.kind, back.slide, back.jump) == (found.kind, found.slide, found.jump)
    assert back.deviations == found.deviations[::-1]
    assert found.jump_at is not None and back.jump_at == 8 - found.jump_at


def test_the_slope_is_scipys_theil_sen_slope() -> None:
    values, at = session(7, np.linspace(0, 0.03, 11), 0.01), np.arange(11) ** 1.5
    found = drift(at.tolist(), values).slide
    assert found is not None and found.low is not None and found.high is not None
    slope, _, low, high = stats.theilslopes(np.log(values), at, alpha=0.975)
    assert math.log(found.value) / at[-1] == pytest.approx(slope)
    assert (math.log(found.low) / at[-1], math.log(found.high) / at[-1]) == pytest.approx((low, high))


@settings(deadline=None)
@given(st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=12), st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(values: list[float], unit: float) -> None:
    one, other = drift(range(len(values)), values), drift(range(len(values)), [unit * value for value in values])
    assert one.slide is not None and other.slide is not None
    assert one.slide.value == pytest.approx(other.slide.value, rel=1e-6)
    assert one.deviations == pytest.approx(other.deviations, rel=1e-6, abs=1e-9)


def test_a_constant_machine_does_not_drift() -> None:
    assert drift(range(8), [0.5] * 8).kind == "none"


@pytest.mark.parametrize("count", [5, 8, 20])
def test_a_noisy_machine_that_does_not_drift_is_seldom_said_to(count: int) -> None:
    """Slide or jump, of the 5 % that both share; the noise is far beyond the limit, so that the limit does not help."""
    draw, sessions = rng(8), 1000
    alarms = sum(drift(range(count), np.exp(draw.normal(0, 0.05, count))).kind != "none" for _ in range(sessions))
    assert alarms / sessions <= 0.07
