"""Theano's times: laid one after another, and placed by marks, names, parameters and neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit import made_profiles as made
from tests.unit import made_traces as traces
from timetrial.profiling import readers_of
from timetrial.profiling.profile import derive
from timetrial.profiling.schema import Raw, TraceError

BEGIN = 1_800_000_000_000_000_000


def node(op: str, inputs: list[int | str | None], **told: Any) -> dict[str, Any]:
    plain = {"op": op, "name": None, "inputs": inputs, "marks": [], "update": False, "out_bytes": 8, "alloc_bytes": 8}
    return {**plain, **told}


# A training step of conv1, relu, conv2, dense in the order in which it runs, as Theano's rewriting leaves it.
NODES: tuple[tuple[dict[str, Any], tuple[str, str | None, str]], ...] = (
    (node("Alloc", [None]), ("forward", "conv1", "inferred")),  # room that nothing but the convolution reads
    (node("InplaceDimShuffle{x,0,x,x}", ["conv1/bias"]), ("forward", "conv1", "inferred")),
    (node("CorrMM{valid, (1, 1)}", ["x", "conv1/kernel", 0], marks=["forward conv1"]), ("forward", "conv1", "exact")),
    (node("Elemwise{Add}[(0, 0)]", [2, 1]), ("forward", "conv1", "inferred")),
    (node("Elemwise{mul,no_inplace}", [3], marks=["forward conv1.relu"]), ("forward", "conv1.relu", "exact")),
    (node("CorrMM{valid, (1, 1)}", [4, "conv2/kernel"], marks=["forward conv2"]), ("forward", "conv2", "exact")),
    (node("Dot22", [5, "dense/kernel"], marks=["forward dense"]), ("forward", "dense", "exact")),
    (node("CrossentropySoftmaxArgmax1HotWithBias", [6, "dense/bias", "y"]), ("loss", None, "inferred")),
    (node("Sum{acc_dtype=float64}", [7], marks=["loss"]), ("loss", None, "exact")),
    (node("CrossentropySoftmax1HotWithBiasDx", ["y", 7]), ("backward", None, "inferred")),
    (node("Dot22", [9, 6], name="(dmean/ddense/kernel)"), ("backward", "dense", "exact")),
    (node("Dot22", [9, "dense/kernel"], marks=["backward"]), ("backward", "dense", "inferred")),
    (node("CorrMM_gradInputs{valid}", ["conv2/kernel", 11]), ("backward", "conv2", "inferred")),
    (node("Elemwise{Composite{(i0 * i1)}}", [12, 4]), ("backward", "conv1.relu", "inferred")),
    (node("Gemm{inplace}", ["conv1/kernel", 13], update=True), ("backward", "conv1", "inferred")),
    (node("Elemwise{Composite{(i0 - i1)}}", ["dense/kernel", 10], update=True), ("optimiser", None, "inferred")),
    (node("Elemwise{Sqr}", ["step"], marks=["optimiser"]), ("optimiser", None, "exact")),
)
LENGTHS = [(i + 1) * 1e-6 for i in range(len(NODES))]


def write(folder: Path) -> Path:
    traces.pack_json(folder / "nodes.json.gz", [told for told, _ in NODES])
    for number in range(2):
        begin = BEGIN + number * 10**6
        step = {"step": number, "start_ns": begin, "end_ns": begin + 200_000, "seconds": LENGTHS}
        traces.pack_json(folder / f"round{number}.json.gz", [step])
    return folder


def read(folder: Path) -> Raw:
    return readers_of.read(folder, "theano", made.workload(engine="theano"))


def test_operations_lie_one_after_another_in_their_step(tmp_path: Path) -> None:
    raw = read(write(tmp_path))
    first, second = (raw.ops[raw.ops["step"] == number] for number in (0, 1))
    assert first["duration_ns"].tolist() == [(i + 1) * 1000 for i in range(len(NODES))]
    assert first["start_ns"].tolist() == [sum(range(i + 1)) * 1000 for i in range(len(NODES))]
    assert (second["start_ns"].to_numpy() - first["start_ns"].to_numpy()).tolist() == [10**6] * len(NODES)
    assert raw.steps["duration_ns"].tolist() == [200_000] * 2
    assert any("not when they began" in remark for remark in raw.remarks)
    ops, _ = derive(raw, made.workload())
    assert ops["wall_ns"].sum() == pytest.approx(2e9 * sum(LENGTHS))


@pytest.mark.parametrize("at", range(len(NODES)), ids=lambda at: f"{at} {NODES[at][0]['op'].partition('{')[0]}")
def test_an_operation_is_placed_by_what_is_known_of_it(tmp_path: Path, at: int) -> None:
    found = read(write(tmp_path)).ops.iloc[at]
    layer = found["layer"] if isinstance(found["layer"], str) else None
    assert (found["phase"], layer, found["attribution"]) == NODES[at][1]


def test_types_are_short_and_sizes_kept(tmp_path: Path) -> None:
    ops = read(write(tmp_path)).ops.head(len(NODES))
    assert ops["type"].tolist()[2:5] == ["CorrMM", "Elemwise{Add}", "Elemwise{mul}"]
    assert ops["type"].tolist()[13] == "Elemwise{Composite}"
    assert ops["out_bytes"].tolist() == [8] * len(NODES)


def test_sizes_that_are_not_known_are_missing(tmp_path: Path) -> None:
    write(tmp_path)
    unknown = [{**told, "out_bytes": None, "alloc_bytes": None} for told, _ in NODES]
    traces.pack_json(tmp_path / "nodes.json.gz", unknown)
    assert read(tmp_path).ops["alloc_bytes"].isna().all()


STEP = {"step": 0, "start_ns": BEGIN, "end_ns": BEGIN + 10, "seconds": LENGTHS}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("nodes.json.gz", [], "no operations"),
        ("nodes.json.gz", [{"op": "Dot22"}], "no list of operations"),
        ("nodes.json.gz", {"op": "Dot22"}, "no list of operations"),
        ("nodes.json.gz", [node("Dot22", [3])], "operations that read what comes after them"),
        ("round1.json.gz", [{"step": 0}], "no list of steps"),
        ("round1.json.gz", [{**STEP, "seconds": ["fast"]}], "no list of steps"),
        ("round1.json.gz", [{**STEP, "seconds": [float("nan"), *LENGTHS[1:]]}], "times that cannot be"),
        ("round1.json.gz", [{**STEP, "seconds": [-1.0, *LENGTHS[1:]]}], "times that cannot be"),
        ("round1.json.gz", [{**STEP, "seconds": [1.0]}], f"not the times of {len(NODES)} operations in each step"),
    ],
)
def test_a_damaged_trace_names_its_file_and_the_remedy(tmp_path: Path, name: str, content: Any, reason: str) -> None:
    traces.pack_json(write(tmp_path) / name, content)
    with pytest.raises(TraceError, match=f"{name}.*{reason}.*profile again with --fresh"):
        read(tmp_path)


def test_a_trace_that_is_cut_short_or_gone_says_so(tmp_path: Path) -> None:
    path = write(tmp_path) / "round1.json.gz"
    path.write_bytes(path.read_bytes()[:-15])
    with pytest.raises(TraceError, match=r"round1\.json\.gz: damaged \(cut short.*--fresh"):
        read(tmp_path)
    (tmp_path / "nodes.json.gz").unlink()
    with pytest.raises(TraceError, match=r"nodes\.json\.gz: not there; profile again with --fresh"):
        read(tmp_path)


def test_a_trace_without_steps_says_so(tmp_path: Path) -> None:
    for number in range(2):
        traces.pack_json(write(tmp_path) / f"round{number}.json.gz", [])
    traces.pack_json(tmp_path / "round0.json.gz", [])
    with pytest.raises(TraceError, match="holds no steps; profile again with --fresh"):
        read(tmp_path)
