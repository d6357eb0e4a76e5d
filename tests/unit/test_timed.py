"""What stands inside the clock, by an adapter and a feed whose every act takes a time of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.test_laps import PLAN, feed, numbers
from timetrial_worker import laps, timed
from timetrial_worker.adapters.base import Adapter, Unsupported
from timetrial_worker.adapters.jax_native import Jax
from timetrial_worker.adapters.keras2 import Keras2
from timetrial_worker.adapters.keras3 import Keras3

TICK = 2.0**-10  # sums of it are exact
ORDER, GATHER, PLACE, STEP, PREDICT, LOAD = (TICK * 4**n for n in range(6))
TRAIN, BATCH, TEST = 23, 5, 7  # four whole batches and three samples; the test set takes two


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Toll(Adapter):
    """Each act moves the clock; `seen` holds the samples of every step."""

    name = "toll"

    def __init__(self, clock: Clock) -> None:
        Adapter.__init__(self, {})
        self.clock, self.seen, self.answered = clock, [], 0  # type: ignore[var-annotated]

    def place(self, x: Any, y: Any = None) -> Any:
        self.clock.now += PLACE
        return x, y

    def step(self, batch: Any) -> None:
        self.clock.now += STEP
        self.seen.append(batch[1].tolist())

    def predict(self, batch: Any) -> Any:
        self.clock.now += PREDICT
        self.answered += 1
        return np.eye(3)[batch[0][:, 0].astype(int) % 3]

    def output(self, predicted: Any) -> Any:
        return predicted

    def sync(self) -> None: ...

    def loader(self, x: Any, y: Any, workers: int, prefetch: int) -> Any:
        def coming(picks: Any) -> Any:
            for pick in picks:
                self.clock.now += LOAD
                yield x[pick], None if y is None else y[pick]

        return coming


class Fits(Toll):
    """Has a loop of its own, over arrays or over what its loader gives."""

    def fit(self, x: Any, y: Any = None, size: int | None = None) -> None:
        if size is None:
            for batch in x:
                self.step(batch)
        else:
            Toll.fit(self, x, y, size)


def bench(folder: Path, kind: type[Toll] = Toll, task: str = "train", recipe: dict[str, Any] | None = None,
          **settings: Any) -> tuple[Toll, laps.Stopwatch, Any]:  # fmt: skip
    clock = Clock()
    fed = feed(folder, TRAIN, TEST, **{"last_batch": "keep", **(recipe or {})})
    order, take = fed._order, fed.take

    def slow_order(epoch: int) -> Any:
        clock.now += ORDER
        return order(epoch)

    def slow_take(places: Any) -> Any:
        clock.now += GATHER
        return take(places)

    fed._order, fed.take = slow_order, slow_take  # type: ignore[method-assign]
    adapter = kind(clock)
    work = timed.work(adapter, fed, task, {"workers": 1, "prefetch": 2, **settings}, clock)
    return adapter, laps.Stopwatch(work.run, adapter.sync, clock, work=work), work


@pytest.mark.parametrize(
    ("settings", "step", "waited"),
    [
        ({}, STEP, None),
        ({"feed": "batch"}, PLACE + STEP, PLACE),
        ({"feed": "loader"}, LOAD + STEP, LOAD),
        ({"feed": "batch", "loop": "fit"}, STEP, None),  # host arrays, given to the framework's own loop
    ],
)
def test_a_feed_puts_its_work_into_every_step(tmp_path: Path, settings: Any, step: float, waited: float | None) -> None:
    _, watch, _ = bench(tmp_path, **settings)
    for count in (1, 2, 7):
        assert watch.lap(count) == count * step
        assert watch.input_seconds == (None if waited is None else count * waited)


@pytest.mark.parametrize("kind", ["batch", "loader"])
def test_a_prediction_is_fed_likewise_and_without_labels(tmp_path: Path, kind: str) -> None:
    adapter, watch, _ = bench(tmp_path, task="infer", feed=kind)
    assert watch.lap(3) == 3 * (PREDICT + (PLACE if kind == "batch" else LOAD))
    assert (adapter.answered, adapter.seen) == (3, [])


ANSWERS = 2 * PREDICT


@pytest.mark.parametrize(
    ("settings", "epoch", "waited"),
    [
        ({}, 5 * STEP, None),
        ({"feed": "batch"}, 5 * (PLACE + STEP), 5 * PLACE),
        ({"feed": "batch", "shuffle": "inside"}, ORDER + 5 * (GATHER + PLACE + STEP), ORDER + 5 * (GATHER + PLACE)),
        ({"feed": "loader"}, 5 * (LOAD + STEP), 5 * LOAD),
        ({"feed": "loader", "shuffle": "inside"}, ORDER + 5 * (LOAD + STEP), ORDER + 5 * LOAD),
        ({"evaluate": "inside"}, 5 * STEP + ANSWERS, None),
        ({"evaluate": "inside", "feed": "batch"}, 5 * (PLACE + STEP) + 2 * PLACE + ANSWERS, 5 * PLACE),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_each_setting_puts_its_part_of_an_epoch_inside_the_clock(
    tmp_path: Path, settings: Any, epoch: float, waited: float | None, count: int
) -> None:
    _, watch, _ = bench(tmp_path, lap="epoch", **settings)
    for _ in range(2):
        assert watch.lap(count) == count * epoch
        assert watch.input_seconds == (None if waited is None else count * waited)


def test_a_fit_has_its_whole_epoch_gathered_outside_or_inside(tmp_path: Path) -> None:
    """The base's own `fit` places what it cuts; how long it waits for that is not known outside of it."""
    for where, more in (("outside", 0.0), ("inside", ORDER + GATHER)):
        adapter, watch, _ = bench(tmp_path, Fits, lap="epoch", loop="fit", feed="batch", shuffle=where)
        assert watch.lap(1) == 5 * (PLACE + STEP) + more
        assert watch.input_seconds is None
        assert len(adapter.seen) == 5
    adapter, watch, _ = bench(tmp_path, Fits, lap="epoch", loop="fit", feed="loader", shuffle="inside")
    assert watch.lap(1) == ORDER + 5 * (LOAD + STEP)


