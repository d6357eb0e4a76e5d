"""Collectors of the original engines without their frameworks: what they write is what the readers read."""

from __future__ import annotations

import gzip
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit import made_profiles as made
from tests.unit.made_traces import CPU, metadata, node
from timetrial.profiling.readers import step_stats
from timetrial.profiling.wire_format import messages
from timetrial_worker import profiled
from timetrial_worker.adapters import tensorflow1_profiler, theano_profiler


class Metadata:
    """A RunMetadata that a session fills with one operation, begun just now."""

    def fill(self) -> None:
        begin = time.time_ns()
        self.content = metadata((CPU, [node("layer/conv1/Conv2D", "Conv2D", begin, 1000, asked=64)]))

    def SerializeToString(self) -> bytes:
        return self.content


class RunOptions:
    FULL_TRACE = 3

    def __init__(self, trace_level: int) -> None:
        self.trace_level = trace_level


class Session:
    def __init__(self) -> None:
        self.traced: list[bool] = []

    def run(self, fetches: Any, feed: Any = None, options: Any = None, found: Any = None) -> str:
        self.traced.append(options is not None and options.trace_level == RunOptions.FULL_TRACE)
        if found is not None:
            found.fill()
        return f"{fetches} of {feed}"


def adapter() -> Any:
    session = Session()
    tf = SimpleNamespace(RunMetadata=Metadata, RunOptions=RunOptions)
    return SimpleNamespace(tf=tf, session=session, run=session.run)


def collect(made_adapter: Any, collector: Any, name: str | None, first: int, steps: int = 3) -> None:
    collector.start()
    for number in range(first, first + steps):
        with collector.step(number):
            assert made_adapter.run("answer", "x") == "answer of x"
    collector.stop(name)


def test_tensorflow_1_is_traced_between_start_and_stop_and_no_longer(tmp_path: Path) -> None:
    engine = adapter()
    collector = tensorflow1_profiler.Collector(engine, str(tmp_path))
    engine.run("answer", "x")
    collect(engine, collector, None, 0)
    assert not list(tmp_path.iterdir())
    collect(engine, collector, "round0", 0)
    collect(engine, collector, "round1", 3)
    engine.run("answer", "x")
    assert engine.session.traced == [False, *[True] * 9, False]
    for path in list(tmp_path.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    raw = step_stats.read(tmp_path, made.workload())
    assert raw.steps["step"].tolist() == raw.ops["step"].tolist() == [0, 1, 2, 3, 4, 5]
    assert raw.ops["alloc_bytes"].tolist() == [64] * 6
    assert ((raw.ops["start_ns"] - raw.steps["start_ns"]).abs() < 10**9).all()


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_384, 3_000_000])
def test_a_message_is_found_again_by_its_length(size: int) -> None:
    content = tensorflow1_profiler.varint(size) + bytes(size) + tensorflow1_profiler.varint(2) + b"ab"
    assert [len(message) for message in messages(memoryview(content))] == [size, 2]


def test_a_marked_call_stands_in_the_stack_under_its_mark() -> None:
    def files(depth: int) -> list[str]:
        return files(depth - 1) if depth else [frame.filename for frame in traceback.extract_stack()]

    stack = theano_profiler.marked("forward conv1", files, 3)
    assert "timetrial: forward conv1" in stack
    node_ = SimpleNamespace(
        outputs=[SimpleNamespace(tag=SimpleNamespace(trace=[[(name, 1, "f", "") for name in stack]]))]
    )
    assert theano_profiler.marks(node_) == {"forward conv1"}
    assert theano_profiler.marks(SimpleNamespace(outputs=[SimpleNamespace(tag=SimpleNamespace())])) == set()


def test_outputs_in_the_memory_of_an_input_are_not_asked_for() -> None:
    assert theano_profiler.old(SimpleNamespace(view_map={0: [0]}, destroy_map={1: [0]})) == {0, 1}
    assert theano_profiler.old(SimpleNamespace()) == set()


@pytest.mark.parametrize(
    ("seconds", "least", "steps"), [(0.1, 3, 3), (0.1, 20, 20), (0.001, 20, 40), (0.02, 3, 15), (0.0, 3, 40)]
)
def test_a_round_has_no_fewer_steps_than_are_asked_for(seconds: float, least: int, steps: int) -> None:
    assert profiled.steps_of_round(seconds, least) == steps
