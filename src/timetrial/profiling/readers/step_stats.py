"""TensorFlow 1's RunMetadata: nodes of a graph on devices, by the numbers of its protocol buffers' fields.

The bytes an operation asks for are counted as TensorFlow's own profiler counts them: what it allocates during the step,
what of that is room to work in once more, and what it holds beyond the step. Its time is from start to end, as there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

import pandas as pd

from timetrial.profiling.readers.graph_scopes import Scopes
from timetrial.profiling.readers.packed import beside, damaged, rounds, unpacked, unpacked_json
from timetrial.profiling.schema import Raw, TraceError, raw_ops, raw_steps
from timetrial.profiling.wire_format import Malformed, fields, messages, part, text, whole

if TYPE_CHECKING:
    from timetrial.profiling.workload import Workload

# A processor's own operations, or all streams of an accelerator together; whatever else is there shows the same again.
_DEVICE = re.compile(r".*/(?:device:)?(?:(?P<cpu>[cg]pu:\d+)|(?P<stream>gpu:\d+)/stream:all)", re.IGNORECASE)
_DAY, _MOST_BYTES = 86_400 * 10**9, 1 << 60
_TYPE = re.compile(r" = ([^\s(]+)\((.*)\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    label: str  # kept once, as the name: each step has the same
    start: int  # nanoseconds since 1970
    duration: int
    asked: int
    given: int

    def possible(self, begin: int) -> bool:
        """In a step that began then."""
        sizes = 0 <= self.asked < _MOST_BYTES and 0 <= self.given < _MOST_BYTES
        return sizes and 0 <= self.duration < _DAY and abs(self.start - begin) < _DAY

    @property
    def type(self) -> str:
        """From `NAME = TYPE(INPUTS)`; an accelerator's nodes are named `NAME:TYPE`."""
        found = _TYPE.search(self.label)
        return found[1] if found else self.name.partition(":")[2] or self.name.rpartition("/")[2]

    @property
    def inputs(self) -> list[str]:
        found = _TYPE.search(self.label)
        return found[2].split(", ") if found else []


def read(folder: Path, workload: Workload) -> Raw:
    scopes, rows, steps = Scopes(workload.network), list[tuple[Any, ...]](), list[tuple[int, int, int]]()
    for path in rounds(folder, ".pb"):
        told = _steps(beside(path, ".pb", ".json"))
        try:
            traced = list(messages(memoryview(unpacked(path))))
            if len(traced) != len(told):
                raise Malformed(f"{len(traced)} steps where {len(told)} were taken")
            for (step, begin, _), message in zip(told, traced, strict=True):
                rows += [(step, *row) for row in _laid(message, begin)]
        except Malformed as error:
            raise damaged(path, error) from error
        steps += told
    if not rows:
        raise TraceError(f"{folder}: its steps hold no operations of TensorFlow 1; profile again with --fresh")
    return _raw(rows, steps, scopes)


def _steps(path: Path) -> list[tuple[int, int, int]]:
    try:
        return [(int(s["step"]), int(s["start_ns"]), int(s["end_ns"])) for s in unpacked_json(path)]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, TraceError):
            raise
        raise damaged(path, "no list of steps") from error


def _raw(rows: list[tuple[Any, ...]], steps: list[tuple[int, int, int]], scopes: Scopes) -> Raw:
    begin = min(start for _, start, _ in steps)
    nodes: list[_Node] = [row[2] for row in rows]
    types = [node.type for node in nodes]
    places = [scopes.place(node.name, kind) for node, kind in zip(nodes, types, strict=True)]
    fused = {i: scopes.fused(node.inputs, places[i].layer) for i, node in enumerate(nodes) if "Fused" in types[i]}
    fused = {i: shares for i, shares in fused.items() if len(shares) > 1}
    ops = raw_ops(
        {
            "step": [row[0] for row in rows],
            "thread": [row[1] for row in rows],
            "name": [node.name for node in nodes],
            "type": types,
            "start_ns": [node.start - begin for node in nodes],
            "duration_ns": [node.duration for node in nodes],
            "phase": [place.phase for place in places],
            "layer": [place.layer for place in places],
            "attribution": ["fused_split" if i in fused else place.attribution for i, place in enumerate(places)],
            "alloc_bytes": [node.asked for node in nodes],
            "out_bytes": [node.given for node in nodes],
        }
    )
    parts = pd.DataFrame(
        [(i, layer, share) for i, shares in fused.items() for layer, share in shares.items()],
        columns=["row", "layer", "share"],
    )
    whole_steps = raw_steps(*zip(*((step, start - begin, end - start) for step, start, end in steps), strict=True))
    return Raw(ops, whole_steps, parts if len(parts) else None, {"mem_kind": "measured"})


def _laid(message: memoryview, begin: int) -> Iterator[tuple[str, _Node]]:
    """Each node with a row on which no two are at once: TensorFlow 1 does not tell the thread."""
    for device, nodes in _devices(message):
        if not all(node.possible(begin) for node in nodes):
            raise Malformed("it has times or sizes that cannot be")
        ends: list[int] = []
        for node in sorted(nodes, key=lambda node: (node.start, node.duration)):
            lane = next((i for i, end in enumerate(ends) if end <= node.start), len(ends))
            ends[lane : lane + 1] = [node.start + node.duration]
            yield device if not lane else f"{device} #{lane + 1}", node


def _devices(message: memoryview) -> Iterator[tuple[str, list[_Node]]]:
    for number, value in fields(message):
        if number != 1:  # RunMetadata.step_stats
            continue
        for inner, device in fields(part(value)):
            if inner != 1:  # StepStats.dev_stats
                continue
            held = list(fields(part(device)))
            name = next((text(found) for number, found in held if number == 1), "")
            if known := _DEVICE.fullmatch(name):
                short = known["cpu"] or f"{known['stream']} stream"
                yield short.upper(), [_node(part(found)) for number, found in held if number == 2]


def _node(message: memoryview) -> _Node:
    """A NodeExecStats; an operation of less than a microsecond is counted as one where nanoseconds are not told."""
    name = label = ""
    asked = given = start = end = start_micros = end_micros = 0
    for number, value in fields(message):
        match number:
            case 1:
                name = intern(text(value))
            case 2:
                start_micros = whole(value)
            case 4:
                end_micros = whole(value)
            case 6:
                asked += _number(value, 2)  # AllocatorMemoryUsed.total_bytes
            case 7:
                given += _given(part(value))
            case 8:
                label = intern(text(value))
            case 12:
                asked += _number(value, 1) + _number(value, 3)  # MemoryStats.temp_memory_size, .persistent_memory_size
            case 13:
                start = whole(value)
            case 15:
                end = whole(value)
    return _Node(name, label, start or start_micros * 1000, end or max(end_micros, 1) * 1000, asked, given)


def _number(message: int | memoryview, wanted: int) -> int:
    return next((whole(value) for number, value in fields(part(message)) if number == wanted), 0)


def _given(output: memoryview) -> int:
    """NodeOutput.tensor_description.allocation_description.requested_bytes"""
    for wanted in (3, 4):
        output = next((part(value) for number, value in fields(output) if number == wanted), memoryview(b""))
    return _number(output, 1)