def test_a_fit_evaluates_by_its_own_loop(tmp_path: Path) -> None:
    adapter, watch, work = bench(tmp_path, Fits, lap="epoch", loop="fit", feed="batch", evaluate="inside")
    watch.lap(1)
    assert adapter.answered == 2
    assert work.scores.keys() == {"accuracy"}


@pytest.mark.parametrize("last", ["keep", "drop"])
def test_the_last_partial_batch_is_part_of_the_epoch_or_not(tmp_path: Path, last: str) -> None:
    adapter, watch, work = bench(tmp_path, recipe={"last_batch": last}, lap="epoch", feed="batch")
    watch.lap(1)
    steps = 5 if last == "keep" else 4
    assert work.steps == watch.steps == len(adapter.seen) == steps
    assert [len(part) for part in adapter.seen] == [5, 5, 5, 5, 3][:steps]


FEEDS: list[dict[str, Any]] = [
    {},
    {"feed": "batch"},
    {"feed": "loader"},
    {"feed": "batch", "shuffle": "inside"},
    {"feed": "loader", "shuffle": "inside"},
    {"feed": "batch", "loop": "fit"},
    {"feed": "loader", "loop": "fit", "shuffle": "inside"},
]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("settings", FEEDS)
def test_the_batches_are_the_same_in_the_same_order_with_every_feed(
    tmp_path: Path, settings: Any, shuffle: bool
) -> None:
    adapter, watch, _ = bench(tmp_path, Fits, recipe={"shuffle": shuffle}, lap="epoch", **settings)
    for count in (1, 2):
        watch.lap(count)
    fed = feed(tmp_path, TRAIN, TEST, last_batch="keep", shuffle=shuffle)
    assert adapter.seen == [part for epoch in range(3) for part in numbers(fed.epoch(epoch))]


@pytest.mark.parametrize("settings", [*FEEDS[:3], {"feed": "loader", "loop": "fit"}])
def test_steps_meet_the_same_batches_with_every_feed(tmp_path: Path, settings: Any) -> None:
    adapter, watch, _ = bench(tmp_path, Fits, **settings)
    for count in (1, 2, 4):
        watch.lap(count)
    cycle = numbers(feed(tmp_path, TRAIN, TEST, last_batch="keep").cycle(timed.BATCHES))
    assert adapter.seen == [cycle[i % len(cycle)] for i in range(7)]


