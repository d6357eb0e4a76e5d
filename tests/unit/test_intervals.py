"""Intervals and verdicts against SciPy, closed forms and simulation; the equivalence comparison against known errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from timetrial.stats.equivalence import TOLERANCES, Check, Proof, Tolerance, compare
from timetrial.stats.intervals import LARGEST, Interval, Ratio, interval, process_value, ratio
from timetrial.stats.verdicts import Verdict, verdict

times = st.floats(1e-7, 1e3)
# Spread far above rounding: SciPy warns, rightly, where all values are all but equal.
samples = st.lists(times, min_size=2, max_size=12).filter(lambda values: np.std(np.log(values), ddof=1) > 1e-6)
rng = np.random.default_rng


# --- one cell ---------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(samples, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_is_scipys_t_interval_on_logs(values: list[float], confidence: float) -> None:
    found = interval(values, confidence)
    logs = np.log(values)
    low, high = stats.t.interval(confidence, len(logs) - 1, loc=logs.mean(), scale=stats.sem(logs))
    assert found.value == pytest.approx(stats.gmean(values))
    bounds = tuple(math.exp(max(-LARGEST, min(bound, LARGEST))) for bound in (low, high))
    assert (found.low, found.high) == pytest.approx(bounds, rel=1e-9)
    assert found.processes == len(values)


def test_a_known_interval() -> None:
    """Logs 0, 1, 2: mean 1, deviation 1, t(0.975, 2) = 4.302653."""
    found = interval([1, math.e, math.e**2])
    half = 4.302652729911275 / math.sqrt(3)
    assert found.value == pytest.approx(math.e)
    assert found.low == pytest.approx(math.exp(1 - half))
    assert found.high == pytest.approx(math.exp(1 + half))
    assert found.half_width == pytest.approx(math.exp(half) - 1)


def test_one_process_has_no_interval() -> None:
    assert interval([0.25]) == Interval(0.25, None, None, 1)
    assert interval([0.25]).half_width is None


def test_processes_without_spread_have_an_interval_of_nothing() -> None:
    found = interval([0.5, 0.5, 0.5])
    assert (found.value, found.low, found.high, found.half_width) == (0.5, 0.5, 0.5, 0.0)


@settings(deadline=None)
@given(samples, st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(values: list[float], unit: float) -> None:
    one, other = interval(values), interval([value * unit for value in values])
    assert other.value == pytest.approx(one.value * unit)
    assert other.half_width == pytest.approx(one.half_width, rel=1e-6)


def test_a_process_is_the_median_of_its_laps() -> None:
    assert process_value([1.0, 2.0, 100.0]) == 2.0
    assert process_value([1.0, 2.0, 3.0, 100.0]) == 2.5


@pytest.mark.parametrize("processes", [3, 5, 10])
def test_the_interval_covers_the_truth_as_often_as_it_says(processes: int) -> None:
    draw = rng(1)
    trials = 2000
    hits = 0
    for values in np.exp(draw.normal(0.0, 0.05, (trials, processes))):
        found = interval(values)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 1.0 <= found.high
    assert hits / trials == pytest.approx(0.95, abs=0.015)  # three deviations


# --- two cells --------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(samples, samples, st.sampled_from([0.9, 0.95]))
def test_the_ratio_is_welchs_interval_on_logs(a: list[float], b: list[float], confidence: float) -> None:
    """Unequal counts and unequal spreads included."""
    found = ratio(a, b, confidence)
    welch = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(confidence)
    assert found.value == pytest.approx(stats.gmean(b) / stats.gmean(a))
    assert (found.low, found.high) == pytest.approx((math.exp(welch.low), math.exp(welch.high)), rel=1e-9)


def test_the_ratio_is_the_speed_up_of_the_first() -> None:
    """One direction everywhere: above 1, A is faster."""
    found = ratio([1.0, 1.1], [2.0, 2.2])
    assert found.value == pytest.approx(2.0)


@settings(deadline=None)
@given(samples, samples)
def test_exchanging_the_two_turns_the_ratio_over(a: list[float], b: list[float]) -> None:
    one, other = ratio(a, b), ratio(b, a)
    assert other.value == pytest.approx(1 / one.value)
    assert one.low is not None
    assert one.high is not None
    assert (other.low, other.high) == pytest.approx((1 / one.high, 1 / one.low))


def test_with_a_single_process_there_is_a_value_and_nothing_more() -> None:
    assert ratio([1.0], [2.0, 4.5]) == Ratio(3.0000000000000004, None, None)
    assert ratio([1.0, 1.0], [2.0]) == Ratio(2.0, None, None)


def test_without_any_spread_the_ratio_is_exact() -> None:
    assert ratio([1.0, 1.0], [2.0, 2.0, 2.0]) == Ratio(2.0, 2.0, 2.0)


def test_spread_in_one_of_the_two_is_enough() -> None:
    found = ratio([1.0, 1.0, 1.0], [2.0, 2.1, 2.2])
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


# --- verdicts ---------------------------------------------------------------------------------------------------------


def around(centre: float, spread: float = 0.0005, count: int = 5) -> list[float]:
    return [centre * (1 + spread * step) for step in np.linspace(-1, 1, count)]


@pytest.mark.parametrize(
    ("other", "word"), [(2.0, "faster"), (1.02, "faster"), (1.0, "same"), (1.005, "same"), (0.995, "same"), (0.98, "slower"), (0.5, "slower"), (1.01, "undecided"), (0.99, "undecided")]
)  # fmt: skip
def test_the_three_ways(other: float, word: str) -> None:
    found = verdict(around(1.0), around(other))
    assert found.word == word
    assert (found.more is not None) == (word == "undecided")
    assert found.speedup == ratio(around(1.0), around(other))


def test_a_wide_interval_around_one_is_not_the_same_but_undecided() -> None:
    found = verdict(around(1.0, 0.2), around(1.0, 0.2))
    assert found.word == "undecided"
    assert found.more is not None
    assert found.more > 5


def test_what_this_session_cannot_see_is_no_difference() -> None:
    assert verdict(around(1.0), around(1.04)).word == "faster"
    assert verdict(around(1.0), around(1.04), floor=0.05).word == "same"
    assert verdict(around(1.0), around(1.04), floor=0.001).word == "faster"
    assert verdict(around(1.0), around(1.005), floor=0.0).word == "same"  # 1 % is the least


@pytest.mark.parametrize(("a", "b", "more"), [([1.0], [2.0], 1), ([1.0], [2.0, 2.1, 2.2], 1), ([1.0, 1.0], [2.0], 1)])
def test_one_process_decides_nothing_and_says_how_many_more(a: list[float], b: list[float], more: int) -> None:
    found = verdict(a, b)
    assert (found.word, found.more) == ("undecided", more)


words = {"faster": "slower", "slower": "faster", "same": "same", "undecided": "undecided"}


@settings(deadline=None)
@given(samples, samples)
def test_exchanging_the_two_exchanges_the_verdict(a: list[float], b: list[float]) -> None:
    one, other = verdict(a, b), verdict(b, a)
    speedup = one.speedup
    assert speedup.low is not None
    assert speedup.high is not None
    borders = (speedup.low, 1 / speedup.low, speedup.high, 1 / speedup.high)
    assume(all(abs(border - 1.01) > 1e-9 for border in borders))
    assert other.word == words[one.word]


@settings(deadline=None)
@given(samples, samples)
def test_undecided_always_says_how_many_more_would_decide(a: list[float], b: list[float]) -> None:
    found = verdict(a, b)
    assert (found.more is None) == (found.word != "undecided")
    assert found.more is None or 1 <= found.more <= 1000


def exactly(mean: float, spread: float, count: int) -> list[float]:
    """A sample whose logs have this mean and this deviation, whatever its size."""
    logs = rng(count).standard_normal(count)
    logs = (logs - logs.mean()) / logs.std(ddof=1)
    return [float(value) for value in np.exp(mean + spread * logs)]


@pytest.mark.parametrize(
    ("speedup", "spread_a", "spread_b", "count_a", "count_b"),
    [
        (0.0, 0.02, 0.02, 5, 5),
        (0.03, 0.05, 0.05, 3, 3),
        (-0.04, 0.05, 0.01, 4, 4),
        (0.005, 0.02, 0.0, 5, 5),
        (0.03, 0.1, 0.02, 3, 8),
    ],
)
def test_with_as_many_more_processes_as_it_asks_for_it_decides_and_with_one_less_it_does_not(
    speedup: float, spread_a: float, spread_b: float, count_a: int, count_b: int
) -> None:
    def judge(further: int) -> Verdict:
        return verdict(exactly(0, spread_a, count_a + further), exactly(speedup, spread_b, count_b + further))

    found = judge(0)
    assert found.word == "undecided"
    assert found.more is not None
    assert 1 <= found.more < 1000
    assert judge(found.more).word == ("same" if abs(speedup) < 0.01 else "faster" if speedup > 0 else "slower")
    assert found.more == 1 or judge(found.more - 1).word == "undecided"


def test_what_a_thousand_more_would_not_decide_stays_at_a_thousand() -> None:
    assert verdict(exactly(0, 1.0, 3), exactly(math.log(1.0101), 1.0, 3)).more == 1000


# --- A/A: the same engine twice -----------------------------------------------------------------------------------------


def session(draw: np.random.Generator, truth: float, processes: int) -> np.ndarray[Any, Any]:
    """Laps of some processes: each process has an offset of its own of 2 %, its laps scatter by 0.5 %."""
    offsets = draw.normal(0, 0.02, (processes, 1))
    return truth * np.exp(offsets + draw.normal(0, 0.005, (processes, 30)))


def by_process(laps: np.ndarray[Any, Any]) -> list[float]:
    return [process_value(process) for process in laps]


def pooled(laps: np.ndarray[Any, Any]) -> list[float]:
    return [float(value) for value in laps.ravel()]


def false_alarms(summary: Callable[[np.ndarray[Any, Any]], list[float]], sizes: tuple[int, int] = (5, 5)) -> float:
    draw = rng(7)
    words = [verdict(*(summary(session(draw, 1.0, size)) for size in sizes)).word for _ in range(800)]
    return (words.count("faster") + words.count("slower")) / len(words)


@pytest.mark.parametrize("sizes", [(3, 3), (5, 5), (10, 10), (3, 10), (10, 5)])
def test_the_same_engine_twice_is_seldom_different_from_itself(sizes: tuple[int, int]) -> None:
    assert false_alarms(by_process, sizes) <= 0.05


def test_pooling_laps_as_if_they_were_processes_would_cry_wolf() -> None:
    """Why the process is the sample: this is what the rule prevents."""
    assert false_alarms(pooled) > 0.2


def test_a_real_difference_is_seen_and_on_the_right_side() -> None:
    draw = rng(9)
    words = [verdict(by_process(session(draw, 1.0, 10)), by_process(session(draw, 1.1, 10))).word for _ in range(300)]
    assert words.count("faster") / 300 > 0.95
    assert words.count("slower") == 0


def test_unequal_spread_and_unequal_counts_raise_no_alarm() -> None:
    """Welch's, not Student's: few noisy processes against many quiet ones."""
    draw = rng(11)
    alarms = 0
    for _ in range(2000):
        a, b = np.exp(draw.normal(0, 0.10, 3)), np.exp(draw.normal(0, 0.005, 12))
        alarms += verdict(a, b).word in ("faster", "slower")
    assert alarms / 2000 <= 0.06


def test_a_verdict_is_a_value() -> None:
    assert verdict([1.0, 1.0], [2.0, 2.0]) == Verdict("faster", Ratio(2.0, 2.0, 2.0))


# --- the same function? -------------------------------------------------------------------------------------------------

TOLERANCE = Tolerance()


def arrays() -> dict[str, Any]:
    draw = rng(5)
    kernel, bias = draw.standard_normal((20, 10)), draw.standard_normal(10)
    gradient, gradient_bias = draw.standard_normal((20, 10)), draw.standard_normal(10)
    return {
        "activation/dense_1": draw.standard_normal((8, 10)),
        "activation/dense_2": draw.standard_normal((8, 4)),
        "output": draw.random((8, 4)),
        "loss": np.array(1.25),
        "gradient/dense_1/kernel": gradient,
        "gradient/dense_1/bias": gradient_bias,
        "losses": np.array([1.25, 1.2, 1.1]),
        "after/dense_1/kernel": kernel - 0.1 * gradient,
        "after/dense_1/bias": bias - 0.1 * gradient_bias,
    }


def start() -> dict[str, Any]:
    found = arrays()
    return {
        f"dense_1/{name}": found[f"after/dense_1/{name}"] + 0.1 * found[f"gradient/dense_1/{name}"]
        for name in ("kernel", "bias")
    }


def judge(change: Callable[[dict[str, Any]], None], adaptive: bool = False) -> Proof:
    found = {name: values.copy() for name, values in arrays().items()}
    change(found)
    return compare(found, arrays(), start(), TOLERANCE, adaptive)


def scaled(name: str, factor: float) -> Callable[[dict[str, Any]], None]:
    def change(found: dict[str, Any]) -> None:
        found[name] = found[name] * factor

    return change


def failure(proof: Proof) -> Check:
    assert not proof.passed
    assert proof.first_failure is not None
    return proof.first_failure


def test_equal_arrays_pass_with_no_error_at_all() -> None:
    proof = judge(lambda found: None)
    assert proof.passed
    assert proof.first_failure is None
    assert {check.error for check in proof.checks} == {0.0}
    assert [(check.stage, check.name) for check in proof.checks] == [
        ("activation", "dense_1"), ("activation", "dense_2"), ("output", "output"), ("loss", "loss"),
        ("gradient", "dense_1/kernel"), ("gradient", "dense_1/bias"),
        ("step", "dense_1/kernel"), ("step", "dense_1/bias"), ("loss", "losses"),
    ]  # fmt: skip


def test_nothing_compared_is_nothing_proved() -> None:
    assert not Proof(()).passed
    assert math.isnan(Proof(()).worst("step"))


@pytest.mark.parametrize(
    ("name", "stage", "tolerance"),
    [
        ("activation/dense_1", "activation", 1e-4), ("output", "output", 1e-4), ("loss", "loss", 1e-4),
        ("gradient/dense_1/kernel", "gradient", 1e-3), ("gradient/dense_1/bias", "gradient", 1e-3),
        ("losses", "loss", 1e-3),
    ],
)  # fmt: skip
def test_an_error_is_relative_to_its_array_and_held_to_its_stage(name: str, stage: str, tolerance: float) -> None:
    assert judge(scaled(name, 1 + 0.99 * tolerance)).passed
    check = failure(judge(scaled(name, 1 + 1.01 * tolerance)))
    assert (check.stage, check.tolerance) == (stage, tolerance)
    assert check.error == pytest.approx(1.01 * tolerance)
    assert name.endswith(check.name)


def test_the_first_array_that_differs_is_named_not_the_worst() -> None:
    def change(found: dict[str, Any]) -> None:
        scaled("activation/dense_2", 1.001)(found)
        scaled("output", 5.0)(found)

    assert failure(judge(change)).name == "dense_2"


def test_one_wrong_entry_among_many_is_seen() -> None:
    """Its part in the norm of the whole may be below the tolerance."""

    def change(found: dict[str, Any]) -> None:
        found["activation/dense_1"][3, 3] += 0.002 * np.abs(found["activation/dense_1"]).max()

    check = failure(judge(change))
    assert check.name == "dense_1"
    assert 1e-4 < check.error < 1e-3


def test_tiny_entries_decide_nothing() -> None:
    def change(found: dict[str, Any]) -> None:
        found["activation/dense_1"][0, 0] += 1e-6

    assert judge(change).passed


def test_updates_are_compared_by_their_change_not_by_the_weights() -> None:
    """The weights here are off by less than one thousandth of themselves, the change by one hundredth."""

    def change(found: dict[str, Any]) -> None:
        before = start()["dense_1/kernel"]
        found["after/dense_1/kernel"] = before + 1.01 * (found["after/dense_1/kernel"] - before)

    check = failure(judge(change))
    assert (check.stage, check.name) == ("step", "dense_1/kernel")
    assert check.error == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["activation/dense_1", "gradient/dense_1/bias", "losses", "after/dense_1/kernel"])
def test_what_is_no_number_never_passes(name: str, value: float) -> None:
    def change(found: dict[str, Any]) -> None:
        found[name].flat[0] = value

    assert failure(judge(change)).error == math.inf


@pytest.mark.parametrize("name", sorted(arrays()))
def test_what_is_missing_or_of_another_shape_never_passes(name: str) -> None:
    def remove(found: dict[str, Any]) -> None:
        del found[name]

    def reshape(found: dict[str, Any]) -> None:
        found[name] = found[name][None]

    assert failure(judge(remove)).note == "missing"
    shape = arrays()[name].shape
    assert failure(judge(reshape)).note == f"shape {(1, *shape)} instead of {shape}"


def test_arrays_beyond_the_references_are_no_matter() -> None:
    assert judge(lambda found: found.update({"activation/extra": np.ones(3)})).passed


def test_a_gradient_that_is_nothing_but_rounding_proves_nothing() -> None:
    """A bias before a batch norm has no gradient: its size is held against the largest gradient of the network."""
    reference = arrays()
    reference["gradient/dense_1/bias"] = np.full(10, 1e-9)
    found = {name: values.copy() for name, values in reference.items()}
    found["gradient/dense_1/bias"] = np.full(10, -3e-9)
    assert compare(found, reference, start(), TOLERANCE).passed
    found["gradient/dense_1/bias"] = np.full(10, 0.1)
    assert failure(compare(found, reference, start(), TOLERANCE)).name == "dense_1/bias"


def test_zeros_are_equal_to_zeros_only() -> None:
    reference = {**arrays(), "output": np.zeros((8, 4))}
    found = {name: values.copy() for name, values in reference.items()}
    assert compare(found, reference, start(), TOLERANCE).passed
    found["output"][0, 0] = 1e-30
    assert failure(compare(found, reference, start(), TOLERANCE)).name == "output"
    assert compare(
        {**reference, "activation/empty": np.ones(0)}, {**reference, "activation/empty": np.ones(0)}, start(), TOLERANCE
    ).passed


def test_an_adaptive_optimisers_step_is_judged_where_there_is_a_gradient() -> None:
    """Adam makes full steps of rounding noise: such entries are left out, and the proof says how many."""
    reference = arrays()
    reference["gradient/dense_1/bias"][:4] = 1e-9
    found = {name: values.copy() for name, values in reference.items()}
    found["after/dense_1/bias"][:4] += 0.5
    assert not compare(found, reference, start(), TOLERANCE, adaptive=False).passed
    proof = compare(found, reference, start(), TOLERANCE, adaptive=True)
    assert proof.passed
    note = next(check.note for check in proof.checks if (check.stage, check.name) == ("step", "dense_1/bias"))
    assert note == "4 of 10 entries left out: no gradient above the noise"
    found["after/dense_1/bias"][5] += 0.5
    assert failure(compare(found, reference, start(), TOLERANCE, adaptive=True)).name == "dense_1/bias"


def test_a_coarser_precision_is_allowed_more() -> None:
    names = ("float64", "float32", "bfloat16")
    forward = [TOLERANCES[name].forward for name in names]
    assert forward == sorted(forward)
    assert (TOLERANCES["float32"].forward, TOLERANCES["float32"].gradient, TOLERANCES["float32"].steps) == (
        1e-4,
        1e-3,
        1e-3,
    )
    assert (TOLERANCES["bfloat16"].forward, TOLERANCES["bfloat16"].gradient, TOLERANCES["bfloat16"].steps) == (
        2e-2,
        0.3,
        0.3,
    )


def test_the_worst_of_a_stage() -> None:
    proof = judge(scaled("activation/dense_2", 1.25))
    assert proof.worst("activation") == pytest.approx(0.25)
    assert proof.worst("gradient") == 0.0


def test_in_bfloat16_what_cancels_out_is_rounding_and_what_is_forgotten_is_not() -> None:
    """The gradient of a convolution's bias is a sum over all places: what is left of it carries the rounding of what
    went into it. Each array is held against its own size, loosely; a tiny one against a share of the largest."""
    begin = {"kernel": np.zeros(10), "bias": np.zeros(10)}
    changes = {"kernel": np.linspace(-1, 1, 10), "bias": 0.1 * np.linspace(-1, 1, 10)}
    same = {"output": np.ones(3), "loss": np.ones(()), "losses": np.ones(5)}

    def moved(**factors: float) -> dict[str, Any]:
        parts = {name: factors.get(name, 1.0) * change for name, change in changes.items()}
        return {**same, **{f"{what}/{n}": v for what in ("gradient", "after") for n, v in parts.items()}}

    def judged(precision: str, **factors: float) -> Proof:
        return compare(moved(**factors), moved(), begin, TOLERANCES[precision])

    assert failure(judged("float32", bias=0.9)).name == "bias"
    assert judged("bfloat16", bias=0.9).passed
    for name in changes:  # half of it is missing, as without a momentum of 0.9
        wrong = [check.name for check in judged("bfloat16", **{name: 0.5}).checks if not check.passed]
        assert wrong == [name, name]
