"""Every adapter against a hand-written loop of the same framework: ratio of times, adapter over hand-written.

python benchmarks/adapters.py [--processes 5] [--blocks 30] [--models mlp,cnn,lstm] [ENGINE …]
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

from timetrial.engines.locate import Located, locate
from timetrial.runner.batches import proof_batches
from timetrial.runner.surroundings import surroundings
from timetrial.spec.network import Network
from timetrial.spec.placement import Placement
from timetrial.spec.recipe import Recipe
from timetrial.spec.trial import Settings
from timetrial.spec.weights import initial_weights
from timetrial.stats.intervals import interval

ENGINES = (
    "torch", "tensorflow", "jax", "keras-torch", "keras-tensorflow", "keras-jax",
    "theano", "tensorflow1", "keras2-theano", "keras2-tensorflow", "keras2-cntk", "sklearn",
)  # fmt: skip
# What an engine cannot do, or what its framework's own layer computes otherwise (see docs/engines.md), is left out.
ONLY = {"sklearn": ("mlp",), "keras2-cntk": ("mlp", "cnn")}
BESIDE = Path(__file__).with_name("beside.py")
SETTINGS = {**Settings().model_dump(), "device": "cpu", "threads": 1, "seed": 1, "precision": "float32"}
RECIPE = {"optimiser": {"kind": "sgd", "rate": 0.01, "momentum": 0.9}}


def _dense(units: int, activation: str = "relu") -> dict[str, Any]:
    return {"dense": {"units": units, "activation": activation}}


MODELS: dict[str, tuple[int, dict[str, Any]]] = {
    "mlp": (64, {"input": {"shape": [784]}, "layers": [_dense(512), _dense(512), _dense(10, "softmax")]}),
    "cnn": (64, {"input": {"shape": [28, 28, 1]}, "layers": [
        {"conv2d": {"filters": 32, "kernel": 5, "activation": "relu"}}, "max_pool",
        {"conv2d": {"filters": 64, "kernel": 5, "activation": "relu"}}, "max_pool",
        "flatten", _dense(500), _dense(10, "softmax"),
    ]}),
    "lstm": (32, {"input": {"shape": [50, 16]}, "layers": [{"lstm": {"units": 64}}, _dense(10, "softmax")]}),
}  # fmt: skip


def job(engine: str, loop: str, kind: str, blocks: int, folder: Path) -> Path:
    batch, description = MODELS[kind]
    network = Network.model_validate(description)
    recipe = Recipe.model_validate({**RECIPE, "batch": batch})
    arrays = {**initial_weights(network, 1), **proof_batches(network, recipe, 8, seed=1)}
    np.savez(folder / "arrays.npz", **arrays)
    content = {
        "adapter": engine, "hand": f"{engine.partition('-')[0]}_loops", "kind": kind, "blocks": blocks,
        "network": network.lowered(recipe.loss), "recipe": recipe.model_dump(mode="json"),
        "arrays": str(folder / "arrays.npz"),
        "settings": {**SETTINGS, "loop": loop},
    }  # fmt: skip
    path = folder / "job.json"
    path.write_text(json.dumps(content))
    return path


def once(located: Located, loop: str, kind: str, blocks: int, core: int) -> dict[str, float]:
    engine = located.engine.name
    with tempfile.TemporaryDirectory() as name:
        path = job(engine, loop, kind, blocks, Path(name))
        variables = surroundings(Placement(), Settings(), located.variables)
        command = ["taskset", "-c", str(core), str(located.interpreter), str(BESIDE), str(path)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, cwd=name, timeout=1800)
    if done.returncode:
        raise SystemExit(f"{engine} {kind}: {done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", default=ENGINES)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--models", default="mlp,cnn,lstm")
    parser.add_argument("--core", type=int, default=0)
    asked = parser.parse_args()
    print("adapter's time / hand-written loop's time, one thread; interval over processes", flush=True)
    for engine in asked.engines:
        located = locate(engine)
        if located.interpreter is None:
            print(f"{engine}: {located.problem}; {located.remedy}", flush=True)
            continue
        for loop in ("step", "fit") if engine.startswith("keras") else ("step",):
            for kind in (kind for kind in asked.models.split(",") if kind in ONLY.get(engine, MODELS)):
                found = [once(located, loop, kind, asked.blocks, asked.core) for _ in range(asked.processes)]
                for task in ("train", "infer"):
                    spread = interval([one[task] for one in found])
                    bounds = "" if spread.low is None else f" [{spread.low:.3f}, {spread.high:.3f}]"
                    seconds = float(np.median([one[f"{task}_seconds"] for one in found]))
                    print(f"{engine:17}{loop:5}{kind:5}{task:6} {spread.value:.3f}{bounds}  "
                          f"({1e3 * seconds:.2f} ms by hand)", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
