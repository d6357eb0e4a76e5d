"""Device work is awaited at both edges of a lap: all outputs and all updated weights, by an engine that works behind.

The engine here is an adapter as the worker drives it, over a device with a queue and a clock of its own: a call only
submits work, the loss is there long before the weights are, and nothing is done until somebody waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from timetrial_worker import laps, timed
from timetrial_worker.adapters.base import Adapter

TICK = 2.0**-10  # sums of it are exact
SUBMIT, FORWARD, BACKWARD, UPDATE = TICK, 8 * TICK, 16 * TICK, 4 * TICK
STEP = FORWARD + BACKWARD + UPDATE


class Device:
    """Works through its queue in order; `done` of a piece of work is the time when it is finished."""

    def __init__(self) -> None:
        self.now = self.free = 100.0

    def submit(self, seconds: float) -> float:
        self.free = max(self.free, self.now) + seconds
        return self.free

    def wait(self, done: float) -> None:
        self.now = max(self.now, done)


class Behind(Adapter):
    """A step returns when its work is in the queue."""

    def __init__(self) -> None:
        Adapter.__init__(self, {})
        self.device = Device()
        self.loss_done = self.weights_done = self.output_done = 0.0
        self.steps = 0

    def place(self, x: Any, y: Any = None) -> Any:
        return x

    def step(self, batch: Any) -> None:
        self.steps += 1
        self.device.now += SUBMIT
        self.loss_done = self.device.submit(FORWARD)
        self.weights_done = self.device.submit(BACKWARD + UPDATE)

    def predict(self, batch: Any) -> float:
        self.device.now += SUBMIT
        self.output_done = self.device.submit(FORWARD)
        return self.output_done

    def sync(self) -> None:
        self.device.wait(max(self.loss_done, self.weights_done, self.output_done))

    def pending(self) -> bool:
        return self.device.free > self.device.now


class WaitsForTheLoss(Behind):
    """What a harness does that reads the loss and believes the step to be over."""

    def sync(self) -> None:
        self.device.wait(self.loss_done)


class NeverWaits(Behind):
    def sync(self) -> None:
        pass


def watch(engine: Behind, task: str) -> laps.Stopwatch:
    work = timed.Resident(engine, [None] * 8, task)
    return laps.Stopwatch(work.run, engine.sync, lambda: engine.device.now)


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize(("task", "work"), [("train", STEP), ("infer", FORWARD)])
def test_a_lap_holds_all_of_its_work_and_nothing_else(task: str, work: float, count: int) -> None:
    engine = Behind()
    lap = watch(engine, task)
    for _ in range(3):
        assert lap.lap(count) == SUBMIT + count * work  # only the first submission is not hidden behind the device
        assert not engine.pending()


def test_work_from_before_falls_into_no_lap() -> None:
    engine = Behind()
    engine.step(None)
    engine.weights_done = engine.device.submit(1000.0)  # a copy of the weights is still on its way
    assert watch(engine, "train").lap(1) == SUBMIT + STEP


def test_the_weights_are_awaited_and_not_only_the_loss() -> None:
    """The fake can tell: an engine that waits for the loss alone is faster by the backward pass and the update."""
    engine = WaitsForTheLoss()
    assert watch(engine, "train").lap(1) == SUBMIT + FORWARD
    assert engine.pending()


def test_an_engine_that_never_waits_shows_only_its_submissions() -> None:
    engine = NeverWaits()
    assert watch(engine, "train").lap(64) == 64 * SUBMIT
    assert engine.pending()


def test_laps_together_are_the_devices_own_time() -> None:
    """Whatever the laps' lengths: no work is lost between them, none is counted twice."""
    engine = Behind()
    lap, start = watch(engine, "train"), engine.device.now
    counts = [1, 2, 3, 50, 1, 8]
    total = sum(lap.lap(count) for count in counts)
    assert total == engine.device.now - start
    assert total == sum(counts) * STEP + len(counts) * SUBMIT
    assert engine.steps == sum(counts)


@pytest.mark.parametrize("task", ["train", "infer"])
def test_the_whole_run_of_a_worker_awaits_every_lap(task: str) -> None:
    """Warm-up, doubling and steady laps, as the session itself makes them; after each nothing is left to do."""
    engine, values = Behind(), list[float]()
    plan = laps.Plan(
        laps=10, lap_seconds=0.1, window=10, tolerance=0.05, warmup_steps=3, warmup_seconds=30.0, seconds=0.0,
        precision=0.0, least_seconds=0.0,
    )  # fmt: skip

    def tell(event: str, **fields: Any) -> None:
        if event == "lap":
            assert not engine.pending()
            values.append(fields["seconds"])

    stopwatch = watch(engine, task)
    clock: Callable[[], float] = lambda: engine.device.now  # noqa: E731
    assert laps.warm_up(stopwatch, plan, clock).stable
    count = laps.steps_per_lap(stopwatch, plan, 1e-9)
    laps.steady(stopwatch, plan, count, tell, clock)
    work = STEP if task == "train" else FORWARD
    assert values == [pytest.approx(work + SUBMIT / count)] * 10
