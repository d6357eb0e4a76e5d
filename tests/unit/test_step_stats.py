"""TensorFlow 1's traces: read back from bytes written by hand, and what is said of bytes that are none."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.unit import made_profiles as made
from tests.unit import made_traces as traces
from tests.unit.made_traces import CPU, metadata, node
from timetrial.profiling import readers_of
from timetrial.profiling.readers import step_stats
from timetrial.profiling.readers.graph_scopes import Place, Scopes
from timetrial.profiling.schema import Raw, TraceError
from timetrial.profiling.wire_format import Malformed, fields, messages, varint, whole
from timetrial.spec.operations import operations
from timetrial.spec.shapes import elements

BEGIN = 1_800_000_000_000_000_000


def step(at: int = BEGIN) -> bytes:
    nodes = [
        node("layer/conv1/kernel", "VariableV2", at + 100, 4_000, held=144),
        node("layer/conv1/Conv2D", "Conv2D", at + 5_000, 300_000, asked=2048, out=2048, inputs="x, layer/conv1/kernel/read"),
        node("gradients/layer/conv1/Conv2D_grad/Conv2DBackpropFilter", "Conv2DBackpropFilter", at + 310_000, 400_000, asked=50, room=7),
        node("optimiser/update", "ApplyAdam", at + 720_000, 100_000),
        node("_retval_x_0_0", "_Retval", at + 830_000, 400),
    ]  # fmt: skip
    return metadata((CPU, nodes), ("/host:CPU", [node("layer/conv1/Conv2D:Conv2D", "", at, 1)]))


def write(folder: Path) -> Path:
    return traces.write_rounds(
        folder,
        [[(at, at + 900_000, step(at)) for at in (BEGIN, BEGIN + 10**6)], [(BEGIN + 10**7, BEGIN + 10**7 + 10**6, step(BEGIN + 10**7))]],
    )  # fmt: skip


def read(folder: Path) -> Raw:
    return readers_of.read(folder, "step_stats", made.workload())


def test_operations_come_out_with_their_times_bytes_and_places(tmp_path: Path) -> None:
    raw = read(write(tmp_path))
    assert raw.steps.to_numpy().tolist() == [[0, 0, 900_000], [1, 10**6, 900_000], [2, 10**7, 10**6]]
    assert len(raw.ops) == 15  # what stands under /host:CPU are the same operations again
    first = raw.ops[raw.ops["step"] == 0].set_index("type")
    assert first["start_ns"].tolist() == [100, 5_000, 310_000, 720_000, 830_000]
    assert first["duration_ns"].tolist() == [4_000, 300_000, 400_000, 100_000, 400]
    assert first["alloc_bytes"].tolist() == [144, 2048, 57, 0, 0]
    assert first.loc["Conv2D", "out_bytes"] == 2048
    assert first["phase"].tolist() == ["forward", "forward", "backward", "optimiser", "runtime"]
    assert first["layer"].tolist()[:3] == ["conv1"] * 3
    assert first["layer"].isna().tolist()[3:] == [True, True]
    assert set(raw.ops["thread"]) == {"CPU:0"}


def test_operations_at_once_lie_on_rows_of_their_own(tmp_path: Path) -> None:
    nodes = [node("a", "A", BEGIN, 1000), node("b", "B", BEGIN + 500, 1000), node("c", "C", BEGIN + 1000, 100)]
    raw = read(traces.write_rounds(tmp_path, [[(BEGIN, BEGIN + 2000, metadata((CPU, nodes)))]]))
    assert dict(zip(raw.ops["type"], raw.ops["thread"], strict=True)) == {"A": "CPU:0", "B": "CPU:0 #2", "C": "CPU:0"}


def test_an_accelerator_has_a_row_for_its_streams(tmp_path: Path) -> None:
    stream = CPU.replace("CPU:0", "GPU:0/stream:all")
    one = CPU.replace("CPU:0", "GPU:0/stream:13")
    kernel = [node("layer/conv1/Conv2D:Conv2D", "", BEGIN, 1000)]
    raw = read(traces.write_rounds(tmp_path, [[(BEGIN, BEGIN + 2000, metadata((stream, kernel), (one, kernel)))]]))
    assert raw.ops[["thread", "type", "layer"]].to_numpy().tolist() == [["GPU:0 STREAM", "Conv2D", "conv1"]]


def test_without_nanoseconds_an_operation_lasts_a_microsecond_at_least(tmp_path: Path) -> None:
    bare = (
        traces.field(1, "layer/conv1/x") + traces.field(2, BEGIN // 1000) + traces.field(8, "layer/conv1/x = Relu(y)")
    )
    raw = read(traces.write_rounds(tmp_path, [[(BEGIN, BEGIN + 5000, metadata((CPU, [bare])))]]))
    assert (raw.ops["start_ns"].item(), raw.ops["duration_ns"].item()) == (0, 1000)


def test_a_fused_operation_is_split_over_the_layers_whose_work_it_did(tmp_path: Path) -> None:
    fused = node(
        "layer/conv1.relu/Relu", "_FusedConv2D", BEGIN, 1000, inputs="x, layer/conv1/kernel/read, layer/conv1/bias/read"
    )
    raw = read(traces.write_rounds(tmp_path, [[(BEGIN, BEGIN + 2000, metadata((CPU, [fused])))]]))
    assert raw.parts is not None
    shares = dict(zip(raw.parts["layer"], raw.parts["share"], strict=True))
    out = elements(next(n for n in made.NETWORK.nodes if n.name == "conv1").shape)
    work = operations(made.NETWORK).layers[0].forward
    assert shares == {
        "conv1": pytest.approx((out + work) / (2 * out + work)),
        "conv1.relu": pytest.approx(out / (2 * out + work)),
    }
    assert raw.ops["attribution"].tolist() == ["fused_split"]


@pytest.mark.parametrize(
    ("name", "kind", "place"),
    [
        ("gradients/layer/conv2/BiasAdd_grad/BiasAddGrad", "BiasAddGrad", Place("backward", "conv2")),
        ("ConstantFolding/gradients_1/layer/conv2/Conv2D_grad/ShapeN-matshapes-1", "Const", Place("backward", "conv2")),
        ("training/SGD/gradients/n4_dense/MatMul_grad/MatMul", "MatMul", Place("backward", "dense")),
        ("n2_conv1_relu/Relu", "Relu", Place("forward", "conv1.relu")),
        ("layer/conv1.relu/Relu_1", "Relu", Place("forward", "conv1.relu")),
        ("gradients/AddN", "AddN", Place("backward")),
        ("loss/Mean", "Mean", Place("loss")),
        ("gradients/loss/Mean_grad/Reshape", "Reshape", Place("backward")),
        ("training/SGD/add", "Add", Place("optimiser")),
        ("input/fifo_queue", "FIFOQueueV2", Place("input")),
        ("head/Softmax", "Softmax", Place("forward")),
        ("edge_7_layer/conv1/Conv2D", "_Recv", Place("transfer")),
        ("_SOURCE", "NoOp", Place("runtime")),
        ("layer/other/Conv2D", "Conv2D", Place("unknown")),
    ],
)
def test_names_say_where_an_operation_belongs(name: str, kind: str, place: Place) -> None:
    assert Scopes(made.NETWORK).place(name, kind) == place


# --- bad input --------------------------------------------------------------------------------------------------------


def damaged(folder: Path, kind: str) -> None:
    trace, steps = folder / "round1.pb.gz", folder / "round1.json.gz"
    whole_trace = step(BEGIN + 10**7)
    framed = traces.varint(len(whole_trace)) + whole_trace
    match kind:
        case "cut":
            trace.write_bytes(trace.read_bytes()[:-20])
        case "cut within":
            traces.pack(trace, framed[: len(framed) // 2])
        case "empty":
            trace.write_bytes(b"")
        case "random":
            traces.pack(trace, random.Random(1).randbytes(400))
        case "not packed":
            trace.write_bytes(b"\x08\x96\x01")
        case "steps":
            traces.pack_json(steps, [])
        case "no steps":
            steps.unlink()
        case "other steps":
            traces.pack_json(steps, {"step": 1})
        case "no json":
            traces.pack(steps, b"{")


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("cut", "round1.pb.gz", "cut short"),
        ("cut within", "round1.pb.gz", "ends within a message"),
        ("empty", "round1.pb.gz", "0 steps where 1"),
        ("random", "round1.pb.gz", "damaged"),
        ("not packed", "round1.pb.gz", "not packed"),
        ("steps", "round1.pb.gz", "1 steps where 0"),
        ("no steps", "round1.json.gz", "not there"),
        ("other steps", "round1.json.gz", "no list of steps"),
        ("no json", "round1.json.gz", "no JSON"),
    ],
)
def test_a_damaged_trace_names_its_file_and_the_remedy(tmp_path: Path, kind: str, name: str, reason: str) -> None:
    damaged(write(tmp_path), kind)
    with pytest.raises(TraceError, match=f"{name}.*{reason}.*profile again with --fresh"):
        read(tmp_path)


@pytest.mark.parametrize("content", [b"", metadata(), metadata((CPU, []))])
def test_a_trace_without_operations_says_so(tmp_path: Path, content: bytes) -> None:
    """As of a TensorFlow that keeps none there: TensorFlow 2 leaves its run metadata empty."""
    traces.write_rounds(tmp_path, [[(BEGIN, BEGIN + 10, content)]])
    with pytest.raises(TraceError, match=r"no operations of TensorFlow 1; profile again"):
        read(tmp_path)


@pytest.mark.parametrize(
    "wrong", [node("a", "A", BEGIN, -5), node("a", "A", 7, 5), node("a", "A", BEGIN, 5, asked=-1), node("a", "A", BEGIN, 5, out=2**62)]
)  # fmt: skip
def test_times_and_sizes_that_cannot_be_are_refused(tmp_path: Path, wrong: bytes) -> None:
    """As of a clock that was set back, or of bytes that changed."""
    traces.write_rounds(tmp_path, [[(BEGIN, BEGIN + 10, metadata((CPU, [wrong])))]])
    with pytest.raises(TraceError, match=r"round0\.pb\.gz: damaged \(it has times or sizes that cannot be\)"):
        read(tmp_path)


def test_a_folder_without_a_trace_says_so(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no file of a trace \(\*\.pb\.gz\) is in it"):
        read(tmp_path)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_bytes_are_only_a_trace_error_comes_out(tmp_path: Path, seed: int) -> None:
    """A few bytes of a good trace changed: it is read, or refused, and nothing else."""
    chance, content = random.Random(seed), bytearray(step())
    for _ in range(3):
        content[chance.randrange(len(content))] = chance.randrange(256)
    traces.write_rounds(tmp_path, [[(BEGIN, BEGIN + 900_000, bytes(content))]])
    try:
        found: Any = step_stats.read(tmp_path, made.workload())
    except TraceError as error:
        found = str(error)
        assert "profile again with --fresh" in found
    assert found is not None


# --- the wire format --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_numbers_come_back(number: int) -> None:
    read, end = varint(memoryview(traces.varint(number)), 0)
    assert (whole(read), end) == (number, len(traces.varint(number)))


def test_fields_of_all_kinds_come_back() -> None:
    content = traces.field(1, 150) + traces.field(2, "word") + traces.varint(3 * 8 + 5) + b"\x01\0\0\0"
    content += traces.varint(4 * 8 + 1) + b"\x02" + bytes(7)
    assert [(n, v if isinstance(v, int) else bytes(v)) for n, v in fields(memoryview(content))] == [
        (1, 150), (2, b"word"), (3, 1), (4, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("content", [b"\x80", b"\xff" * 11, b"\x0a\x05ab", b"\x0b", b"\x02\x00", b"\x0d\x01"])
def test_what_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises(Malformed):
        list(fields(memoryview(content)))


def test_messages_that_are_cut_are_refused() -> None:
    with pytest.raises(Malformed, match="within a message"):
        list(messages(memoryview(b"\x02ab\x05abc")))
