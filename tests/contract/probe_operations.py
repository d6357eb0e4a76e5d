"""Runs inside an engine's interpreter: how many operations the framework itself counts, for every prepared network.

python probe_operations.py ENGINE FOLDER     FOLDER/CASE/{job.json, weights.npz, batches.npz} -> FOLDER/CASE/ENGINE.json

PyTorch counts what it dispatches, once as it is (`train`, `infer`) and once with its fused LSTM and attention taken
apart (`train_apart`, `infer_apart`). JAX asks XLA what the program costs as it was written, before XLA changes it.
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


def count_torch(adapter, batch):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    def count(work):
        with FlopCounterMode(display=False) as counter:
            work(batch)
        return counter.get_total_flops()

    found = {"train": count(adapter.step), "infer": count(adapter.predict)}
    with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
        found.update(train_apart=count(adapter.step), infer_apart=count(adapter.predict))
    return found


def count_jax(adapter, batch):
    state = adapter._state
    train = adapter._train.lower(state, batch[0], batch[1], adapter._rates)
    infer = adapter._answer.lower(state["params"], state["moving"], batch[0])
    return {"train": train.cost_analysis()["flops"], "infer": infer.cost_analysis()["flops"]}


COUNTERS = {"torch": count_torch, "jax": count_jax}


def run(engine, folder):
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    weights, data = load(os.path.join(folder, "weights.npz")), load(os.path.join(folder, "batches.npz"))
    adapter = adapters.load(engine, job["settings"])
    adapter.start()
    adapter.build(job["network"], job["recipe"], weights)
    return COUNTERS[engine](adapter, adapter.place(data["x0"], data["y0"]))


def main():
    engine, folder = sys.argv[1:3]
    for case in sorted(os.listdir(folder)):
        place = os.path.join(folder, case)
        with open(os.path.join(place, engine + ".json"), "w") as file:
            json.dump(run(engine, place), file)


if __name__ == "__main__":
    main()
