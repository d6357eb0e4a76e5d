"""Reading PyTorch's traces: who ran where, in which layer and phase, and what cannot be read."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import made_profiles
from tests.unit.made_kineto import BASE, MAIN, Trace, pack, training
from timetrial.profiling.profile import derive
from timetrial.profiling.readers import chrome, kineto
from timetrial.profiling.schema import Frame, Raw, TraceError

WORKLOAD = made_profiles.workload()


def read(folder: Path, *traces: Trace) -> Raw:
    for number, trace in enumerate(traces):
        trace.write(folder, number)
    return kineto.read(folder, WORKLOAD)


def only(ops: Frame, kind: str, step: int = 0) -> Frame:
    return ops[(ops["type"] == kind) & (ops["step"] == step)]


def test_every_operation_comes_to_its_phase_and_layer(tmp_path: Path) -> None:
    ops = read(tmp_path, training()).ops
    found = {
        (str(op.type), op.phase, None if op.layer != op.layer else op.layer, op.attribution)
        for op in ops[ops["step"] == 1].itertuples()
    }
    nodes = "autograd::engine::evaluate_function: "
    assert found == {
        *((kind, "forward", layer, "exact") for kind in ("aten::conv2d", "aten::convolution", "aten::empty") for layer in ("conv1", "conv2")),
        ("aten::addmm", "forward", "dense", "exact"),
        ("aten::to", "forward", "dense", "exact"),
        ("aten::nll_loss", "loss", None, "exact"),
        ("aten::ones_like", "backward", None, "exact"),
        (f"{nodes}Nll", "backward", None, "exact"),
        ("aten::Nll_backward", "backward", None, "exact"),
        (f"{nodes}Addmm", "backward", "dense", "sequence"),
        ("aten::Addmm_backward", "backward", "dense", "sequence"),
        *((kind, "backward", layer, "sequence") for kind in (f"{nodes}Conv", "aten::Conv_backward") for layer in ("conv1", "conv2")),
        ("aten::add_", "optimiser", None, "exact"),
    }  # fmt: skip


def test_ranges_are_no_operations_and_what_they_hold_beside_operations_is_not_covered(tmp_path: Path) -> None:
    raw = read(tmp_path, training(steps=1))
    ops, _ = derive(raw, WORKLOAD)
    # Two convolutions, the dense layer, a cast, the loss; backward's beginning and four nodes; the update.
    assert ops["wall_ns"].sum() == 1000 * (2 * 130 + 50 + 1 + 30 + 4 + 20 + 40 + 85 + 85 + 90)
    assert only(ops, "aten::conv2d")["self_ns"].tolist() == [10_000, 10_000]


def test_bytes_are_those_of_the_innermost_operation_and_the_peak_is_above_the_beginning(tmp_path: Path) -> None:
    raw = read(tmp_path, training())
    assert only(raw.ops, "aten::empty")["alloc_bytes"].tolist() == [4096, 4096]
    assert only(raw.ops, "aten::conv2d")["alloc_bytes"].tolist() == [0, 0]
    assert raw.facts["memory_peak"] == 2 * 4096
    assert "above what lived when a round began" in raw.facts["memory_kind"]


def test_without_events_of_memory_no_bytes_are_told(tmp_path: Path) -> None:
    raw = read(tmp_path, Trace().span("step::0", 0, 10).span("aten::relu", 1, 5))
    assert raw.ops["alloc_bytes"].isna().all()
    assert raw.facts == {}


def test_rounds_follow_each_other_and_keep_their_steps(tmp_path: Path) -> None:
    alone = read(tmp_path, training(0))
    both = read(tmp_path, training(0), training(2))
    assert both.steps["step"].tolist() == [0, 1, 2, 3]
    assert both.steps["start_ns"].tolist() == [0, 2_000_000, 3_000_000, 5_000_000]
    assert len(both.ops) == 2 * len(alone.ops)
    assert (np.diff(both.ops["start_ns"]) >= 0).all()


def test_ten_rounds_are_taken_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    found = read(tmp_path, *(Trace().span(f"step::{i}", 0, 10).span("aten::relu", 1, 5 + i / 2) for i in range(11)))
    assert found.ops["duration_ns"].tolist() == [5000 + 500 * i for i in range(11)]


def test_backward_on_a_thread_of_its_own(tmp_path: Path) -> None:
    trace = Trace().span("step::0", 0, 100).span("layer::conv2", 5, 20).span("aten::conv2d", 6, 10, sequence_number=3)
    trace.span("phase::backward", 30, 60)
    trace.span("autograd::engine::evaluate_function: Conv", 35, 40, tid=9, sequence_number=3)
    trace.span("aten::convolution_backward", 36, 30, tid=9)
    back = only(read(tmp_path, trace).ops, "aten::convolution_backward").iloc[0]
    assert (back["phase"], back["layer"], back["attribution"], back["thread"]) == (
        "backward", "conv2", "sequence", "thread 1",
    )  # fmt: skip


def test_kernels_belong_to_what_launched_them(tmp_path: Path) -> None:
    trace = Trace().span("step::0", 0, 100).span("layer::conv1", 5, 20).span("aten::conv2d", 6, 10, sequence_number=3)
    trace.span("cudaLaunchKernel", 8, 2, "cuda_runtime", correlation=77)
    trace.span("implicit_gemm", 40, 30, "kernel", tid=13, correlation=77, device=0)
    trace.span("autograd::engine::evaluate_function: Conv", 30, 5, sequence_number=3)
    trace.span("cudaLaunchKernel", 31, 1, "cuda_runtime", correlation=78)
    trace.span("dgrad", 70, 20, "kernel", tid=13, correlation=78, device=0)
    trace.span("nobodys", 95, 1, "kernel", tid=13, correlation=79, device=0)
    raw = read(tmp_path, trace)
    kernels = raw.ops[raw.ops["thread"] == "device 0 stream 13"].set_index("type")
    assert kernels["layer"].astype(object).where(kernels["layer"].notna(), None).to_dict() == {
        "implicit_gemm": "conv1", "dgrad": "conv1", "nobodys": None,
    }  # fmt: skip
    assert kernels["phase"].to_dict() == {"implicit_gemm": "forward", "dgrad": "backward", "nobodys": "unknown"}
    assert "cudaLaunchKernel" not in set(raw.ops["type"])
    assert any("1 operations of the device have no launch" in remark for remark in raw.remarks)


def test_the_head_is_the_networks_last_node_and_waiting_for_a_loader_is_input(tmp_path: Path) -> None:
    trace = Trace().span("step::0", 0, 100).span("phase::forward", 1, 40).span("phase::head", 5, 20)
    trace.span("aten::softmax", 6, 10).span("aten::to", 30, 2)
    trace.span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 50, 20, "user_annotation")
    trace.span("my own range", 80, 10, "user_annotation").span("aten::add", 81, 5)
    ops = read(tmp_path, trace).ops.set_index("type")
    assert ops["phase"].to_list() == ["forward", "forward", "input", "unknown"]
    assert ops.loc["aten::softmax", "layer"] == WORKLOAD.network.nodes[-1].name
    assert ops["attribution"].to_list() == ["exact", "exact", "exact", "none"]


def test_nanoseconds_are_exact_although_the_times_are_large(tmp_path: Path) -> None:
    trace = Trace().span("step::0", 0.001, 100.5).span("aten::add", 1.337, 10.001).span("aten::empty", 1.338, 10)
    ops, _ = derive(read(tmp_path, trace), WORKLOAD)
    assert ops["start_ns"].tolist() == [1336, 1337]
    assert ops["self_ns"].tolist() == [1, 10_000]


def test_overlapping_spans_are_taken_without_counting_twice(tmp_path: Path) -> None:
    trace = Trace().span("step::0", 0, 100).span("layer::conv1", 5, 30).span("aten::a", 10, 50).span("aten::b", 40, 40)
    ops, _ = derive(read(tmp_path, trace), WORKLOAD)
    assert ops["wall_ns"].tolist() == [30_000, 40_000]


@given(data=st.data())
def test_whatever_is_nested_adds_up_to_the_union(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Spans drawn within each other on two threads, against a count of every microsecond."""
    folder, trace = tmp_path_factory.mktemp("nested"), Trace().span("step::0", 0, 64)
    busy = {tid: np.zeros(64, bool) for tid in (MAIN, 9)}

    def fill(tid: int, low: int, high: int, depth: int) -> None:
        while high - low > 1 and data.draw(st.booleans()):
            start = data.draw(st.integers(low, high - 1))
            end = data.draw(st.integers(start + 1, high))
            is_op = data.draw(st.booleans())
            trace.span("aten::x" if is_op else "layer::conv1", start, end - start, tid=tid)
            busy[tid][start:end] |= is_op
            if depth < 3:
                fill(tid, start, end, depth + 1)
            low = end

    for tid in busy:
        fill(tid, 0, 64, 0)
    trace.span("aten::last", 63, 1)
    busy[MAIN][63] = True
    raw = read(folder, trace)
    ops, _ = derive(raw, WORKLOAD)
    assert ops["wall_ns"].sum() == pytest.approx(1000 * (busy[MAIN] | busy[9]).sum())
    assert ops["self_ns"].sum() == 1000 * sum(each.sum() for each in busy.values())


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_it_does_not_matter_where_a_chunk_ends(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = training(steps=1).write(tmp_path)
    whole = list(chrome.events(path))
    monkeypatch.setattr(chrome, "CHUNK", chunk)
    assert list(chrome.events(path)) == whole
    assert whole[0]["args"]["name"] == "python ü"


def test_no_more_than_a_window_of_the_file_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome, "CHUNK", 1 << 14)
    path = training(steps=300).write(tmp_path)
    size = len(gzip.decompress(path.read_bytes()))
    tracemalloc.start()
    count = sum(1 for _ in chrome.events(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 300 * 20
    assert peak < size / 5


def test_the_benchmarks_trace_reads(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "benchmarks" / "trace.py"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, str(file), "--megabytes", "1"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path, env=variables)
    assert "100.0% of their time attributed" in done.stdout
    assert "peak of resident memory" in done.stdout


# --- what cannot be read ----------------------------------------------------------------------------------------------

GOOD = training().text()
EVENT = '{"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 7, "ts": 5, "dur": 1, "args": {}}'


def one(event: str) -> bytes:
    return ('{"traceEvents": [' + EVENT + ", " + event + "]}").encode()


BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "the trace is empty"),
    "only blanks": (b" \n\t", "the trace is empty"),
    "cut in an event": (GOOD[: GOOD.index("aten::addmm") + 4].encode(), "breaks off or is damaged"),
    "cut between events": (GOOD[: GOOD.index("}", GOOD.index("aten::addmm")) + 1].encode(), "breaks off or is damaged"),
    "cut after the events": (GOOD[: GOOD.index("traceName") - 4].encode(), "breaks off or is damaged"),
    "no JSON": (b"operations: many", "not a chrome trace"),
    "no text": (b'{"a": "\xff\xfe"}', "not text"),
    "a list": (b"[1, 2]", "not a chrome trace"),
    "another object": (b'{"planes": []}', "holds no list of traceEvents"),
    "events that are none": (b'{"traceEvents": {}}', "holds no list of traceEvents"),
    "numbers for events": (b'{"traceEvents": [1, 2]}', "breaks off or is damaged"),
    "no colon": (b'{"traceEvents" [1, 2]}', "breaks off or is damaged"),
    "deep": (b'{"traceEvents": [' + b"[" * 200_000, "breaks off or is damaged"),
    "no events": (b'{"traceEvents": []}', "marks no step"),
    "no steps": (one(EVENT), "marks no step"),
    "no time": (one(EVENT.replace('"ts": 5, ', "")), "'aten::relu' has no 'ts'"),
    "no length": (one(EVENT.replace('"dur": 1, ', "")), "'aten::relu' has no 'dur'"),
    "no thread": (one(EVENT.replace('"tid": 7, ', "")), "has no 'tid'"),
    "no name": (one(EVENT.replace('"name": "aten::relu", ', "")), "has no 'name'"),
    "a word for a time": (one(EVENT.replace('"ts": 5', '"ts": "five"')), "a value that cannot be"),
    "a list for a name": (one(EVENT.replace('"aten::relu"', "[1]")), "a value that cannot be"),
    "a list for a kind": (one(EVENT.replace('"cpu_op"', "[1]")), "a value that cannot be"),
    "a step of no number": (one(EVENT.replace("aten::relu", "step::" + "9" * 30)), "marks no step"),
    "a number for a name": (one(EVENT.replace('"aten::relu"', "12")), "a value that cannot be"),
    "a list for arguments": (one(EVENT.replace('"args": {}', '"args": [1]')), "a value that cannot be"),
    "a word for a number": (one(EVENT.replace("{}}", '{"Sequence number": "x"}}')), "a value that cannot be"),
    "a huge number": (one(EVENT.replace('"ts": 5', '"ts": 1' + "0" * 400)), "a value that cannot be"),
    "negative length": (one(EVENT.replace('"dur": 1', '"dur": -3')), "lasts -3 µs, which cannot be"),
    "no number": (one(EVENT.replace('"ts": 5', '"ts": NaN')), "which cannot be"),
    "no end": (one(EVENT.replace('"dur": 1', '"dur": Infinity')), "which cannot be"),
    "the far future": (one(EVENT.replace('"ts": 5', '"ts": 1e300')), "which cannot be"),
    "memory without bytes": (one('{"ph": "i", "name": "[memory]", "ts": 5, "tid": 7, "args": {}}'), "has no 'Bytes'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_trace_is_said(name: str, tmp_path: Path) -> None:
    content, words = BAD[name]
    path = pack(tmp_path, content)
    with pytest.raises(TraceError) as raised:
        kineto.read(tmp_path, WORKLOAD)
    assert words in str(raised.value)
    assert str(path) in str(raised.value)
    assert "profile again" in str(raised.value)


MADE: dict[str, tuple[Callable[[], Trace], str]] = {
    "longer than all": (lambda: training().span("aten::sleep", 100, 1e9), "'aten::sleep' in a step lasts longer"),
    "overlapping steps": (lambda: training().span("step::9", 500, 1000), "its steps overlap"),
    "a step twice": (lambda: training().span("step::1", 9000, 100), "step 1 is there more than once"),
    "a layer of another network": (lambda: training().span("layer::conv7", 1, 1), "'conv7', which its network"),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_what_cannot_have_been_is_refused(name: str, tmp_path: Path) -> None:
    make, words = MADE[name]
    with pytest.raises(TraceError) as raised:
        read(tmp_path, make())
    assert words in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_a_packed_file_that_was_cut_or_damaged(tmp_path: Path) -> None:
    path = training(steps=50).write(tmp_path)
    whole = path.read_bytes()
    cases = {"cut short": whole[: len(whole) // 2], "cannot be unpacked": b"\0" * 100}
    broken = bytearray(whole)
    broken[len(whole) // 2 : len(whole) // 2 + 40] = b"\xff" * 40
    for words, content in [*cases.items(), ("", bytes(broken))]:
        path.write_bytes(content)
        with pytest.raises(TraceError, match="profile again") as raised:
            kineto.read(tmp_path, WORKLOAD)
        assert words in str(raised.value)
        assert str(path) in str(raised.value)


def test_every_way_to_cut_a_small_trace_is_an_error_and_nothing_else(tmp_path: Path) -> None:
    text = json.dumps(json.loads(Trace().span("step::0", 0, 10).span("aten::relu", 1, 5).text())).encode()
    for length in range(len(text)):
        path = pack(tmp_path, text[:length])
        with pytest.raises(TraceError, match="profile again"):
            kineto.read(tmp_path, WORKLOAD)
    path.write_bytes(gzip.compress(text))
    assert len(kineto.read(tmp_path, WORKLOAD).ops) == 1


def test_a_folder_without_rounds(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no round0\.json\.gz"):
        kineto.read(tmp_path, WORKLOAD)


def test_old_versions_count_from_the_epoch_in_whole_microseconds(tmp_path: Path) -> None:
    trace = training(steps=1)
    for event in trace.events:
        event["ts"] = int(event["ts"] - BASE) + 1_700_000_000_000_000
    assert read(tmp_path, trace).steps["duration_ns"].tolist() == [1_000_000]
