"""One run, from the import of the framework to the last figure. Reads top to bottom."""

import time

import numpy as np

from timetrial_worker import adapters, effort, laps, profiled, proof, timed, tiny, training
from timetrial_worker.feed import Feed


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
        training.check_loss(adapter.loss(), "after the laps")
    wire.tell("readback", values=tiny.readback(adapter), memory=adapter.memory())
    if job.get("repeat") and len(work.batches) > 1:
        repeat_one(adapter, work, count, job["repeat"], wire)
    if job["accuracy"]:
        training.train_and_test(adapter, weights, feed, wire, job)


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
