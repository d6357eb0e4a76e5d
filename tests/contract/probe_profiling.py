"""Runs inside an engine's interpreter: every prepared network under the framework's own profiler.

python probe_profiling.py ENGINE FOLDER     FOLDER/CASE/{job.json, weights.npz, batches.npz} -> FOLDER/CASE/ENGINE-TASK/

In `told.json` stands what a run would have told, and what was left behind of the marks; `refused.json` says what the
engine answers where it compiles.
"""

import contextlib
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from timetrial_worker import adapters, laps, profiled, timed
from timetrial_worker.adapters.base import Unsupported

PLAN = laps.Plan(3, 0.0, 2, 0.5, 2, 1.0, 0.0, 0.0, 0.0)
COMPILED = {"torch": "compiled", "keras-torch": "inductor"}


class Wire(object):
    def __init__(self):
        self.told = {}

    @contextlib.contextmanager
    def phase(self, name):
        yield

    def tell(self, kind, **values):
        self.told.update(values)


class Watched(object):
    """A collector that says what its marks left behind."""

    def __init__(self, collector):
        self._collector, self.left = collector, []
        self.format, self.step, self.facts = collector.format, collector.step, collector.facts

    def start(self):
        self._before = [(owner, name, vars(owner).get(name)) for owner, name, _ in self._collector.marked()]
        self._collector.start()
        self.marked = sum(vars(owner).get(name) is not value for owner, name, value in self._before)

    def stop(self, name):
        self._collector.stop(name)
        self.left += [name for owner, name, value in self._before if vars(owner).get(name) is not value]


def load(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def run(engine, place):
    with open(os.path.join(place, "job.json")) as file:
        job = json.load(file)
    weights, data = load(os.path.join(place, "weights.npz")), load(os.path.join(place, "batches.npz"))
    adapter = adapters.load(engine, job["settings"])
    adapter.start()
    adapter.build(job["network"], job["recipe"], weights)
    if os.path.basename(place) == "slow-marks":
        from timetrial_worker.adapters import torch_profiler

        torch_profiler.Mark = torch_profiler.record_function
    for task in ("train", "infer"):
        trace(adapter, data, task, os.path.join(place, "{}-{}".format(engine, task)))


def trace(adapter, data, task, folder):
    batches = [adapter.place(data["x0"], data["y0"] if task == "train" else None)]
    work, make = timed.Resident(adapter, batches, task), adapter.profiler
    watch, wire, made = laps.Stopwatch(work.run, adapter.sync, work=work), Wire(), []

    def profiler(*arguments):
        made.append(Watched(make(*arguments)))
        return made[0]

    adapter.profiler = profiler
    profiled.profile(adapter, watch, PLAN, folder, task, wire)
    del adapter.profiler
    with open(os.path.join(folder, "told.json"), "w") as file:
        json.dump(dict(wire.told, left=made[0].left, marked=made[0].marked), file)


def refused(engine, settings):
    adapter = adapters.load(engine, dict(settings, compile=COMPILED[engine]))
    adapter.start()
    try:
        adapter.profiler("nowhere", "train")
    except Unsupported as error:
        return str(error)


def main():
    engine, folder = sys.argv[1:3]
    profiled.ROUND_SECONDS = 0.0  # only as many steps as there must be
    with open(os.path.join(folder, "refused-{}.json".format(engine)), "w") as file:
        json.dump(refused(engine, {"device": "cpu", "threads": 1, "seed": 1, "precision": "float32"}), file)
    for case in sorted(name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))):
        run(engine, os.path.join(folder, case))


if __name__ == "__main__":
    main()
