"""A run under the framework's own profiler: rounds with it and rounds without it take turns, so that its cost is known.

The trace is written as the framework writes it, and read elsewhere. A collector, made by the adapter's `profiler`, has

    format                          which reader understands what it writes
    start()                         begin to trace; layers are marked from here on
    step(number) -> context         around one step, which is waited for within
    stop(name)                      end tracing; write the trace as files that begin with `name`, or nowhere (None)
    facts() -> dict                 asked once, after all rounds: what else the framework can tell, untimed
    least_steps                     of a round, where that is not LEAST_STEPS
"""

import math
import os
import time

from timetrial_worker import effort, laps

ROUNDS = 5  # with the profiler, and as many without
ROUND_SECONDS = 0.3
MOST_STEPS, LEAST_STEPS = 40, 3  # of a round: traces stay small, and a step is never alone


def profile(adapter, watch, plan, folder, task, wire):
    os.makedirs(folder)
    collector = adapter.profiler(folder, task)
    with wire.phase("first_step"):
        watch.lap(1)
    with wire.phase("warmup"):
        warmup = laps.warm_up(watch, plan)
        collect(watch, collector, 1, 0, None)  # for nothing: a profiler's first start loads what it needs
    least = getattr(collector, "least_steps", LEAST_STEPS)
    steps = steps_of_round(laps.median(warmup.values[-plan.window :]), least)
    found = {name: [] for name in ("plain", "plain_cpu", "profiled", "profiled_cpu")}
    before = effort.switches()
    with wire.phase("profile"):
        for number in range(ROUNDS):
            seconds, cpu = alone(watch, steps)
            found["plain"].append(seconds / steps)
            found["plain_cpu"].append(cpu / steps)
            seconds, cpu = collect(watch, collector, steps, number * steps, "round{}".format(number))
            found["profiled"].append(seconds / steps)
            found["profiled_cpu"].append(cpu / steps)
    switches = effort.switches() - before
    with wire.phase("facts"):
        facts = collector.facts()
    wire.tell("profiled", format=collector.format, steps=steps, switches=switches, facts=facts, **found)


def alone(watch, steps):
    """Wall and CPU seconds of steps that are each waited for, as those under the profiler are."""
    start, busy = time.perf_counter(), time.process_time()
    for _ in range(steps):
        watch.lap(1)
    return time.perf_counter() - start, time.process_time() - busy


def collect(watch, collector, steps, first, name):
    collector.start()
    start, busy = time.perf_counter(), time.process_time()
    for number in range(first, first + steps):
        with collector.step(number):
            watch.lap(1)
    found = time.perf_counter() - start, time.process_time() - busy
    collector.stop(name)
    return found


def steps_of_round(seconds, least=LEAST_STEPS):
    wanted = math.ceil(ROUND_SECONDS / seconds) if seconds > 0 else MOST_STEPS
    return max(least, min(MOST_STEPS, wanted))
