"""Traces of TensorFlow and JAX, written here byte by byte, and what the reader makes of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit import made_profiles
from tests.unit import made_xplane as made
from tests.unit.made_xplane import Event, Instruction, Ref
from timetrial.profiling import times
from timetrial.profiling.profile import derive
from timetrial.profiling.readers import protos, xplane
from timetrial.profiling.readers.scopes import NOWHERE, Place, Scopes
from timetrial.profiling.schema import RAW, Raw, TraceError
from timetrial.profiling.workload import Workload
from timetrial.spec.network import Network
from timetrial_worker.adapters import scopes as worker_scopes

STEP = 1000.0


def workload(engine: str, task: str = "train", **changes: object) -> Workload:
    return made_profiles.workload(engine=engine, task=task, **changes)


def tensorflow_step(at: float) -> list[Event]:
    """Operations of one step on the thread that computes, with the frames that only contain them."""
    alloc = {"requested_bytes": 4096, "allocation_bytes": 8192, "region_type": Ref("output")}
    scratch = {"requested_bytes": 512, "region_type": Ref("temp")}
    return [
        Event("ExecutorState::Process", at, 900),
        Event("layer.conv1.relu./Relu:_MklNativeFusedConv2D", at + 10, 200),
        Event("MemoryAllocation", at + 11, 0, alloc),
        Event("MemoryAllocation", at + 12, 0, scratch),
        Event("layer.conv2./Conv2D:Conv2D", at + 210, 300),
        Event("phase.loss./Mean:Mean", at + 510, 10),
        Event("gradient_tape/phase.loss./mul:Mul", at + 520, 10),
        Event("gradient_tape/layer.conv2./Conv2DBackpropFilter:Conv2DBackpropFilter", at + 530, 350),
        Event("MemoryDeallocation", at + 890, 0, alloc),
        Event("phase.optimiser./ResourceApplyAdam:ResourceApplyAdam", at + 900, 60),
        Event("__inference__train_1:__inference__train_1", at + 5, 960),
        Event("IteratorGetNext:IteratorGetNext", at + 965, 5),
    ]


def tensorflow_trace(count: int = 2, first: int = 0) -> bytes:
    computing = [event for i in range(count) for event in tensorflow_step(i * STEP)]
    python = made.steps(count, STEP, first) + [
        Event("EagerLocalExecute: __inference__train_1", i * STEP + 2, 980) for i in range(count)
    ]
    return made.host({"python": python, "tf_Compute/17": computing})


def read(folder: Path, engine: str, task: str = "train", **changes: object) -> Raw:
    return xplane.read(folder, workload(engine, task, **changes))


def table(raw: Raw, *columns: str) -> pd.DataFrame:
    first = raw.ops[raw.ops["step"] == raw.ops["step"].iloc[0]]
    return first.set_index(first["name"].astype(str))[list(columns)].astype(object)


# --- TensorFlow -------------------------------------------------------------------------------------------------------


def test_operations_of_tensorflow_have_layer_phase_and_bytes(tmp_path: Path) -> None:
    raw = read(made.write(tmp_path, tensorflow_trace()), "tensorflow")
    assert {name: str(kind) for name, kind in raw.ops.dtypes.items()} == RAW
    found = table(raw, "type", "phase", "layer", "attribution", "alloc_bytes", "out_bytes")
    assert len(raw.ops) == 14  # frames, calls and marks are none
    assert tuple(found.loc["layer.conv2./Conv2D"])[:4] == ("Conv2D", "forward", "conv2", "scope")
    backward = found.loc["gradient_tape/layer.conv2./Conv2DBackpropFilter"]
    assert tuple(backward)[:4] == ("Conv2DBackpropFilter", "backward", "conv2", "scope")
    assert found.loc["phase.loss./Mean", "phase"] == "loss"
    assert found.loc["gradient_tape/phase.loss./mul", "phase"] == "backward"
    assert found.loc["phase.optimiser./ResourceApplyAdam", "phase"] == "optimiser"
    assert found.loc["IteratorGetNext", "phase"] == "input"
    assert tuple(found.loc["layer.conv1.relu./Relu", ["alloc_bytes", "out_bytes"]]) == (4608, 4096)
    assert found.loc["layer.conv2./Conv2D", "alloc_bytes"] == 0


def test_what_was_fused_under_the_last_name_is_split_by_its_work(tmp_path: Path) -> None:
    raw = read(made.write(tmp_path, tensorflow_trace()), "tensorflow")
    assert raw.parts is not None
    assert raw.parts.groupby("row")["share"].sum().to_numpy() == pytest.approx(1.0)
    assert set(raw.parts["layer"]) == {"conv1", "conv1.relu"}
    assert raw.parts.set_index("layer")["share"]["conv1"].min() > 0.8
    split, lost = derive(raw, workload("tensorflow"))
    assert lost == pytest.approx(200 / 935)
    assert split["wall_ns"].sum() == pytest.approx(2 * 935_000)


def test_times_and_rounds_follow_each_other(tmp_path: Path) -> None:
    rounds = [tensorflow_trace(2, first=2 * i) for i in range(11)]  # "round10" comes after "round9"
    raw = read(made.write(tmp_path, *rounds), "tensorflow")
    assert raw.steps["step"].tolist() == list(range(22))
    assert raw.steps["start_ns"].is_monotonic_increasing
    ends = raw.steps["start_ns"] + raw.steps["duration_ns"]
    assert (raw.steps["start_ns"].to_numpy()[1:] >= ends.to_numpy()[:-1]).all()
    within = raw.ops.merge(raw.steps, on="step", suffixes=("", "_step"))
    assert (within["start_ns"] >= within["start_ns_step"]).all()
    assert (within["start_ns"] < within["start_ns_step"] + within["duration_ns_step"]).all()
    assert raw.ops["duration_ns"].max() == 350_000


def test_threads_that_fill_the_pipeline_ahead_are_outside_the_wait(tmp_path: Path) -> None:
    gathering = [Event("Iterator::Root::Prefetch::MapAndBatch", 0, 900), Event("GatherV2:GatherV2", 20, 100)]
    trace = made.host(
        {
            "python": [*made.steps(1), Event("EagerLocalExecute: IteratorGetNext", 3, 2)],
            "tf_Compute/1": tensorflow_step(0),
            "tf_data_private/2": gathering,
        }
    )
    raw = read(made.write(tmp_path, trace), "tensorflow")
    assert raw.ops.loc[raw.ops["phase"] == "input", "duration_ns"].tolist() == [2_000, 5_000]
    assert "tf_data_private" not in {str(thread).split()[0] for thread in raw.ops["thread"]}


def test_scopes_of_keras_are_understood() -> None:
    found = Scopes(workload("keras-tensorflow"))
    assert found.place("functional_1/n1_conv1_1/convolution") == Place("conv1", "forward")
    assert found.place("functional_1/n2_conv1_relu_1/Relu") == Place("conv1.relu", "forward")
    assert found.place("gradient_tape/functional_1/n3_conv2_1/Conv2DBackpropInput") == Place("conv2", "backward")
    assert found.place("outer_epsilon_adam/Mul_3") == Place(None, "optimiser")
    assert found.place("steerable_sgd/AssignSubVariableOp") == Place(None, "optimiser")
    assert found.place("compile_loss/sparse_categorical_crossentropy/Sum") == Place(None, "loss")
    assert found.place("functional_2_1/head_1/Softmax") == Place("dense.softmax", "forward")
    assert found.place("functional_1/n9_conv2_1/convolution") == NOWHERE  # there is no ninth layer
    assert found.place("AssignVariableOp") == NOWHERE


def test_scopes_of_differentiation_are_understood() -> None:
    found = Scopes(workload("jax"))
    assert found.place("jit(f)/jvp(layer.conv1.)/conv_general_dilated") == Place("conv1", "forward")
    assert found.place("jit(f)/transpose(jvp(layer.conv1.))/mul") == Place("conv1", "backward")
    assert found.place("jit(f)/layer.conv1./transpose") == Place("conv1", "forward")
    assert found.place("jit(f)/phase.head./exp") == Place("dense.softmax", "forward")
    assert found.place("jit(f)/phase.optimiser./transpose(jvp(layer.conv1.))") == Place(None, "optimiser")
    assert found.place("jit(f)/layer.unknown./add") == NOWHERE


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(NAMES, st.sampled_from(["", "_1", "_27"]))
def test_every_name_of_a_layer_comes_back(name: str, unique: str) -> None:
    layers = [{"dense": {"units": 2, "name": name}}]
    network = Network.model_validate({"input": {"shape": [3]}, "layers": layers})
    scope = worker_scopes.layer(name) + unique
    found = Scopes(workload("jax", network=network))
    assert found.place(f"jit(f)/transpose(jvp({scope}))/mul") == Place(name, "backward")
    assert found.place(f"gradient_tape/{scope}/MatMul") == Place(name, "backward")


# --- XLA --------------------------------------------------------------------------------------------------------------

CONV = "jit(f)/jvp(layer.conv1.)/conv_general_dilated"
GRADIENT = "jit(f)/transpose(jvp(layer.conv2.))/conv_general_dilated"
PROGRAM = made.hlo(
    "jit_f",
    {
        1: {  # a convolution, its bias and its activation
            10: Instruction("p", "parameter", number=0),
            11: Instruction("c", "convolution", (10,), CONV, shape=(32, 6, 6, 4)),
            12: Instruction("m", "maximum", (11,), "jit(f)/jvp(layer.conv1.relu.)/max", shape=(32, 6, 6, 4)),
        },
        2: {  # the optimiser's, which first copies what it reads
            20: Instruction("p", "parameter", number=0),
            21: Instruction("t", "transpose", (20,), GRADIENT),
            22: Instruction("s", "subtract", (21,), "jit(f)/phase.optimiser./sub"),
        },
        3: {30: Instruction("c", "convolution", (), shape=(3, 3, 4, 8))},
        9: {
            1: Instruction("x", "parameter"),
            2: Instruction("first_fusion", "fusion", (1,), calls=(1,), op_name=CONV, shape=(32, 6, 6, 4)),
            3: Instruction("copy.1", "copy", (2,)),
            4: Instruction("lost_fusion", "fusion", (3,), calls=(3,), shape=(3, 3, 4, 8)),
            5: Instruction("last_fusion", "fusion", (4,), "jit(f)/phase.optimiser./sub", calls=(2,)),
            6: Instruction("while.1", "while", (5,), "jit(f)/while"),
        },
    },
    entry=9,
)


def hlo_event(name: str, start: float, length: float, token: int) -> Event:
    stats = {"hlo_op": Ref(name), "hlo_module": Ref("jit_f"), "program_id": 7, "_p": token}
    return Event(name, start, length, stats)


def xla_trace(first: int = 0, program: bytes = PROGRAM) -> bytes:
    return made.programs({"jit_f(7)": program}) + made.host(
        {
            "python": [
                *made.steps(1, STEP, first),
                Event("PjitFunction(f)", 5, 50),
                Event("ThreadpoolListener::StopRegion", 900),
            ],
            "tf_XLAEigen/2": [Event("end: first_fusion", 500, 1, {"_c": 1 << 33})],
            "tf_XLAPjRtCpuClient/3": [
                Event("ThunkExecutor::Execute", 50, 850),
                hlo_event("first_fusion", 100, 10, 1 << 33),  # returns at once, runs until 500
                hlo_event("copy.1", 300, 100, (1 << 33) + 1),
                Event("end: copy.1", 400.5, 1, {"_c": (1 << 33) + 1}),
                hlo_event("lost_fusion", 500, 300, (1 << 33) + 2),
                hlo_event("last_fusion", 800, 100, (1 << 33) + 3),
                hlo_event("while.1", 60, 800, (1 << 33) + 4),
                Event("ThunkExecutor::Execute (wait for completion)", 900, 1),
                Event("ThreadpoolListener::StopRegion", 950),
            ],
        }
    )


def test_an_operation_that_goes_on_beside_its_thread_has_all_its_time(tmp_path: Path) -> None:
    raw = read(made.write(tmp_path, xla_trace()), "jax")
    found = table(raw, "start_ns", "duration_ns", "thread")
    assert found.loc["first_fusion", "duration_ns"] == 400_000
    assert str(found.loc["first_fusion", "thread"]).startswith("asynchronous")
    assert found.loc["copy.1", "duration_ns"] == 100_000
    assert "while.1" not in found.index
    ops, _ = derive(raw, workload("jax"))
    assert ops["wall_ns"].sum() == pytest.approx(400_000 + 300_000 + 100_000 + 49_000)
    beside = ops[ops["name"] == "copy.1"]["wall_ns"].sum()
    assert beside == pytest.approx(50_000)  # two ran, each has half


def test_after_a_program_its_task_tidies_up(tmp_path: Path) -> None:
    raw = read(made.write(tmp_path, xla_trace()), "jax")
    found = raw.ops[raw.ops["name"] == "after the program"]
    assert found["duration_ns"].tolist() == [49_000]
    assert found["phase"].tolist() == ["runtime"]
    assert found["attribution"].tolist() == ["exact"]


def test_instructions_are_placed_by_name_and_by_who_reads_them(tmp_path: Path) -> None:
    raw = read(made.write(tmp_path, xla_trace()), "jax")
    found = table(raw, "type", "phase", "layer", "attribution", "out_bytes")
    assert tuple(found.loc["first_fusion"])[:4] == ("fusion(convolution)", "forward", "conv1", "fused_split")
    assert tuple(found.loc["lost_fusion"])[:4] == ("fusion(convolution)", "backward", "conv2", "inferred")
    assert tuple(found.loc["copy.1"])[1:4] == ("backward", "conv2", "inferred")
    assert found.loc["last_fusion", "phase"] == "optimiser"
    assert found.loc["first_fusion", "out_bytes"] == 4 * 32 * 6 * 6 * 4
    assert raw.parts is not None
    shares = raw.parts.set_index("layer")["share"]
    # 9 taps a multiply-add each and the element itself, against one operation an element
    assert shares["conv1"] == pytest.approx(10 / 11)
    assert shares.sum() == pytest.approx(1.0)
    assert any("inferred" in remark for remark in raw.remarks)


def test_without_its_program_an_operation_has_no_layer(tmp_path: Path) -> None:
    trace = xla_trace().replace(b"jit_f(7)", b"jit_g(7)")
    found = table(read(made.write(tmp_path, trace), "jax"), "phase", "layer", "attribution")
    assert (
        tuple(found.loc["lost_fusion"]) == ("unknown", None, "none") or found.loc["lost_fusion", "phase"] == "unknown"
    )
    assert found.loc["lost_fusion", "attribution"] == "none"


def test_all_that_a_prediction_computes_is_forward(tmp_path: Path) -> None:
    nameless = made.hlo("jit_f", {9: {1: Instruction("lost_fusion", "add")}}, entry=9)
    raw = read(made.write(tmp_path, xla_trace(program=nameless)), "jax", "infer")
    assert table(raw, "phase").loc["lost_fusion", "phase"] == "forward"


def test_what_tensorflow_hands_to_xla_is_told_by_xla_alone(tmp_path: Path) -> None:
    trace = made.programs({"jit_f(7)": PROGRAM}) + made.host(
        {
            "python": [
                *made.steps(1),
                Event("__inference__train_1:__inference__train_1", 50, 800),
                hlo_event("first_fusion", 100, 400, 1),
                Event("AssignVariableOp:AssignVariableOp", 900, 20),
            ]
        }
    )
    found = read(made.write(tmp_path, trace), "tensorflow").ops
    assert set(found["name"]) == {"first_fusion", "AssignVariableOp"}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=30))
def test_asynchronous_operations_never_share_a_track_at_a_time(spans: list[tuple[int, int]]) -> None:
    from timetrial.profiling.readers.xla_operations import _tracks

    start = np.array([begin for begin, _ in spans], dtype=np.int64)
    length = np.array([size for _, size in spans], dtype=np.int64)
    tracks = _tracks(start, start + length)
    assert times.overlaps(tracks, start, length) == 0
    busiest = max(int(((start <= at) & (at < start + length)).sum()) for at in start)
    assert tracks.max() + 1 == busiest


# --- the wire ---------------------------------------------------------------------------------------------------------

FIELDS = st.lists(
    st.tuples(
        st.integers(1, 40), st.one_of(st.integers(0, (1 << 64) - 1), st.binary(max_size=9), st.sampled_from([1.5, 2.5]))
    ),
    max_size=6,
)


def encoded(fields: list[tuple[int, int | bytes | float]]) -> bytes:
    return b"".join(
        made.varint(number << 3 | 1) + np.float64(value).tobytes()
        if isinstance(value, float)
        else made.part(number, value)
        for number, value in fields
    )


@given(st.lists(FIELDS, max_size=8))
def test_many_messages_at_once_read_as_one_after_the_other(
    messages: list[list[tuple[int, int | bytes | float]]],
) -> None:
    parts = [encoded(fields) for fields in messages]
    data, ends = b"".join(parts), np.cumsum([len(one) for one in parts], dtype=np.int64)
    starts = ends - np.array([len(one) for one in parts], dtype=np.int64)
    found = protos.scan(np.frombuffer(data, dtype=np.uint8), starts, ends)
    for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        one = [
            (key, value.start if isinstance(value, protos.Span) else protos.signed(value))
            for key, value in protos.walk(data, protos.Span(start, end))
        ]
        mine = found.message == number
        assert list(zip(found.number[mine].tolist(), found.value[mine].tolist(), strict=True)) == one


@given(st.binary(max_size=60))
def test_no_bytes_break_the_wire_reader_otherwise_than_by_saying_so(data: bytes) -> None:
    outcomes = []
    for attempt in (
        lambda: list(protos.walk(data, protos.Span(0, len(data)))),
        lambda: protos.scan(np.frombuffer(data, dtype=np.uint8), np.array([0]), np.array([len(data)])),
    ):
        try:
            attempt()
            outcomes.append("read")
        except protos.Damaged:
            outcomes.append("damaged")
    assert outcomes[0] == outcomes[1]


# --- bad input --------------------------------------------------------------------------------------------------------


def with_events(**changes: object) -> bytes:
    """A trace of one step whose first operation is moved or stretched."""
    values = {"start": 100.0, "length": 50.0, **changes}
    moved = Event("layer.conv1./Conv2D:Conv2D", values["start"], values["length"])  # type: ignore[arg-type]
    return made.host({"python": made.steps(1), "tf_Compute/1": [moved, *tensorflow_step(0)]})


def overlapping_steps() -> bytes:
    marked = [Event("step", at, 900, {"step_num": i}) for i, at in enumerate((0, 500))]
    return made.host({"python": marked, "tf_Compute/1": tensorflow_step(0)})


def overlapping_operations() -> bytes:
    crossing = [Event(f"layer.conv1./Conv2D_{i}:Conv2D", 10 * i, 15) for i in range(50)]
    return made.host({"python": made.steps(1), "tf_Compute/1": crossing})


BAD = [
    ("empty", b"", "empty"),
    ("random bytes", bytes(range(200, 256)) * 40, "damaged"),
    ("a text", b"no trace at all, but a letter to somebody", "damaged|no steps"),
    ("cut in the middle", tensorflow_trace()[: len(tensorflow_trace()) // 2], "damaged"),
    ("without steps", made.host({"tf_Compute/1": tensorflow_step(0)}), "no steps"),
    ("without operations", made.host({"python": made.steps(3)}), "no operations"),
    ("operations outside", with_events(start=100.0).replace(b"step_num", b"step_nix"), "no steps"),
    ("negative begin", with_events(start=-5.0), "impossible"),
    ("negative length", with_events(length=-5.0), "impossible"),
    ("a length of days", with_events(length=1e12), "impossible"),
    ("a thread in the future", made.host({"python": made.steps(1), "t": tensorflow_step(0)}, since=(1 << 63) - 1), "impossible"),
    ("overlapping steps", overlapping_steps(), "overlap"),
    ("overlapping operations", overlapping_operations(), "outlast"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "word"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_trace_that_cannot_be_used_says_which_and_what_to_do(tmp_path: Path, content: bytes, word: str) -> None:
    made.write(tmp_path, tensorflow_trace(), content)
    with pytest.raises(TraceError, match=f"round1.*({word}).*--fresh"):
        read(tmp_path, "tensorflow")


def test_a_trace_of_another_framework_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"round0.*of TensorFlow.*jax"):
        read(made.write(tmp_path, tensorflow_trace()), "keras-jax")


@pytest.mark.parametrize("damage", ["cut", "no gzip", "a byte changed"])
def test_a_damaged_file_says_so(tmp_path: Path, damage: str) -> None:
    path = made.write(tmp_path, tensorflow_trace()) / "round0.xplane.pb.gz"
    packed = path.read_bytes()
    changed = {
        "cut": packed[:-20],
        "no gzip": tensorflow_trace(),
        "a byte changed": gzip.compress(tensorflow_trace())[:-8] + b"\0" * 8,
    }
    path.write_bytes(changed[damage])
    with pytest.raises(TraceError, match=r"round0.*cut short or no packed file.*--fresh"):
        read(tmp_path, "tensorflow")


def test_no_trace_or_the_same_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no trace of a round"):
        read(tmp_path, "tensorflow")
    with pytest.raises(TraceError, match="the same steps"):
        read(made.write(tmp_path, tensorflow_trace(), tensorflow_trace()), "tensorflow")


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_no_damage_gets_through_as_anything_else(
    tmp_path_factory: pytest.TempPathFactory, where: int, patch: bytes
) -> None:
    trace = bytearray(xla_trace())
    place = where % len(trace)
    trace[place : place + len(patch)] = patch
    folder = made.write(tmp_path_factory.mktemp("damaged"), bytes(trace))
    try:
        raw = read(folder, "jax")
    except TraceError as error:
        told = str(error)
    else:
        told = "--fresh"
        assert (raw.ops["duration_ns"] >= 0).all()
    assert "--fresh" in told