def test_a_new_order_is_drawn_for_every_epoch_and_only_where_there_is_one_kept(tmp_path: Path) -> None:
    adapter, watch, _ = bench(tmp_path, lap="epoch")
    watch.lap(1)
    watch.lap(1)
    assert adapter.seen[:5] != adapter.seen[5:]
    adapter, watch, _ = bench(tmp_path, recipe={"shuffle": False}, lap="epoch")
    watch.lap(1)
    before = adapter.clock.now
    assert watch.lap(1) == adapter.clock.now - before == 5 * STEP  # nothing is gathered or placed twice


def test_seconds_are_told_by_the_step_and_the_epoch_is_kept(tmp_path: Path) -> None:
    _, watch, _ = bench(tmp_path, lap="epoch", feed="batch")
    told: list[dict[str, Any]] = []
    plan = PLAN._replace(laps=2, seconds=0.0)
    laps.steady(watch, plan, 3, lambda event, **fields: told.append(fields), lambda: 0.0)
    assert told == [{"seconds": PLACE + STEP, "input_seconds": PLACE}] * 2
    assert laps.warm_up(watch, plan, lambda: 0.0).values[0] == PLACE + STEP


def test_the_first_step_is_one_and_no_epoch(tmp_path: Path) -> None:
    adapter, _, work = bench(tmp_path, lap="epoch")
    work.first()
    assert len(adapter.seen) == 1


def test_waiting_ends_with_the_batches_and_counts_their_end(tmp_path: Path) -> None:
    clock = Clock()

    def batches() -> Any:
        for n in (1, 2):
            clock.now += 8.0
            yield n
        clock.now += 0.5  # finding out that there is no more

    wait = timed.Wait(clock)
    for _ in wait.over(batches()):
        clock.now += 100.0  # the step itself is no waiting
    assert wait.seconds == 16.5


class Calls:
    """In a Keras model's place: remembers what its own loops were given."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    def fit(self, x: Any, y: Any, batch_size: int, **_: Any) -> None:
        assert len(x) == len(y)
        self.seen.append(("fit", len(x), batch_size))

    def predict(self, x: Any, batch_size: int, **_: Any) -> Any:
        self.seen.append(("predict", len(x), batch_size))
        return np.zeros((len(x), 3), np.float32)


@pytest.mark.parametrize("kind", [Keras2, Keras3])
def test_keras_is_given_an_epoch_as_a_whole_and_cuts_it_itself(tmp_path: Path, kind: Any) -> None:
    """Batches placed one by one and joined again, and a call a batch, would be work that no program of its users had."""
    adapter, model = kind({"loop": "fit"}), Calls()
    adapter._model = adapter._inference = model
    adapter._fit, adapter.floatx, adapter._callback = True, "float32", None
    adapter._first = adapter._input_is_image = adapter._tokens = adapter._integers = adapter._channels_first = False
    settings = {"lap": "epoch", "loop": "fit", "feed": "batch", "evaluate": "inside"}
    work = timed.work(adapter, feed(tmp_path, TRAIN, TEST, last_batch="keep"), "train", settings)
    work.prepare(0, 1)
    work.run(0, 1)
    assert model.seen == [("fit", TRAIN, BATCH), ("predict", TEST, BATCH)]


class Queues(Toll):
    """Its own queue is full whenever a step begins."""

    def evaluation(self, x: Any, y: Any, size: int) -> Any:
        self.queued = len(x), len(y), size
        return lambda: self.predict((x[:size], y))


def test_a_step_of_a_queue_is_the_engine_s_own_over_the_test_set(tmp_path: Path) -> None:
    adapter, watch, work = bench(tmp_path, Queues, task="infer", feed="queue")
    assert isinstance(adapter, Queues)
    assert watch.lap(3) == 3 * PREDICT
    assert adapter.queued == (TEST, TEST, feed(tmp_path, TRAIN, TEST).batch)
    assert (work.steps, work.batches, watch.input_seconds) == (1, (), None)


def test_a_queue_is_for_evaluations_of_engines_that_have_one(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="feed: queue is of an evaluation; use it with the task infer"):
        bench(tmp_path, Queues, feed="queue")
    with pytest.raises(Unsupported, match="jax has no queue in a graph: use another feed than queue"):
        Jax({}).evaluation(None, None, 1)


def test_an_engine_without_a_pipeline_says_so_and_names_what_there_is() -> None:
    with pytest.raises(Unsupported, match="jax has no input pipeline of its own: use feed: resident or feed: batch"):
        Jax({}).loader(None, None, 1, 2)
