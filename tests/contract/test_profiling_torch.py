"""PyTorch and Keras on it under the profiler: whose time it was, for networks that use what can go wrong."""

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

import pytest

from tests import engines
from tests.contract.cases import Case
from tests.contract.prepare import clean_environment, write
from tests.faults import bench
from tests.unit import made_records
from timetrial.cli.loading import trials_of
from timetrial.profiling.profile import Profile, assemble, load
from timetrial.profiling.readers import kineto
from timetrial.profiling.workload import Workload
from timetrial.records.profiled import Profiled
from timetrial.runner.campaign import Campaign
from timetrial.spec.operations import operations
from timetrial.spec.study import parse_study

pytestmark = pytest.mark.engines

PROBE = Path(__file__).with_name("probe_profiling.py")
ROOT = Path(tempfile.mkdtemp(prefix="timetrial-profiling-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)

ENGINES, TASKS = ("torch", "keras-torch"), ("train", "infer")
HEAD: list[Any] = [{"dense": {"units": 10, "activation": "softmax"}}]
CONV = {"conv2d": {"filters": 16, "kernel": 3, "padding": "same"}}
RESIDUAL = {"residual": {"body": [CONV, "batch_norm", "relu", CONV, "batch_norm"], "activation": "relu"}}
BIG = Case("big", {"shape": [28, 28, 1]}, [
    {"conv2d": {"filters": 32, "kernel": 3, "activation": "relu"}},
    {"conv2d": {"filters": 64, "kernel": 3, "activation": "relu"}}, "max_pool", "flatten", *HEAD,
], {"batch": 128, "optimiser": {"kind": "adam"}})  # fmt: skip
SMALL = [
    Case("residual", {"shape": [12, 12, 16]}, [RESIDUAL, {"max_pool": {"window": 3, "padding": "same"}}, "lrn", "flatten", *HEAD]),
    Case("lstm", {"shape": [6, 5]}, [{"lstm": {"units": 8}}, *HEAD]),
    Case("transformer", {"shape": [16], "tokens": 50}, [
        {"embedding": {"vocabulary": 50, "units": 32}}, "positions",
        {"residual": {"body": ["layer_norm", {"attention": {"heads": 4, "causal": True}}]}}, "flatten", *HEAD,
    ]),
    Case("regression", {"shape": [20]}, [
        {"dense": {"units": 30, "activation": "tanh", "name": 'my "first" ü\\/layer::%'}}, {"dense": {"units": 1}},
    ], {"loss": "mse"}),
    Case("slow-marks", {"shape": [20]}, [{"dense": {"units": 30, "activation": "relu"}}, *HEAD]),
]  # fmt: skip
HALF = Case(
    "bfloat16", {"shape": [12, 12, 16]}, [CONV, "relu", "max_pool", "flatten", *HEAD], {"precision": "bfloat16"}
)
CASES = {case.name: case for case in (BIG, *SMALL, HALF)}


@cache
def probed(engine: str) -> Path:
    located = engines.find(engine)
    folder = ROOT / engine
    for case in CASES.values():
        write(folder, case, "bfloat16" if case is HALF else "float32", "step")
    subprocess.run(
        [str(located.interpreter), str(PROBE), engine, str(folder)],
        check=True, env=clean_environment(located.variables), stdin=subprocess.DEVNULL, timeout=280,
    )  # fmt: skip
    return folder


def told(engine: str, case: str, task: str) -> dict[str, Any]:
    return json.loads((probed(engine) / case / f"{engine}-{task}" / "told.json").read_text())


@cache
def profiled(engine: str, case: str, task: str) -> Profile:
    folder = probed(engine) / case / f"{engine}-{task}"
    for path in folder.glob("*.json"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    made = CASES[case]
    workload = Workload(f"made/{case}", made.network, made.make_recipe(), task, engine)
    run = Profiled.model_validate({k: v for k, v in told(engine, case, task).items() if k not in ("left", "marked")})
    record = made_records.record(engine, 0, 1.0, role="profile", profile=run, laps=None, effort=None)
    return assemble(kineto.read(folder, workload), workload, record)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("engine", ENGINES)
def test_operations_of_milliseconds_cover_their_steps(engine: str, task: str) -> None:
    header = profiled(engine, "big", task).header
    assert header.coverage >= 0.9
    assert header.attributed >= 0.99
    assert header.overlapping == 0
    assert header.granularity_lost == 0
    assert header.facts["memory_peak"] > 128 * 24 * 24 * 64 * 4  # what the second convolution gives


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("engine", ENGINES)
def test_torchs_own_count_of_operations_is_ours(engine: str, task: str) -> None:
    found = profiled(engine, "big", task)
    ours = operations(BIG.network, 128)
    assert found.header.facts["flops"] == getattr(ours, task)
    assert found.ops["flops"].sum() / found.header.steps == pytest.approx(getattr(ours, task))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_layer_with_parameters_runs_forward_and_backward(engine: str, case: str) -> None:
    trained = {node.name for node in CASES[case].network.nodes if node.parameters}
    train, infer = (profiled(engine, case, task) for task in TASKS)
    for profile, phases in ((train, ("forward", "backward")), (infer, ("forward",))):
        assert profile.header.attributed >= 0.95
        assert profile.header.steps == 15
        table = profile.per_step("layer", "phase")
        for phase in phases:
            assert trained <= set(table.loc[(table["phase"] == phase) & (table["wall_ns"] > 0), "layer"])
    assert {"forward", "loss", "backward", "optimiser"} <= set(train.ops["phase"])
    assert not {"loss", "backward", "optimiser"} & set(infer.ops["phase"])


@pytest.mark.parametrize("engine", ENGINES)
def test_what_backward_does_for_a_layer_is_tied_to_it_by_number(engine: str) -> None:
    ops = profiled(engine, "big", "train").ops
    backward = ops[ops["type"] == "aten::convolution_backward"]
    assert set(backward["layer"]) == {"conv2d_1", "conv2d_2"}
    assert set(backward["attribution"]) == {"sequence"}
    assert set(ops.loc[ops["type"] == "aten::mkldnn_convolution", "attribution"]) == {"exact"}


@pytest.mark.parametrize("engine", ENGINES)
def test_half_precision_casts_belong_to_the_layers_that_want_them(engine: str) -> None:
    found = profiled(engine, "bfloat16", "infer")
    conv = found.ops[found.ops["type"] == "aten::_to_copy"]
    assert "conv2d_1" in set(conv["layer"])


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_marked_between_two_traces(engine: str) -> None:
    for case in CASES:
        for task in TASKS:
            found = told(engine, case, task)
            assert found["marked"] >= 4
            assert found["left"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_compiled_code_is_refused_with_a_remedy(engine: str) -> None:
    assert "profile with compile: default" in json.loads((probed(engine) / f"refused-{engine}.json").read_text())


def test_a_study_leaves_a_trace_that_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines.find("torch")
    bench.install(monkeypatch.setattr)
    study = parse_study(
        {
            **bench.STUDY,
            "study": "traced",
            "engines": ["torch"],
            "measure": ["time", "profile"],
            "limits": {"timeout": 60},
        },
        "test",
    )
    records = {record.role: record for record in Campaign(study, trials_of(study), tmp_path).go()}
    assert records["profile"].outcome.ok, records["profile"].outcome
    found = load(tmp_path / "traced", records["profile"])
    assert found.header.attributed >= 0.95
    assert found.header.overhead > 0
    assert {"conv2d_1", "dense_1"} <= set(found.ops["layer"].dropna())
