"""What giving each batch from the host adds to a step of a CNN, against batches that already lie on the device.

python benchmarks/feed.py [--blocks 30] [--batch 128] [--core 0] [ENGINE …]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from adapters import MODELS, RECIPE, SETTINGS

from timetrial.engines.locate import locate
from timetrial.runner.batches import proof_batches
from timetrial.runner.surroundings import surroundings
from timetrial.spec.network import Network
from timetrial.spec.placement import Placement
from timetrial.spec.recipe import Recipe
from timetrial.spec.trial import Settings
from timetrial.spec.weights import initial_weights

ENGINES = ("torch", "tensorflow", "jax")
SOURCE = Path(__file__).parents[1] / "src"
BATCHES = 8

# Runs inside the engine's interpreter: the worker's own two ways, block by block in turn, the order alternating.
PROBE = """
import json, sys, time
import numpy as np
from timetrial_worker import adapters, timed

job = json.load(open(sys.argv[1]))
with np.load(job["arrays"]) as arrays:
    weights = {p["name"]: arrays[p["name"]] for n in job["network"]["nodes"] for p in n["parameters"]}
    batches = [(arrays["x%d" % i], arrays["y%d" % i]) for i in range(job["batches"])]

class Feed:
    cycle = staticmethod(lambda count: batches)

adapter = adapters.load(job["adapter"], job["settings"])
adapter.start()
adapter.build(job["network"], job["recipe"], weights)
resident, fed = (timed.work(adapter, Feed, "train", dict(job["settings"], feed=kind)) for kind in ("resident", "batch"))

def seconds(work, count):
    adapter.sync()
    start = time.perf_counter()
    work.run(0, count)
    adapter.sync()
    return (time.perf_counter() - start) / count

count = 1
for work in (resident, fed):
    seconds(work, 5)
while seconds(resident, count) * count < 0.1:
    count *= 2
ratios, steps, before = [], [], fed.waited
for block in range(job["blocks"]):
    pair = (resident, fed) if block % 2 else (fed, resident)
    times = {work: seconds(work, count) for work in pair}
    ratios.append(times[fed] / times[resident])
    steps.append(times[resident])
waited = (fed.waited - before) / (count * job["blocks"])
print(json.dumps({"ratios": ratios, "step": float(np.median(steps)), "waited": waited}))
"""


def once(engine: str, batch: int, blocks: int, core: int) -> dict[str, Any]:
    located = locate(engine)
    if located.interpreter is None:
        raise SystemExit(f"{engine}: {located.problem}; {located.remedy}")
    network = Network.model_validate(MODELS["cnn"][1])
    recipe = Recipe.model_validate({**RECIPE, "batch": batch})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(
            folder / "arrays.npz", **initial_weights(network, 1), **proof_batches(network, recipe, BATCHES, seed=1)
        )
        job = {
            "adapter": located.engine.adapter, "network": network.lowered(recipe.loss), "blocks": blocks,
            "recipe": recipe.model_dump(mode="json"), "settings": SETTINGS, "batches": BATCHES,
            "arrays": str(folder / "arrays.npz"),
        }  # fmt: skip
        (folder / "job.json").write_text(json.dumps(job))
        variables = {**surroundings(Placement(), Settings(), located.variables), "PYTHONPATH": str(SOURCE)}
        command = ["taskset", "-c", str(core), str(located.interpreter), "-c", PROBE, str(folder / "job.json")]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, cwd=name, timeout=600)
    if done.returncode:
        raise SystemExit(f"{engine}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", default=ENGINES)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--core", type=int, default=0)
    asked = parser.parse_args()
    print(f"a batch of {asked.batch} given at each step, over batches on the device; quartiles over blocks", flush=True)
    for engine in asked.engines:
        found = once(engine, asked.batch, asked.blocks, asked.core)
        low, middle, high = (100 * (value - 1) for value in np.percentile(found["ratios"], (25, 50, 75)))
        print(f"{engine:17}{middle:+.2f} % [{low:+.2f}, {high:+.2f}] of {1e3 * found['step']:.1f} ms; "
              f"waited {1e6 * found['waited']:.0f} µs a step ({100 * found['waited'] / found['step']:.2f} %), aim 2 %",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
