"""One training step under pyperf, as its manual shows: a runner, a name and a function.

python pyperf_step.py --job JOB [--slowed] [pyperf's own options]
"""

import json
import os
import sys

import numpy as np
import pyperf

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "src"), HERE]

import slowed


def step_of(path, adapter):
    """The same work that Timetrial's worker is given."""
    with open(path) as file:
        job = json.load(file)
    with np.load(job["arrays"]) as arrays:
        weights = {p["name"]: arrays[p["name"]] for n in job["network"]["nodes"] for p in n["parameters"]}
        batches = [(arrays["x%d" % i], arrays["y%d" % i]) for i in range(8)]
    adapter = adapter(job["settings"])
    adapter.start()
    adapter.build(job["network"], job["recipe"], weights)
    placed = [adapter.place(x, y) for x, y in batches]
    done = [0]

    def step():
        adapter.step(placed[done[0] % 8])
        done[0] += 1

    return step


def main():
    def pass_on(command, asked):
        command += ["--job", asked.job]
        if asked.slowed:
            command.append("--slowed")

    runner = pyperf.Runner(add_cmdline_args=pass_on)
    runner.argparser.add_argument("--job", required=True)
    runner.argparser.add_argument("--slowed", action="store_true")
    asked = runner.parse_args()
    step = step_of(asked.job, slowed.Slowed if asked.slowed else slowed.Plain) if asked.worker else None
    runner.bench_func("step", step or (lambda: None))


if __name__ == "__main__":
    main()
