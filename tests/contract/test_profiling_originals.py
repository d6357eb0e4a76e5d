"""The original engines under their profilers: what is read of them, and the published study's bytes to the byte."""

from __future__ import annotations

import atexit
import gzip
import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import engines
from tests.contract.prepare import clean_environment
from tests.unit import made_profiles as made
from timetrial.profiling import published, readers_of
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.requested import HANDLES, requested
from timetrial.profiling.workload import Workload
from timetrial.records.profiled import Profiled
from timetrial.spec.weights import initial_weights
from timetrial.zoo.catalogue import find

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]
PROBE = Path(__file__).with_name("probe_originals.py")
ROOT = Path(tempfile.mkdtemp(prefix="timetrial-originals-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)

STEPS = 6
AS_PUBLISHED = {"feed": "queue", "compile": "as-written"}
# By engine: model, task, batch, settings. All of an engine's run in one process.
CASES: dict[str, dict[str, tuple[str, str, int, dict[str, str]]]] = {
    "tensorflow1": {
        "train": ("quick/cnn", "train", 16, {}),
        "infer": ("quick/cnn", "infer", 16, {}),
        "study": ("profiling/cnn", "infer", 128, AS_PUBLISHED),
        "variant": ("profiling/cnn-stride-5", "infer", 128, AS_PUBLISHED),
        "refused": ("quick/cnn", "train", 16, AS_PUBLISHED),
    },
    "keras2-tensorflow": {"train": ("quick/cnn", "train", 16, {}), "infer": ("quick/cnn", "infer", 16, {})},
    "theano": {"train": ("quick/cnn", "train", 16, {}), "infer": ("quick/cnn", "infer", 16, {})},
    "keras2-cntk": {"refused": ("quick/cnn", "infer", 16, {})},
}
READ = [(engine, case) for engine, cases in CASES.items() for case in cases if case != "refused"]


@cache
def ran(engine: str) -> Path:
    located, folder = engines.find(engine), ROOT / engine
    for name, (model, task, batch, settings) in CASES[engine].items():
        write(folder / name, engine, model, task, batch, settings)
    subprocess.run(
        [str(located.interpreter), str(PROBE), str(folder)],
        check=True, env=clean_environment(located.variables), stdin=subprocess.DEVNULL, timeout=500,
    )  # fmt: skip
    return folder


def write(place: Path, engine: str, model: str, task: str, batch: int, settings: dict[str, str]) -> None:
    place.mkdir(parents=True)
    found = find(model)
    recipe = found.recipe.model_copy(update={"batch": batch})
    chance = np.random.default_rng(5)
    for part in ("train", "test"):
        x = chance.standard_normal((2 * batch, *found.network.input.shape), np.float32)
        np.save(place / f"x_{part}.npy", x)
        np.save(place / f"y_{part}.npy", chance.integers(0, 10, 2 * batch).astype(np.int64))
    np.savez(place / "weights.npz", **initial_weights(found.network, seed=3))
    job = {
        "engine": engine,
        "network": found.network.lowered(recipe.loss),
        "recipe": recipe.model_dump(mode="json"),
        "settings": {"device": "cpu", "threads": 1, "seed": 1, "precision": "float32", "loop": "step", **settings},
        "task": task,
    }
    (place / "job.json").write_text(json.dumps(job))


@cache
def profile(engine: str, case: str) -> Profile:
    model, task, batch, _ = CASES[engine][case]
    trace = ran(engine) / case / "trace"
    for path in trace.glob("*[!z]"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    found = find(model)
    workload = Workload(model, found.network, found.recipe.model_copy(update={"batch": batch}), task, engine)
    kind = "theano" if engine == "theano" else "step_stats"
    run = Profiled(format=kind, steps=STEPS, plain=(0.01,), profiled=(0.01,), trace=str(trace))
    record = made.record(engine).model_copy(update={"profile": run})
    return assemble(readers_of.read(trace, kind, workload), workload, record)


def told(engine: str, case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ran(engine) / case / "told.json").read_text())
    return found


@pytest.mark.parametrize(("engine", "case"), READ)
def test_nearly_all_time_has_a_layer_or_a_phase(engine: str, case: str) -> None:
    header = profile(engine, case).header
    assert header.steps == STEPS
    assert header.attributed > 0.98
    assert 0 < header.coverage <= 1
    assert header.overlapping == 0


@pytest.mark.parametrize(("engine", "case"), READ)
def test_every_layer_that_computes_has_its_operations_in_every_step(engine: str, case: str) -> None:
    found = profile(engine, case)
    placed = found.ops[found.ops["layer"].notna()]
    working = {node.name for node in found.workload.network.nodes if node.parameters or node.op == "max_pool"}
    wanted = {(layer, phase) for layer in working for phase in ("forward", "backward")}
    if found.workload.task == "infer":
        wanted = {(layer, phase) for layer, phase in wanted if phase == "forward"}
    for _, step in placed.groupby("step"):
        assert wanted <= set(zip(step["layer"], step["phase"], strict=True))


@pytest.mark.parametrize("engine", ["tensorflow1", "keras2-tensorflow", "theano"])
def test_a_training_step_has_its_phases(engine: str) -> None:
    assert {"forward", "loss", "backward", "optimiser"} <= set(profile(engine, "train").ops["phase"])


@pytest.mark.parametrize(("engine", "case"), READ)
def test_a_layer_s_operations_are_charged_to_it(engine: str, case: str) -> None:
    """Whatever the engine calls them, the multiply-adds of convolutions and products come out whole."""
    found = profile(engine, case)
    by_layer = found.per_step("layer").set_index("layer")["flops"]
    assert (by_layer[["conv2d_1", "conv2d_2", "dense_1"]] > 0).all()


@pytest.mark.parametrize("case", ["train", "infer", "study", "variant"])
def test_bytes_and_times_are_those_of_tensorflow_s_own_profiler(case: str) -> None:
    """Bytes to the byte. Its times are cut to microseconds at each operation of each step, and then again.

    It takes a fused operation for the one of the program whose name it bears, and has no type for what rewriting added.
    """
    theirs, found = told("tensorflow1", case)["profiler"], profile("tensorflow1", case)
    ours = {row.name: row for row in published.rows(found)}
    named = set(ours) & {kind for kind, (_, micros) in theirs.items() if micros}
    alone = named if case in ("study", "variant") else named - {"Relu", "BiasAdd", "Const", "NoOp"}
    if case in ("study", "variant"):
        ran = {kind for kind, (_, micros) in theirs.items() if micros}
        assert set(ours) == {kind for kind in ran if not kind.startswith("_")}
    assert len(alone) >= 3
    for kind in sorted(alone):
        assert ours[kind].bytes == theirs[kind][0], kind
        slack = 2 * len(found.ops[found.ops["type"] == kind]) / STEPS + 1
        assert ours[kind].cpu == pytest.approx(theirs[kind][1], abs=slack), kind


@pytest.mark.parametrize("case", ["study", "variant"])
def test_the_study_s_step_asks_for_the_study_s_bytes(case: str) -> None:
    """Every type of operation of the published table, and no other."""
    found = profile("tensorflow1", case)
    measured = {row.name: row.bytes for row in published.rows(found)}
    version = engines.find("tensorflow1").version
    assert measured == requested(found.workload.network, handle=HANDLES[version])


@pytest.mark.parametrize("case", ["study", "variant"])
def test_the_study_s_step_answers_what_the_predictions_say(case: str) -> None:
    found = told("tensorflow1", case)
    assert found["step"] == found["predictions"]
    assert len(found["step"]) == 128


def test_the_report_of_a_measured_step_has_the_published_rows_of_bytes() -> None:
    report = published.report(profile("tensorflow1", "study"), precision=0.86)
    cells = {line.split()[0]: line.split()[1] for line in report.splitlines() if line.count("%") == 8}
    assert (cells["FIFOQueueV2"], cells["Conv2D"], cells["MatMul"]) == ("30.32MB", "23.59MB", "300.03KB")
    assert report.endswith("precision @ 1 = 0.860")


def test_theano_knows_what_its_operations_give() -> None:
    ops = profile("theano", "infer").ops
    out = ops[ops["type"] == "Pool"].groupby("layer", observed=True)["out_bytes"].first()
    nodes = {node.name: node for node in find("quick/cnn").network.nodes}
    assert out.to_dict() == {name: 16 * 4 * int(np.prod(nodes[name].shape)) for name in ("max_pool_1", "max_pool_2")}
    assert ops["alloc_bytes"].notna().all()


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("tensorflow1", "feed: queue is of an evaluation; use it with the task infer"),
        ("keras2-cntk", "keras2-cntk cannot be profiled operation by operation"),
    ],
)
def test_what_cannot_be_profiled_says_so(engine: str, reason: str) -> None:
    assert told(engine, "refused")["unsupported"] == reason
