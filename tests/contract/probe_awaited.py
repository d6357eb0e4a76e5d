"""Runs inside an engine's interpreter: is everything that JAX holds ready once the adapter has waited?

python probe_awaited.py ENGINE FOLDER     FOLDER/{job.json, weights.npz, batches.npz} -> FOLDER/ENGINE.json
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from timetrial_worker import adapters


def load(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def main():
    engine, folder = sys.argv[1:3]
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    adapter = adapters.load(engine, job["settings"])
    adapter.start()
    import jax

    adapter.build(job["network"], job["recipe"], load(os.path.join(folder, "weights.npz")))
    data = load(os.path.join(folder, "batches.npz"))
    batches = [adapter.place(data["x%d" % i], data["y%d" % i]) for i in range(2)]
    found = {}
    for task, work in (("train", adapter.run_steps), ("infer", adapter.run_predictions)):
        work(batches, 0, 2)  # compiled
        adapter.sync()
        work(batches, 0, 20)
        adapter.sync()
        arrays = jax.live_arrays()
        found[task] = [len(arrays), sum(not array.is_ready() for array in arrays)]
    with open(os.path.join(folder, engine + ".json"), "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
