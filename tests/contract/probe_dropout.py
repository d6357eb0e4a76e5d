"""Runs inside an engine's interpreter: what dropout does to a known network. Prints one JSON line.

The network is x (ones) -> dropout(rate) -> dense(1) with zero weights, the target -1, the loss mse: the gradient of
weight i is 2 m_i / (1 - rate), where m_i says whether the value was kept.

    python probe_dropout.py ENGINE JOB
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from timetrial_worker import adapters


def main():
    with open(sys.argv[2]) as file:
        job = json.load(file)
    width = job["network"]["input"]["shape"][0]
    weights = {"dense_1/kernel": np.zeros((width, 1), np.float32), "dense_1/bias": np.zeros(1, np.float32)}
    x, y = np.ones((1, width), np.float32), np.full((1, 1), -1, np.float32)
    adapter = adapters.load(sys.argv[1], job["settings"])
    adapter.start()
    adapter.build(job["network"], job["recipe"], weights)
    placed, changes = adapter.place(x, y), []
    for _ in range(2):
        adapter.load(weights)
        before = np.zeros(width)
        for _ in range(2):
            adapter.step(placed)
            adapter.sync()
            now = np.asarray(adapter.weights()["dense_1/kernel"]).ravel().astype(float)
            changes.append((now - before).tolist())
            before = now
    kernel = dict(weights)
    kernel["dense_1/kernel"] = np.ones((width, 1), np.float32)
    adapter.load(kernel)
    predicted = float(np.asarray(adapter.output(adapter.predict(adapter.place(x)))).ravel()[0])
    print(json.dumps({"changes": changes, "predicted": predicted}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
