"""Runs inside an engine's interpreter: a hand-written loop and the adapter in turn, in one process.

python beside.py JOB     prints one JSON line: {"train": [ratio, …], "infer": [ratio, …], "hand": seconds a step}
"""

import importlib
import json
import os
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "src"), os.path.join(HERE, "hand")]

from timetrial_worker import adapters

BLOCK_SECONDS = 0.1


def seconds(run, count):
    start = time.perf_counter()
    run(count)
    return time.perf_counter() - start


def compare(hand, adapter, blocks):
    """Adapter's time over the hand-written loop's, block by block, the order alternating."""
    for run in (hand, adapter):
        run(3)
    count = 1
    while seconds(hand, count) < BLOCK_SECONDS and count < 4096:
        count *= 2
    for run in (hand, adapter):
        run(count)
    ratios, times = [], []
    for block in range(blocks):
        if block % 2:
            theirs, ours = seconds(hand, count), seconds(adapter, count)
        else:
            ours, theirs = seconds(adapter, count), seconds(hand, count)
        ratios.append(ours / theirs)
        times.append(theirs / count)
    return float(np.median(ratios)), float(np.median(times))


def main(path):
    with open(path) as file:
        job = json.load(file)
    with np.load(job["arrays"]) as arrays:
        weights = {p["name"]: arrays[p["name"]] for n in job["network"]["nodes"] for p in n["parameters"]}
        batches = [(arrays["x%d" % i], arrays["y%d" % i]) for i in range(8)]
    adapter = adapters.load(job["adapter"], job["settings"])
    adapter.start()
    adapter.build(job["network"], job["recipe"], weights)
    optimiser, settings = job["recipe"]["optimiser"], job["settings"]
    train, predict = importlib.import_module(job["hand"]).make(
        job["kind"], weights, batches, optimiser["rate"], optimiser["momentum"], settings["loop"], settings["device"]
    )
    placed = [adapter.place(x, y) for x, y in batches]
    inputs = [adapter.place(x) for x, _ in batches]

    def run_train(count):
        adapter.run_steps(placed, 0, count)
        adapter.sync()

    def run_predict(count):
        output = adapter.run_predictions(inputs, 0, count)
        adapter.sync()
        return output

    ours, theirs = adapter.output(run_predict(1)), np.asarray(predict(1))
    difference = float(np.abs(ours - theirs).max())
    assert difference < 1e-4, "not the same function: predictions differ by {}".format(difference)
    found = {"difference": difference}
    for task, hand, mine in (("infer", predict, run_predict), ("train", train, run_train)):
        found[task], found[task + "_seconds"] = compare(hand, mine, job["blocks"])
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
