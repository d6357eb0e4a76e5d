"""Feeds with real engines: the same weights whatever way the batches come, and studies that run with each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import engines

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]

# One process an engine, as the worker has it: three epochs with each feed, from the same weights.
PROBE = """
import json, sys
import numpy as np
from timetrial_worker import adapters, timed
from timetrial_worker.feed import Feed

job = json.load(open(sys.argv[1]))
with np.load(job["weights"]) as arrays:
    weights = {name: arrays[name] for name in arrays.files}
adapter = adapters.load(job["adapter"], job["settings"])
adapter.start()
adapter.build(job["network"], job["recipe"], weights)
feed = Feed(job["data"], job["recipe"], 1)
found = {}
for name, settings in sorted(job["feeds"].items()):
    adapter.load(weights)
    work = timed.work(adapter, feed, "train", dict(job["settings"], **dict(dict(workers=1, prefetch=2), **settings)))
    for epoch in range(3):
        work.prepare(epoch, 1)
        work.run(epoch, 1)
    adapter.sync()
    found.update({name + " " + key: value for key, value in adapter.weights().items()})
    print(name, work.steps, work.waited, work.scores)
np.savez(job["result"], **found)
"""
FEEDS: dict[str, dict[str, Any]] = {
    "resident": {},
    "batch": {"feed": "batch", "shuffle": "inside"},
    "tested": {"evaluate": "inside"},
    "alone": {"feed": "loader", "workers": 0},
    "loader": {"feed": "loader", "shuffle": "inside"},
    "loaders": {"feed": "loader", "workers": 2},
}


def trained(engine: str, folder: Path, feeds: dict[str, dict[str, Any]], **settings: Any) -> dict[str, Any]:
    import numpy as np

    from timetrial.engines.locate import locate
    from timetrial.runner.surroundings import surroundings
    from timetrial.spec.network import Network
    from timetrial.spec.placement import Placement
    from timetrial.spec.recipe import Recipe
    from timetrial.spec.trial import Settings
    from timetrial.spec.weights import initial_weights

    engines.find(engine)
    recipe = Recipe.model_validate({"batch": 16, "last_batch": "keep", "optimiser": {"kind": "sgd", "rate": 0.05}})
    network = Network.model_validate({"input": {"shape": [8, 8, 1]}, "layers": [
        {"conv2d": {"filters": 4, "kernel": 3, "activation": "relu"}}, "flatten", {"dropout": {"rate": 0.25}},
        {"dense": {"units": 3, "activation": "softmax"}},
    ]})  # fmt: skip
    random, data = np.random.default_rng(1), {}
    for part, count in (("train", 71), ("test", 20)):
        arrays = {"x": random.random((count, 8, 8, 1), np.float32), "y": random.integers(0, 3, count).astype(np.int32)}
        for side, values in arrays.items():
            np.save(folder / f"{side}_{part}.npy", values)
            data[f"{side}_{part}"] = str(folder / f"{side}_{part}.npy")
    np.savez(folder / "weights.npz", **initial_weights(network, 1))
    located = locate(engine)
    job = {
        "adapter": located.engine.adapter, "network": network.lowered(recipe.loss), "recipe": recipe.model_dump(mode="json"),
        "settings": {"device": "cpu", "threads": 1, "seed": 1, "precision": "float32", "lap": "epoch", **settings},
        "weights": str(folder / "weights.npz"), "data": data, "feeds": feeds, "result": str(folder / "found.npz"),
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(job))
    variables = {**surroundings(Placement(), Settings(), located.variables), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [str(located.interpreter), "-c", PROBE, str(folder / "job.json")],
        env=variables, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(folder / "found.npz") as found:
        return {name: found[name] for name in found.files}


CASES: list[tuple[str, list[str], dict[str, Any]]] = [
    ("torch", list(FEEDS), {}),
    ("tensorflow", list(FEEDS), {}),
    ("jax", ["resident", "batch", "tested"], {}),
    ("keras-torch", ["resident", "batch", "tested"], {}),
    # Its `predict` draws from the generator that dropout draws from, so a test in between changes what is dropped.
    ("keras-torch", [name for name in FEEDS if name != "tested"], {"loop": "fit"}),
    ("keras-tensorflow", list(FEEDS), {"loop": "fit"}),
    ("keras-jax", list(FEEDS), {"loop": "fit"}),
    ("theano", ["resident", "batch", "tested"], {}),
    ("tensorflow1", list(FEEDS), {}),
    ("keras2-theano", ["resident", "batch"], {"loop": "fit"}),  # as keras-torch: its `predict` draws too
    ("keras2-tensorflow", ["resident", "batch", "tested"], {}),
    ("keras2-tensorflow", ["resident", "batch", "tested"], {"loop": "fit"}),
    ("keras2-cntk", ["resident", "batch", "tested"], {"loop": "fit"}),
]


@pytest.mark.parametrize(("engine", "names", "settings"), CASES)
def test_the_trained_weights_are_the_same_whatever_way_the_batches_come(
    tmp_path: Path, engine: str, names: list[str], settings: dict[str, Any]
) -> None:
    import numpy as np

    found = trained(engine, tmp_path, {name: FEEDS[name] for name in names}, **settings)
    plain = {key.partition(" ")[2]: value for key, value in found.items() if key.startswith("resident ")}
    assert plain
    for name in names:
        for key, value in plain.items():
            np.testing.assert_allclose(found[f"{name} {key}"], value, rtol=1e-5, atol=1e-6, err_msg=f"{name} {key}")


STUDY = """
study: feeds
models: [quick/mlp]
engines: [torch, keras-tensorflow]
data: fashion-mnist-6000
samples: 640
repeat: 1
profile: quick
settings: {lap: epoch, loop: LOOP, feed: loader, workers: 2, shuffle: inside, evaluate: inside}
"""
PRESET = """
study: published
models: ["libraries/mlp-2x25"]
engines: [tensorflow, keras-jax]
samples: 800
repeat: 1
profile: quick
preset: as-published
"""


def run(text: str, folder: Path) -> dict[str, Any]:
    (folder / "study.yaml").write_text(text)
    command = [sys.executable, "-m", "timetrial", "run", "study.yaml", "--json", "--report", "page.html"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_loader_of_each_frameworks_own_runs_a_whole_study(tmp_path: Path) -> None:
    for engine, loop in (("torch", "step"), ("tensorflow1", "step"), ("keras-tensorflow", "fit")):
        engines.find(engine)
        folder = tmp_path / engine
        folder.mkdir()
        (group,) = run(STUDY.replace("torch, keras-tensorflow", engine).replace("LOOP", loop), folder)["groups"]
        (row,) = group["rows"]
        assert row["outcome"]["kind"] == "ok", row["outcome"]
        assert "own loader (2 workers, 2 batches ahead)" in row["includes"]
        assert (row["input"] is not None) is (loop == "step")


def test_a_preset_runs_and_its_table_stands_under_a_banner(tmp_path: Path) -> None:
    for engine in ("tensorflow", "keras-jax"):
        engines.find(engine)
    answer = run(PRESET, tmp_path)
    (group,) = answer["groups"]
    assert {row["outcome"]["kind"] for row in group["rows"]} == {"ok"}
    assert group["banner"].startswith("NOT LIKE WITH LIKE")
    assert any("threads as shipped" in text for text in answer["shortcomings"])
    assert "NOT LIKE WITH LIKE" in (tmp_path / "page.html").read_text()
