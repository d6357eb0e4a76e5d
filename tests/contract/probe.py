"""Runs inside an engine's interpreter: collects the proof of every prepared case with one adapter, in one process.

python probe.py ENGINE FOLDER     FOLDER/CASE/{job.json, weights.npz, batches.npz} -> FOLDER/CASE/ENGINE.npz
"""

import json
import os
import sys
import traceback

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from timetrial_worker import adapters, proof
from timetrial_worker.adapters.base import Unsupported


def load(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def run(engine, folder):
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    if "reference_only" in job and engine != "reference":
        return {}
    weights, data = load(os.path.join(folder, "weights.npz")), load(os.path.join(folder, "batches.npz"))
    batches = [(data["x%d" % i], data["y%d" % i]) for i in range(job["steps"])]
    adapter = adapters.load(engine, job["settings"])
    adapter.traits = dict(adapter.traits, **job.get("traits", {}))
    adapter.start()
    adapter.build(job["network"], job["recipe"], weights)
    return proof.collect(adapter, weights, batches)


def main():
    engine, folder = sys.argv[1:3]
    wanted = sys.argv[3:] or sorted(os.listdir(folder))
    for case in wanted:
        place = os.path.join(folder, case)
        verdict = {"outcome": "ok"}
        try:
            np.savez(os.path.join(place, engine + ".npz"), **run(engine, place))
        except Unsupported as error:
            verdict = {"outcome": "unsupported", "message": str(error)}
        except Exception:
            verdict = {"outcome": "crash", "message": traceback.format_exc()}
        with open(os.path.join(place, engine + ".json"), "w") as file:
            json.dump(verdict, file)


if __name__ == "__main__":
    main()
