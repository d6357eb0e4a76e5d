"""Theano's profile: seconds of each operation in each step, in the order in which they ran, without when they began.

They are laid one after another from the beginning of their step, as Theano runs them on one thread; what a step takes
besides comes at its end. Rewriting has joined and replaced operations: one that kept no mark of its layer is placed by
the parameters and operations that it reads, and else by those that read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from timetrial.profiling.readers.packed import damaged, rounds, unpacked_json
from timetrial.profiling.schema import Raw, TraceError, raw_ops, raw_steps
from timetrial.records.traces import PACKED
from timetrial.spec.network import Network

if TYPE_CHECKING:
    from timetrial.profiling.workload import Workload

NODES = f"nodes.json{PACKED}"
REMARK = "Theano tells how long each operation took and in which order they ran, not when they began"
_DAY = 86_400.0
_PRODUCTS = re.compile(r"Gemm|Gemv|Ger\b|Dot|CorrMM|Conv", re.IGNORECASE)
_BACK = re.compile(r"Grad|grad|Dx\b|Dx\{")
_GRADIENT_OF = re.compile(r"\(d.*/d(?P<parameter>[^()]+)\)$")


@dataclass(frozen=True)
class _Node:
    op: str
    name: str
    reads: tuple[int, ...]  # operations, by their numbers
    given: tuple[str, ...]  # variables with a name: parameters, x, y
    marks: tuple[str, ...]
    update: bool  # its result is what a parameter becomes
    asked: int | None
    out: int | None

    @property
    def type(self) -> str:
        """`CorrMM`, `Elemwise{Add}`, `Elemwise{Composite}`"""
        outer, _, inner = self.op.partition("{")
        kind = re.match(r"\w+", inner)
        return f"{outer}{{{kind[0]}}}" if outer == "Elemwise" and kind else outer or self.op


@dataclass(frozen=True)
class _Place:
    phase: str
    layer: str | None = None
    attribution: str = "none"


def read(folder: Path, workload: Workload) -> Raw:
    nodes = _nodes(folder / NODES)
    steps = [step for path in rounds(folder, ".json") if path.name != NODES for step in _steps(path, len(nodes))]
    if not steps:
        raise TraceError(f"{folder}: it holds no steps; profile again with --fresh")
    seconds = np.array([step[3] for step in steps])
    base = min(step[1] for step in steps)
    length = np.rint(seconds * 1e9).astype(np.int64)
    begin = np.array([step[1] - base for step in steps])[:, None] + np.cumsum(length, axis=1) - length
    places = _placed(nodes, workload.network)

    count = len(steps)
    ops = raw_ops(
        {
            "step": np.repeat([step[0] for step in steps], len(nodes)),
            "thread": ["main"] * length.size,
            "name": [node.name or node.op for node in nodes] * count,
            "type": [node.type for node in nodes] * count,
            "start_ns": begin.ravel(),
            "duration_ns": length.ravel(),
            "phase": [place.phase for place in places] * count,
            "layer": [place.layer for place in places] * count,
            "attribution": [place.attribution for place in places] * count,
            "alloc_bytes": [node.asked for node in nodes] * count,
            "out_bytes": [node.out for node in nodes] * count,
        }
    )
    numbers, starts, ends, _ = zip(*steps, strict=True)
    laid = raw_steps(numbers, [s - base for s in starts], [e - s for s, e in zip(starts, ends, strict=True)])
    return Raw(ops, laid, facts={"mem_kind": "outputs that take memory of their own"}, remarks=(REMARK,))


def _nodes(path: Path) -> list[_Node]:
    try:
        found = [
            _Node(
                op=str(told["op"]),
                name=told["name"] or "",
                reads=tuple(i for i in told["inputs"] if isinstance(i, int)),
                given=tuple(i for i in told["inputs"] if isinstance(i, str)),
                marks=tuple(told["marks"]),
                update=bool(told["update"]),
                asked=told["alloc_bytes"],
                out=told["out_bytes"],
            )
            for told in unpacked_json(path)
        ]
    except (KeyError, TypeError) as error:
        raise damaged(path, "no list of operations") from error
    if not found or any(not 0 <= i < at for at, node in enumerate(found) for i in node.reads):
        raise damaged(path, "operations that read what comes after them" if found else "no operations")
    return found


def _steps(path: Path, count: int) -> list[tuple[int, int, int, list[float]]]:
    try:
        found = [
            (int(s["step"]), int(s["start_ns"]), int(s["end_ns"]), [float(t) for t in s["seconds"]])
            for s in unpacked_json(path)
        ]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, TraceError):
            raise
        raise damaged(path, "no list of steps") from error
    if any(len(seconds) != count for *_, seconds in found):
        raise damaged(path, f"not the times of {count} operations in each step")
    if not all(0 <= second < _DAY for *_, seconds in found for second in seconds):
        raise damaged(path, "times that cannot be")
    return found


# --- which layer and phase --------------------------------------------------------------------------------------------


def _placed(nodes: list[_Node], network: Network) -> list[_Place]:
    order = {node.name: i for i, node in enumerate(network.nodes)}
    owner = {parameter.name: node.name for node in network.nodes for parameter in node.parameters}
    found: list[_Place] = []
    own: list[str | None] = []  # the layer whose parameters an operation reads, also in another shape
    for node in nodes:
        read = [layer for name in node.given if (layer := owner.get(name))]
        views = [layer for i in node.reads if nodes[i].given and not nodes[i].reads and (layer := own[i])]
        own.append(next(iter(read + views), None))
        found.append(_told(node, order, owner) or _inferred(node, found, own[-1], order))
    return _by_readers(nodes, found)


def _told(node: _Node, order: dict[str, int], owner: dict[str, str]) -> _Place | None:
    """By its marks, or by a gradient's name."""
    layers = [mark.partition(" ")[2] for mark in node.marks if mark.startswith("forward ")]
    layers = [layer for layer in layers if layer in order]
    if layers:
        return _Place("forward", max(layers, key=order.__getitem__), "exact")
    named = _GRADIENT_OF.search(node.name)
    if named and named["parameter"] in owner:
        return _Place("backward", owner[named["parameter"]], "exact")
    plain = {"forward", "loss", "optimiser"} & set(node.marks)
    return _Place(plain.pop(), None, "exact") if len(plain) == 1 else None


def _inferred(node: _Node, before: list[_Place], own: str | None, order: dict[str, int]) -> _Place:
    """By what it reads: the operation that comes after everything else it depends on belongs to the latest layer."""
    read = [before[i] for i in node.reads]
    product = bool(_PRODUCTS.match(node.op))
    if node.update and not product:
        return _Place("optimiser", None, "inferred")
    back = "backward" in node.marks or _BACK.search(node.op) or any(place.phase == "backward" for place in read)
    layers = [place.layer for place in read if place.layer and place.phase == "forward"]
    if back and not layers:
        layers = [place.layer for place in read if place.layer]
    layer = own or max(layers, key=order.__getitem__, default=None)
    if back:
        return _Place("backward", layer, "inferred")
    if node.op.startswith("Crossentropy") or any(place.phase == "loss" for place in read):
        return _Place("loss", None, "inferred")
    return _Place("forward", layer, "inferred") if layer else _Place("unknown")


def _by_readers(nodes: list[_Node], found: list[_Place]) -> list[_Place]:
    """What reads nothing of any layer (room for padding, a shape) belongs to those that read it."""
    places = list(found)
    for at in range(len(nodes) - 1, -1, -1):
        for i in nodes[at].reads:
            if places[i].phase == "unknown" and places[at].phase != "unknown":
                places[i] = replace(places[at], attribution="inferred")
    return places
