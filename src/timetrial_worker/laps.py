"""The timed loops. `run(first, count)` does `count` turns from the `first` one; `sync()` waits for the device.

A turn is a step, or a whole epoch of steps. A lap is some turns between two synchronisations. Times are seconds per
step. Warm-up is measured and kept.
"""

import math
import time
from collections import namedtuple

Plan = namedtuple(
    "Plan", "laps lap_seconds window tolerance warmup_steps warmup_seconds seconds precision least_seconds"
)
Warmup = namedtuple("Warmup", "values stable")

clock = time.perf_counter


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2.0


class DeviceClock(object):
    """Marks in the queue of a device's work, and the seconds between two of them. This one keeps no time."""

    def mark(self):
        return None

    def between(self, first, last):
        return None


NO_CLOCK = DeviceClock()


class Stopwatch(object):
    """Times laps and remembers which turn comes next, so that the batches go on in turn.

    `work` may have `steps` (of a turn), `prepare(first, count)` (what is done before the clock starts) and `waited`
    (seconds that steps have waited for their batches so far, None where that cannot be told).
    """

    def __init__(self, run, sync, clock=clock, device=NO_CLOCK, work=None):
        self._run, self._sync, self._clock, self._device = run, sync, clock, device
        self._prepare, self._work = getattr(work, "prepare", None), work
        self.step = 0
        self.steps = getattr(work, "steps", 1)
        self.device_seconds = None  # of the last lap, where the device itself keeps time
        self.input_seconds = None  # of the last lap, where its waiting for batches can be told

    def lap(self, count):
        run, sync, clock, mark, first = self._run, self._sync, self._clock, self._device.mark, self.step
        if self._prepare is not None:
            self._prepare(first, count)
        waited = getattr(self._work, "waited", None)
        sync()
        start = clock()
        begin = mark()
        run(first, count)
        end = mark()
        sync()
        seconds = clock() - start
        self.step = first + count
        self.device_seconds = None if begin is None else self._device.between(begin, end)
        self.input_seconds = None if waited is None else self._work.waited - waited
        return seconds


def warm_up(watch, plan, clock=clock):
    """Single turns until the medians of two windows in a row agree, or the cap is reached. Seconds a step."""
    values, deadline = [], clock() + plan.warmup_seconds
    while True:
        values.append(watch.lap(1) / watch.steps)
        if len(values) >= plan.warmup_steps and _agree(values, plan.window, plan.tolerance):
            return Warmup(values, True)
        if clock() >= deadline:
            return Warmup(values, False)


def _agree(values, window, tolerance):
    if len(values) < 2 * window:
        return False
    before, after = median(values[-2 * window : -window]), median(values[-window:])
    return abs(after - before) <= tolerance * before


def steps_per_lap(watch, plan, resolution):
    """By doubling: a lap is long enough for the clock and for the profile. Of epochs where a turn is one."""
    enough, count = max(plan.lap_seconds, 1000 * resolution), 1
    while watch.lap(count) < enough:
        count *= 2
    return count


def steady(watch, plan, count, tell, clock=clock):
    """The laps that count: at least `plan.laps`, and on until their median is known or `plan.seconds` have gone by."""
    values, start, steps = [], clock(), count * watch.steps
    while len(values) < plan.laps or not _enough(values, clock() - start, plan):
        value = watch.lap(count) / steps
        values.append(value)
        beside = (("device_seconds", watch.device_seconds), ("input_seconds", watch.input_seconds))
        tell("lap", seconds=value, **{name: seconds / steps for name, seconds in beside if seconds is not None})
    return values


def repeat(watch, count, laps):
    """Seconds a step of some more laps; the first, in which a new list of batches is met, is not kept."""
    watch.lap(count)
    return [watch.lap(count) / count for _ in range(laps)]


def _enough(values, seconds, plan):
    if seconds >= plan.seconds:
        return True
    return plan.precision > 0 and seconds >= plan.least_seconds and _is_precise(values, plan.precision)


def _is_precise(values, precision):
    """The 95 % interval of the median, from the ranks around it, is narrow; and the laps show no trend."""
    ordered, half = sorted(values), 0.98 * len(values) ** 0.5
    low = max(int(len(values) / 2.0 - half), 0)
    high = min(math.ceil(len(values) / 2.0 + half), len(values) - 1)
    middle = len(values) // 2
    trend = abs(median(values[middle:]) - median(values[:middle]))
    allowed = 2 * precision * median(values)
    return ordered[high] - ordered[low] <= allowed and trend <= allowed


def idle_step_seconds(count=20000):
    """What the loop itself costs a step: a step that does nothing, run as the adapters' own loop runs."""

    def step(batch):
        pass

    batches, start = [None] * 8, clock()
    for i in range(count):
        step(batches[i % 8])
    return (clock() - start) / count
