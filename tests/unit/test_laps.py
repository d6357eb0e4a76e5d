"""The timed loops under a fake clock, the schedules by their formulas, the order of batches, and the event protocol."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timetrial.runner.profiles import _PLANS, lap_plan, processes, repeats, target
from timetrial.spec.recipe import Recipe
from timetrial.spec.study import parse_study
from timetrial_worker import adapters, laps, schedules, session, timed, training
from timetrial_worker.feed import Feed
from timetrial_worker.laps import Plan, Stopwatch, median, steady, steps_per_lap, warm_up
from timetrial_worker.wire import Wire, resident_peak

PLAN = Plan(laps=10, lap_seconds=0.1, window=10, tolerance=0.05, warmup_steps=3, warmup_seconds=30.0, seconds=1.0,
            precision=0.0, least_seconds=0.0)  # fmt: skip
TICK = 2.0**-20  # a power of two: sums of it are exact


class Device:
    """A clock, and a device that works behind it: a step takes its time only when it is waited for."""

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self.now, self.seconds, self.owed = 1000.0, seconds, 0.0
        self.seen: list[int] = []
        self.syncs = 0

    def run(self, first: int, count: int) -> None:
        for step in range(first, first + count):
            self.seen.append(step)
            self.owed += self.seconds(step)

    def sync(self) -> None:
        self.syncs += 1
        self.now, self.owed = self.now + self.owed, 0.0

    def clock(self) -> float:
        return self.now

    def watch(self) -> Stopwatch:
        return Stopwatch(self.run, self.sync, self.clock)


def constant(seconds: float) -> Device:
    return Device(lambda step: seconds)


# --- a lap ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7, 100, 4096])
def test_a_lap_of_n_steps_takes_n_times_one_step(count: int) -> None:
    """Neither one more nor one less: no average over 100 of what took 99."""
    device = constant(3 * TICK)
    watch = device.watch()
    assert watch.lap(count) == count * 3 * TICK
    assert watch.lap(count) / count == 3 * TICK
    assert len(device.seen) == 2 * count


def test_a_lap_waits_for_the_device_at_both_edges() -> None:
    device = constant(TICK)
    device.owed = 5.0  # still at work on something else
    assert device.watch().lap(4) == 4 * TICK
    assert device.syncs == 2
    assert device.owed == 0


def test_a_device_that_keeps_time_marks_both_ends_of_a_laps_work() -> None:
    """Its time stands beside the wall time, which begins before the first mark and ends after the last."""
    device = constant(3 * TICK)

    class OwnClock(laps.DeviceClock):
        marks = 0

        def mark(self) -> float:
            OwnClock.marks += 1
            device.now += TICK  # a mark costs the host something
            return device.now + device.owed

        def between(self, first: float, last: float) -> float:
            assert not device.owed  # asked when all is done
            return last - first - TICK

    told: list[dict[str, Any]] = []
    watch = Stopwatch(device.run, device.sync, device.clock, OwnClock())
    steady(watch, PLAN._replace(laps=2, seconds=0.0), 4, lambda event, **fields: told.append(fields), device.clock)
    assert told == [{"seconds": 3.5 * TICK, "device_seconds": 3 * TICK}] * 2
    assert OwnClock.marks == 4
    silent: list[dict[str, Any]] = []
    steady(device.watch(), PLAN._replace(laps=2, seconds=0.0), 4, lambda event, **f: silent.append(f), device.clock)
    assert silent == [{"seconds": 3 * TICK}] * 2  # no clock of its own: not measured, and not zero


@pytest.mark.parametrize("engine", ["torch", "keras-torch"])
def test_torch_keeps_time_by_events_on_a_gpu_alone(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            happened.append("record")

        def elapsed_time(self, other: Event) -> float:
            return 12.5  # milliseconds

    fake = SimpleNamespace(cuda=SimpleNamespace(Event=Event))
    adapter: Any = adapters.load(engine, {})
    monkeypatch.setattr(sys.modules[type(adapter).__module__], "torch", fake, raising=False)
    adapter.torch, adapter.target, adapter._gpu = fake, SimpleNamespace(type="cuda"), 0
    first, last = adapter.mark(), adapter.mark()
    assert happened == ["record", "record"]
    assert adapter.between(first, last) == 0.0125
    adapter.target, adapter._gpu = SimpleNamespace(type="cpu"), None
    assert adapter.mark() is None


def test_some_laps_more_meet_one_input_and_the_first_is_not_kept() -> None:
    device = Device(lambda step: 9.0 if step < 4 else TICK)
    assert laps.repeat(device.watch(), 4, 3) == [TICK] * 3
    assert len(device.seen) == 16


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_steps_go_on_in_turn_from_lap_to_lap(counts: list[int]) -> None:
    device = constant(TICK)
    watch = device.watch()
    for count in counts:
        watch.lap(count)
    assert device.seen == list(range(sum(counts)))


# --- how many steps a lap has -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "resolution", "count"),
    [
        (0.2, 1e-9, 1),  # a slow step is a lap of its own
        (0.1, 1e-9, 1),
        (0.0625, 1e-9, 2),
        (0.03125, 1e-9, 4),
        (TICK, 1e-9, 2**17),
        (0.2, 1e-3, 8),  # a poor clock: 1000 x its resolution
        (0.125, 1e-4, 1),
    ],
)
def test_a_lap_is_doubled_until_it_is_long_enough(seconds: float, resolution: float, count: int) -> None:
    device = constant(seconds)
    found = steps_per_lap(device.watch(), PLAN, resolution)
    assert found == count
    enough = max(PLAN.lap_seconds, 1000 * resolution)
    assert found * seconds >= enough
    assert found == 1 or found // 2 * seconds < enough


# --- warm-up ----------------------------------------------------------------------------------------------------------


def warm(seconds: Callable[[int], float], **changes: Any) -> laps.Warmup:
    device = Device(seconds)
    return warm_up(device.watch(), PLAN._replace(**changes), device.clock)


def test_a_steady_engine_is_warm_after_two_windows() -> None:
    found = warm(lambda step: 0.01)
    assert found.stable
    assert len(found.values) == 20
    assert found.values == pytest.approx([0.01] * 20)


@pytest.mark.parametrize("slow", [1, 5, 10, 15])
def test_warm_up_outlasts_the_slow_steps_and_keeps_them(slow: int) -> None:
    found = warm(lambda step: 0.5 if step < slow else 0.01)
    assert found.stable
    assert found.values[:slow] == pytest.approx([0.5] * slow)
    *_, before, after = (median(found.values[i : i + 10]) for i in (len(found.values) - 20, len(found.values) - 10))
    assert abs(after - before) <= 0.05 * before
    assert slow <= 10 or len(found.values) > 20


@pytest.mark.parametrize(("fall", "stable"), [(0.999, True), (0.98, False)])
def test_an_engine_that_gets_faster_all_the_time_is_not_stable(fall: float, stable: bool) -> None:
    """Ten steps apart: 0.999^10 is within 5 %, 0.98^10 is not."""
    found = warm(lambda step: 0.05 * fall**step, warmup_seconds=2.4)
    assert found.stable is stable


def test_the_cap_ends_a_warm_up_and_says_not_stable() -> None:
    found = warm(lambda step: 1.0 if step // 10 % 2 else 2.0, warmup_seconds=30.0, window=10)
    device_seconds = sum(found.values)
    assert not found.stable
    assert 30.0 <= device_seconds < 32.0  # one step beyond the cap at most


def test_a_step_longer_than_the_cap_is_one_step() -> None:
    found = warm(lambda step: 60.0)
    assert (found.values, found.stable) == ([60.0], False)


def test_warm_up_takes_the_least_number_of_steps_whatever_its_windows() -> None:
    assert len(warm(lambda step: 0.01, window=1, warmup_steps=7).values) == 7
    assert len(warm(lambda step: 0.01, window=1, warmup_steps=1).values) == 2


def test_windows_must_agree_within_the_tolerance() -> None:
    grows = lambda ratio: lambda step: 1.0 if step < 10 else ratio  # noqa: E731
    assert len(warm(grows(1.05)).values) == 20
    assert len(warm(grows(1.06)).values) > 20
    assert len(warm(grows(0.95)).values) == 20
    assert len(warm(grows(0.94)).values) > 20


def test_one_outlier_in_a_window_does_not_count() -> None:
    assert len(warm(lambda step: 5.0 if step == 13 else 0.1).values) == 20


# --- steady laps ------------------------------------------------------------------------------------------------------


def measured(device: Device, count: int, **changes: Any) -> tuple[list[float], list[float]]:
    told: list[float] = []

    def tell(event: str, seconds: float) -> None:
        assert event == "lap"
        told.append(seconds)

    return steady(device.watch(), PLAN._replace(**changes), count, tell, device.clock), told


@pytest.mark.parametrize("count", [1, 3, 128])
def test_every_lap_tells_exactly_the_seconds_of_a_step(count: int) -> None:
    values, told = measured(constant(3 * TICK), count, seconds=0.0)
    assert values == told == [3 * TICK] * 10


def test_laps_go_on_until_the_seconds_are_over() -> None:
    values, _ = measured(constant(0.25), 2, laps=3, seconds=2.0)  # 0.5 s a lap
    assert len(values) == 4


def test_there_are_never_fewer_laps_than_planned() -> None:
    values, _ = measured(constant(100.0), 1, laps=10, seconds=1.0)
    assert values == [100.0] * 10


def test_different_steps_are_averaged_over_their_lap_and_nothing_is_left_out() -> None:
    device = Device(lambda step: (step % 4 + 1) * TICK)
    values, _ = measured(device, 4, seconds=0.0)
    assert values == [2.5 * TICK] * 10
    assert device.seen == list(range(40))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_the_median_is_numpys(values: list[float]) -> None:
    assert median(values) == pytest.approx(float(np.median(values)))


def test_an_empty_step_costs_next_to_nothing() -> None:
    assert 0 < laps.idle_step_seconds(2000) < 1e-4


def test_the_worker_tells_the_phases_and_figures_of_a_run() -> None:
    device, told = constant(0.01), []

    class Deaf(Wire):
        def tell(self, event: str, **fields: Any) -> None:
            told.append((event, fields))

    session.time_laps(device.watch(), PLAN._replace(warmup_seconds=0.05, seconds=0.0), Deaf(-1))
    names = [event if event not in ("begin", "end") else f"{event} {fields['phase']}" for event, fields in told]
    assert [name for name in names if name != "lap"] == [
        "begin first_step", "end first_step", "begin warmup", "end warmup", "warm", "begin steady", "end steady", "steady",
    ]  # fmt: skip
    assert names.count("lap") == 10
    fields = dict(told)["steady"]
    assert fields["wall_seconds"] >= 0
    assert fields["threads"] >= 1
    assert fields["idle_step_seconds"] < 1e-4


# --- plans ------------------------------------------------------------------------------------------------------------


def test_plans_keep_the_method() -> None:
    """At least 10 laps of at least 100 ms, windows of 10 within 5 %, at least 3 steps, a cap of 30 s, 3 / 5 / 10 runs."""
    for profile, runs in (("quick", 3), ("normal", 5), ("publish", 10)):
        study = parse_study({"study": "s", "models": ["m"], "engines": ["e"], "profile": profile}, "here")
        plan = _PLANS[profile]
        assert processes(study) == runs
        assert (plan.laps, plan.lap_seconds, plan.window, plan.tolerance, plan.warmup_steps) == (10, 0.1, 10, 0.05, 3)
        assert plan.warmup_seconds <= 30
        assert plan.seconds >= plan.laps * plan.lap_seconds
        assert plan.least_seconds < plan.seconds
        assert target(study) == {"quick": 0.05, "normal": 0.01, "publish": 0.005}[profile]
        assert repeats(study) == (0 if profile == "quick" else 2)
    assert processes(study.model_copy(update={"repeat": 7})) == 7


def test_a_fit_call_is_a_longer_lap() -> None:
    from tests.unit.test_study import trials

    step, fit = trials(vary={"settings.loop": ["step", "fit"]})
    study = parse_study({"study": "s", "models": ["m"], "engines": ["e"]}, "here")
    assert lap_plan(study, fit)["lap_seconds"] == 5 * lap_plan(study, step)["lap_seconds"]
    assert Plan(**lap_plan(study, step)).laps == 10


def test_a_fixed_design_leaves_nothing_off_early() -> None:
    from tests.unit.test_study import trials

    (step,) = trials()
    asked = {"study": "s", "models": ["m"], "engines": ["e"]}
    assert lap_plan(parse_study(asked, "here"), step)["precision"] > 0
    assert lap_plan(parse_study({**asked, "stopping": "fixed"}, "here"), step)["precision"] == 0


# --- schedules --------------------------------------------------------------------------------------------------------


def recipe(**keys: Any) -> dict[str, Any]:
    return Recipe.model_validate({"optimiser": {"kind": "sgd", "rate": 0.5}, **keys}).model_dump(mode="json")


def rates(schedule: dict[str, Any], count: int) -> list[float]:
    """By epoch, or by iteration: the other is set to something that must not matter."""
    asked = recipe(schedule=schedule)
    if asked["schedule"].get("per") == "iteration":
        return [schedules.rate_at(asked, 99, n) for n in range(count)]
    return [schedules.rate_at(asked, n, 99) for n in range(count)]


def test_a_constant_rate() -> None:
    assert rates({"kind": "constant"}, 3) == [0.5] * 3


@pytest.mark.parametrize("per", ["epoch", "iteration"])
def test_steps_fall_at_the_places_named(per: str) -> None:
    found = rates({"kind": "steps", "at": [2, 4], "factor": 0.1, "per": per}, 6)
    assert found == pytest.approx([0.5, 0.5, 0.05, 0.05, 0.005, 0.005])


@pytest.mark.parametrize("per", ["epoch", "iteration"])
def test_exponential_falls_to_its_floor(per: str) -> None:
    found = rates({"kind": "exponential", "factor": 0.5, "floor": 0.1, "per": per}, 5)
    assert found == pytest.approx([0.5, 0.25, 0.125, 0.1, 0.1])


@pytest.mark.parametrize("per", ["epoch", "iteration"])
def test_cosine_rises_falls_and_stays(per: str) -> None:
    found = rates({"kind": "cosine", "over": 12, "warmup": 4, "floor": 0.1, "per": per}, 15)
    assert found[:4] == pytest.approx([0.125, 0.25, 0.375, 0.5])
    expected = [0.1 + 0.4 * (1 + math.cos(math.pi * n / 8)) / 2 for n in range(9)]
    assert found[4:13] == pytest.approx(expected)
    assert found[4] == 0.5
    assert found[8] == pytest.approx(0.3)  # half way
    assert found[12:] == pytest.approx([0.1, 0.1, 0.1])
    assert found[4:13] == sorted(found[4:13], reverse=True)


def test_cosine_without_a_rise_or_with_nothing_but_one() -> None:
    assert rates({"kind": "cosine", "over": 4}, 5) == pytest.approx([0.5, 0.4267767, 0.25, 0.0732233, 0.0])
    assert rates({"kind": "cosine", "over": 2, "warmup": 2}, 4) == pytest.approx([0.25, 0.5, 0.5, 0.0])


@pytest.mark.parametrize("per", ["epoch", "iteration"])
def test_momentum_rises_from_first_towards_last(per: str) -> None:
    asked = recipe(momentum_schedule={"first": 0.5, "last": 0.9, "speed": 0.25, "per": per})
    at = (
        (lambda n: schedules.momentum_at(asked, 99, n))
        if per == "iteration"
        else (lambda n: schedules.momentum_at(asked, n, 99))
    )
    assert at(0) == pytest.approx(0.5)
    assert [at(n) for n in range(6)] == pytest.approx([0.9 - 0.4 * math.exp(-0.25 * n) for n in range(6)])
    assert at(1000) == pytest.approx(0.9)
    assert schedules.momentum_at(recipe(), 3, 3) is None


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ({}, False),
        ({"schedule": {"kind": "steps", "at": [1]}}, False),
        ({"schedule": {"kind": "steps", "at": [1], "per": "iteration"}}, True),
        ({"schedule": {"kind": "cosine", "over": 5}}, True),
        ({"momentum_schedule": {"first": 0.5, "last": 0.9, "speed": 1}}, False),
        ({"momentum_schedule": {"first": 0.5, "last": 0.9, "speed": 1, "per": "iteration"}}, True),
    ],
)
def test_whether_a_recipe_changes_within_an_epoch(keys: dict[str, Any], changes: bool) -> None:
    assert schedules.changes_per_iteration(recipe(**keys)) is changes


# --- the feed ---------------------------------------------------------------------------------------------------------


def feed(folder: Path, train: int = 23, test: int = 7, seed: int = 1, **keys: Any) -> Feed:
    """Samples are their own numbers, so that it can be seen where each one went."""
    data = {}
    for part, count in (("train", train), ("test", test)):
        numbers = np.arange(count, dtype=np.float32)
        for side, values in (("x", np.stack([numbers, -numbers], 1)), ("y", numbers.astype(np.int32))):
            path = folder / f"{side}_{part}.npy"
            np.save(path, values)
            data[f"{side}_{part}"] = str(path)
    return Feed(data, recipe(**{"batch": 5, **keys}), seed)


def numbers(batches: list[Any]) -> list[list[int]]:
    return [y.tolist() for _, y in batches]


def test_the_order_depends_on_the_seed_and_the_epoch_alone(tmp_path: Path) -> None:
    one, other = feed(tmp_path), feed(tmp_path)
    other.cycle(8)  # looking at the data changes nothing
    assert numbers(one.epoch(3)) == numbers(other.epoch(3))
    assert numbers(one.epoch(3)) != numbers(one.epoch(4))
    assert numbers(one.epoch(0)) != numbers(feed(tmp_path, seed=2).epoch(0))
    assert numbers(one.epoch(0))[0] == [13, 21, 0, 10, 12]  # for every engine, NumPy and Python that will ever be


def test_inputs_and_labels_stay_together(tmp_path: Path) -> None:
    fed = feed(tmp_path)
    for x, y in (*fed.epoch(0), *fed.cycle(8)):
        assert x.tolist() == [[n, -n] for n in y.tolist()]
        assert x.flags.c_contiguous
        assert not np.shares_memory(x, fed.x_train)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 12), st.sampled_from(["drop", "keep"]), st.booleans(), st.integers(0, 2**32 - 1)
)
def test_an_epoch_holds_every_sample_once(
    tmp_path_factory: pytest.TempPathFactory, count: int, batch: int, last: str, shuffle: bool, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("feed")
    found = numbers(feed(folder, count, seed=seed, batch=batch, last_batch=last, shuffle=shuffle).epoch(1))
    flat = [n for part in found for n in part]
    assert len(set(flat)) == len(flat)
    dropped = count % batch if last == "drop" and count >= batch else 0
    assert len(flat) == count - dropped
    assert all(len(part) == batch for part in found[:-1])
    if last == "keep":
        assert sorted(flat) == list(range(count))
    if not shuffle:
        assert flat == list(range(count - dropped))


def test_the_last_batch_is_dropped_or_kept(tmp_path: Path) -> None:
    assert [len(part) for part in numbers(feed(tmp_path, last_batch="drop").epoch(0))] == [5, 5, 5, 5]
    assert [len(part) for part in numbers(feed(tmp_path, last_batch="keep").epoch(0))] == [5, 5, 5, 5, 3]
    assert [len(part) for part in numbers(feed(tmp_path, train=20, last_batch="keep").epoch(0))] == [5, 5, 5, 5]


def test_different_batches_cycle_through_the_laps(tmp_path: Path) -> None:
    cycle = numbers(feed(tmp_path, train=60).cycle(8))
    assert [len(part) for part in cycle] == [5] * 8
    assert len({n for part in cycle for n in part}) == 40
    assert cycle == numbers(feed(tmp_path, train=60).epoch(0))[:8]


def test_fewer_samples_give_fewer_batches_but_never_smaller_ones(tmp_path: Path) -> None:
    assert [len(part) for part in numbers(feed(tmp_path, train=12).cycle(8))] == [5, 5]
    (only,) = numbers(feed(tmp_path, train=3).cycle(8))
    assert len(only) == 5
    assert set(only) == {0, 1, 2}


def test_the_test_set_is_filled_up_to_whole_batches_and_says_what_is_real(tmp_path: Path) -> None:
    found = list(feed(tmp_path, test=12).test())
    assert [(len(x), real) for x, real in found] == [(5, 5), (5, 5), (5, 2)]
    assert [n for x, real in found for n in x[:real, 0].tolist()] == list(range(12))
    assert [(len(x), real) for x, real in feed(tmp_path, test=10).test()] == [(5, 5), (5, 5)]


# --- training to the end ------------------------------------------------------------------------------------------------


class Pupil:
    """Remembers at which pace it was given which samples, and predicts class n mod 3."""

    def __init__(self, losses: Iterator[float]) -> None:
        self.losses, self.done, self.pace = losses, [], (0.0, None)  # type: ignore[var-annotated]

    def place(self, x: Any, y: Any = None) -> Any:
        return x, y

    def set_rate(self, rate: float, momentum: float | None = None) -> None:
        self.pace = (rate, momentum)

    def run_steps(self, batches: Any, first: int, count: int) -> None:
        for i in range(first, first + count):
            self.done.append((self.pace[0], batches[i % len(batches)][1].tolist()))

    def sync(self) -> None: ...

    def loss(self) -> float:
        return next(self.losses)

    def predict(self, batch: Any) -> Any:
        return np.eye(3)[batch[0][:, 0].astype(int) % 3]

    def output(self, predicted: Any) -> Any:
        return predicted


class Quiet(Wire):
    def tell(self, event: str, **fields: Any) -> None: ...


def whole(fed: Feed) -> training.Progress:
    return training.Progress(Quiet(-1), fed.recipe, whole=True)


@pytest.mark.parametrize("per", ["epoch", "iteration"])
def test_an_epoch_trains_on_every_batch_at_its_own_pace(tmp_path: Path, per: str) -> None:
    fed = feed(tmp_path, schedule={"kind": "exponential", "factor": 0.5, "per": per})
    pupil = Pupil(iter([2.0, 1.0]))
    assert [training.train_epoch(pupil, fed, n, whole(fed)) for n in (0, 1)] == [2.0, 1.0]
    assert [part for _, part in pupil.done] == numbers(fed.epoch(0)) + numbers(fed.epoch(1))
    expected = [0.5 ** (1 + n) for n in range(8)] if per == "iteration" else [0.5] * 4 + [0.25] * 4
    assert [rate for rate, _ in pupil.done] == pytest.approx(expected)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path, loss: float) -> None:
    fed = feed(tmp_path)
    with pytest.raises(training.Diverged, match=r"the loss is \S+ in epoch 3"):
        training.train_epoch(Pupil(iter([loss])), fed, 2, whole(fed))


def test_the_test_set_is_scored_without_what_filled_it_up(tmp_path: Path) -> None:
    fed = feed(tmp_path, test=7)
    np.save(tmp_path / "y_test.npy", np.array([0, 1, 2, 0, 1, 2, 1], np.int32))  # the last is 0
    fed = Feed({f"{s}_{p}": str(tmp_path / f"{s}_{p}.npy") for s in "xy" for p in ("train", "test")}, fed.recipe, 1)
    predicted = timed.predict(Pupil(iter([])), fed)
    assert timed.score(predicted, fed.y_test, fed.recipe["loss"]) == {"accuracy": pytest.approx(6 / 7)}


@pytest.mark.parametrize(
    ("loss", "predicted", "truth", "scores"),
    [
        ("cross_entropy", [[0.1, 0.9], [0.8, 0.2]], [1, 1], {"accuracy": 0.5}),
        ("cross_entropy", [[0.1, 0.9], [0.8, 0.2]], [[0, 1], [1, 0]], {"accuracy": 1.0}),
        ("binary_cross_entropy", [[0.4], [0.6], [0.7]], [0, 1, 0], {"accuracy": 2 / 3}),
        ("mse", [[1.0], [2.0]], [2.0, 4.0], {"mse": 2.5, "mae": 1.5}),
        ("mae", [[1.0, 1.0]], [[1.0, -1.0]], {"mse": 2.0, "mae": 1.0}),
    ],
)
def test_scores(loss: str, predicted: Any, truth: Any, scores: dict[str, float]) -> None:
    assert timed.score(np.array(predicted), np.array(truth), loss) == pytest.approx(scores)


# --- the wire ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def pipe() -> tuple[Wire, Callable[[], list[dict[str, Any]]]]:
    reader, writer = os.pipe()

    def heard() -> list[dict[str, Any]]:
        os.close(writer)
        with os.fdopen(reader) as stream:
            return [json.loads(line) for line in stream.read().splitlines() if line]

    return Wire(writer), heard


def test_events_are_one_json_object_a_line(pipe: Any) -> None:
    wire, heard = pipe
    wire.tell("a", number=1, text="two\nlines µ", values=[0.1, None])
    wire.tell("b", scalar=np.float32(0.5), array=np.arange(3), odd=Path("x"))
    assert heard() == [
        {"event": "a", "number": 1, "text": "two\nlines µ", "values": [0.1, None]},
        {"event": "b", "scalar": 0.5, "array": [0, 1, 2], "odd": "x"},
    ]


def test_half_a_line_of_somebody_else_spoils_no_event(pipe: Any) -> None:
    wire, heard = pipe
    os.write(wire._descriptor, b'"noise"')
    wire.tell("a")
    assert heard() == ["noise", {"event": "a"}]


def test_a_phase_is_told_at_both_ends_with_its_seconds(pipe: Any) -> None:
    wire, heard = pipe
    with wire.phase("build"):
        pass
    begin, end = heard()
    assert begin.keys() == {"event", "phase", "resident"}
    assert begin["phase"] == "build"
    assert 0 < begin["resident"] <= end["resident_peak"]
    assert end.keys() == {"event", "phase", "seconds", "resident_peak"}
    assert 0 <= end["seconds"] < 1


def test_a_phase_that_fails_has_no_end(pipe: Any) -> None:
    wire, heard = pipe
    with pytest.raises(ZeroDivisionError), wire.phase("build"):
        1 / 0  # noqa: B018
    assert [event["event"] for event in heard()] == ["begin"]


def test_the_resident_peak_is_this_programs_own() -> None:
    peak = resident_peak()
    assert peak is not None
    assert 2**22 < peak < 2**36
