"""Runs inside an original engine's interpreter: a few steps of each prepared case under the engine's profiler.

python probe_originals.py FOLDER     FOLDER/CASE/{job.json, weights.npz, x_*.npy, y_*.npy} -> FOLDER/CASE/trace,
and told.json: for an evaluation how many of its first batch are right, by the step and by the predictions; for
TensorFlow 1 what its own profiler makes of the same steps.
"""

import json
import os
import sys
from collections import OrderedDict

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from timetrial_worker import adapters, timed
from timetrial_worker.adapters.base import Unsupported
from timetrial_worker.feed import Feed

ROUNDS, STEPS = 2, 3


def run(folder):
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    adapter = adapters.load(job["engine"], job["settings"])
    adapter.start()
    with np.load(os.path.join(folder, "weights.npz")) as arrays:
        adapter.build(job["network"], job["recipe"], {name: arrays[name] for name in arrays.files})
    paths = {name: os.path.join(folder, name + ".npy") for name in ("x_train", "y_train", "x_test", "y_test")}
    feed = Feed(paths, job["recipe"], 1)
    work = timed.work(adapter, feed, job["task"], job["settings"])
    told = evaluated(adapter, feed, work) if job["settings"].get("feed") == "queue" else {}
    trace = os.path.join(folder, "trace")
    os.makedirs(trace)
    collector, kept = adapter.profiler(trace, job["task"]), []
    work.run(0, 2)
    for number in range(-1, ROUNDS):  # the first for nothing
        collector.start()
        for step in range(STEPS):
            with collector.step(number * STEPS + step):
                work.run(step, 1)
        collector.stop(None if number < 0 else "round{}".format(number))
        kept += collector.steps if number >= 0 else []
    collector.facts()
    work.run(0, 1)  # it goes on as before
    if job["engine"] == "tensorflow1":
        told["profiler"] = by_tensorflow(adapter, [step[3] for step in kept])
    return told


def evaluated(adapter, feed, work):
    """The queue begins with the first samples."""
    x, y = np.asarray(feed.x_test[: feed.batch]), np.asarray(feed.y_test[: feed.batch])
    right = adapter.output(adapter.predict(adapter.place(x))).argmax(-1) == y
    return {"step": np.asarray(work._step()).tolist(), "predictions": right.tolist()}


def by_tensorflow(adapter, steps):
    """[bytes, microseconds] of each type, as TensorFlow's own profiler has them."""
    profiler = adapter.tf.profiler
    whole = profiler.Profiler(adapter.graph)
    for number, metadata in enumerate(steps):
        whole.add_step(number, metadata)
    options = profiler.ProfileOptionBuilder(profiler.ProfileOptionBuilder.time_and_memory(min_micros=0, min_bytes=0))
    node, found = whole.profile_operations(options.with_empty_output().build()), {}
    while node.children:
        node = node.children[0]
        found[node.name] = [node.requested_bytes, node.exec_micros]
    return found


def main():
    folder = sys.argv[1]
    for case in sorted(os.listdir(folder)):
        place = os.path.join(folder, case)
        try:
            told = run(place)
        except Unsupported as error:
            told = OrderedDict(unsupported=str(error))
        with open(os.path.join(place, "told.json"), "w") as file:
            json.dump(told, file)


if __name__ == "__main__":
    main()
