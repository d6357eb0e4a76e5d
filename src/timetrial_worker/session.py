"""One run, from the import of the framework to the last figure. Reads top to bottom."""

import math
import os
import time

import numpy as np

from timetrial_worker import adapters, effort, laps, profiled, proof, schedules, timed, tiny
from timetrial_worker.feed import Feed
from timetrial_worker.timed import predict, score


class Diverged(Exception):
    """The loss is not a finite number: this training is not a time."""


def load_arrays(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def open_adapter(job, wire):
    adapter = adapters.load(job["adapter"], job["settings"])
    adapter.traits = dict(adapter.traits, **job.get("traits", {}))
    with wire.phase("import"):
        versions = adapter.start()
    wire.tell("started", versions=versions, traits=adapter.traits)
    weights = load_arrays(job["weights"])
    with wire.phase("build"):
        adapter.build(job["network"], job["recipe"], weights)
    return adapter, weights


def prove(job, wire):
    """Write what the equivalence gate compares."""
    adapter, weights = open_adapter(job, wire)
    data = load_arrays(job["batches"])
    batches = [(data["x%d" % i], data["y%d" % i]) for i in range(len(data) // 2)]
    with wire.phase("prove"):
        found = proof.collect(adapter, weights, batches)
    np.savez(job["result"], **found)
    wire.tell("readback", values=tiny.readback(adapter))


def measure(job, wire):
    """The phases of a run, each timed apart."""
    adapter, weights = open_adapter(job, wire)
    words = adapter.includes(job["task"])
    if words:
        wire.tell("includes", words=words)
    feed = Feed(job["data"], job["recipe"], job["settings"]["seed"])
    with wire.phase("place"):
        work = timed.work(adapter, feed, job["task"], job["settings"])
    watch = laps.Stopwatch(work.run, adapter.sync, device=adapter, work=work)
    if job.get("profile"):
        profiled.profile(adapter, watch, laps.Plan(**job["plan"]), job["profile"], job["task"], wire)
        return
    count = time_laps(watch, laps.Plan(**job["plan"]), wire, work.first)
    if job["task"] == "train":
        check_loss(adapter.loss(), "after the laps")
    wire.tell("readback", values=tiny.readback(adapter), memory=adapter.memory())
    if job.get("repeat") and len(work.batches) > 1:
        repeat_one(adapter, work, count, job["repeat"], wire)
    if job["accuracy"]:
        train_and_test(adapter, weights, feed, wire)
        with wire.phase("save"):
            saved = adapter.save(os.path.join(job["folder"], "saved"))
        wire.tell("saved", bytes=_size(saved))


def repeat_one(adapter, work, count, laps_, wire):
    """Laps that meet one batch again and again: an engine that remembers its input gives itself away."""
    watch = laps.Stopwatch(work.repeated, adapter.sync)
    with wire.phase("repeat"):
        wire.tell("repeated", seconds=laps.repeat(watch, count, laps_))


def time_laps(watch, plan, wire, first=None):
    """All laps that count, and what led to them. `first` does the first step where a turn is more than a step.
    Returns the turns of a lap."""
    resolution = time.get_clock_info("perf_counter").resolution
    with wire.phase("first_step"):
        first() if first else watch.lap(1)
    with wire.phase("warmup"):
        warmup = laps.warm_up(watch, plan)
        count = laps.steps_per_lap(watch, plan, resolution)
    epoch = {"steps_per_epoch": watch.steps} if watch.steps > 1 else {}
    wire.tell("warm", values=warmup.values, stable=warmup.stable, steps_per_lap=count * watch.steps, **epoch)
    with wire.phase("steady"):
        switches = effort.switches()
        start, busy = time.perf_counter(), time.process_time()
        laps.steady(watch, plan, count, wire.tell)
        busy, wall = time.process_time() - busy, time.perf_counter() - start
    wire.tell(
        "steady",
        cpu_seconds=busy,
        wall_seconds=wall,
        threads=effort.threads(),
        involuntary_switches=effort.switches() - switches,
        idle_step_seconds=laps.idle_step_seconds(),
        clock_resolution=resolution,
    )
    return count


def train_and_test(adapter, weights, feed, wire):
    """From the starting weights through all epochs of the recipe, then over the test set."""
    recipe, losses = feed.recipe, []
    adapter.load(weights)
    with wire.phase("train"):
        for epoch in range(recipe["epochs"]):
            losses.append(train_epoch(adapter, feed, epoch))
        adapter.sync()
    with wire.phase("predict"):
        predicted = predict(adapter, feed)
    with wire.phase("evaluate"):
        scores = score(predicted, np.asarray(feed.y_test), recipe["loss"])
    wire.tell("trained", losses=losses, epochs=recipe["epochs"], **scores)


def train_epoch(adapter, feed, epoch):
    """Returns the loss of the epoch's last batch; without a loss that is a number there is no sense in going on."""
    recipe = feed.recipe
    batches = [adapter.place(x, y) for x, y in feed.epoch(epoch)]
    done = epoch * len(batches)
    if schedules.changes_per_iteration(recipe):
        for i in range(len(batches)):
            set_pace(adapter, recipe, epoch, done + i)
            adapter.run_steps(batches, i, 1)
    else:
        set_pace(adapter, recipe, epoch, done)
        adapter.run_steps(batches, 0, len(batches))
    adapter.sync()
    return check_loss(adapter.loss(), "in epoch {}".format(epoch + 1))


def set_pace(adapter, recipe, epoch, iteration):
    adapter.set_rate(schedules.rate_at(recipe, epoch, iteration), schedules.momentum_at(recipe, epoch, iteration))


def check_loss(loss, where):
    if not math.isfinite(loss):
        raise Diverged("the loss is {} {}".format(loss, where))
    return loss


def _size(path):
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(path) for name in names)
