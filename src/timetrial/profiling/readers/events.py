"""The events of one round that matter: steps, operations of TensorFlow, of XLA, and allocations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from timetrial.profiling.readers.protos import Ints
from timetrial.profiling.readers.scopes import NOWHERE, Place
from timetrial.profiling.readers.xspace import Line, Plane
from timetrial.profiling.schema import Frame

STEP, TENSORFLOW, ALLOCATION, XLA, XLA_END = "step", "tensorflow", "allocation", "xla", "xla end"
PROGRAM_END, TASK_END = "program end", "task end"  # of XLA: a task of its pool runs a program and tidies up after it
# The statistics of each kind of event that are read; that of XLA's operations is also what tells them.
WANTED = {
    STEP: ("step_num",),
    TENSORFLOW: (),
    ALLOCATION: ("requested_bytes", "region_type"),
    XLA: ("hlo_op", "hlo_module", "program_id", "_p"),
    XLA_END: ("_c",),
    PROGRAM_END: (),
    TASK_END: (),
}
NEEDED = {STEP: "step_num", XLA: "hlo_op"}
# In a graph scope/name:Type; of one that runs eagerly its type alone. Those that begin with lines are graphs.
_OPERATION = re.compile(r"[^:\s]+:[A-Za-z_]\w*|EagerLocalExecute: [A-Za-z]\w*")
_END = "end: "
_NAMES = {
    "step": STEP,
    "MemoryAllocation": ALLOCATION,
    "ThunkExecutor::Execute (wait for completion)": PROGRAM_END,
    "ThreadpoolListener::StopRegion": TASK_END,
}


@dataclass(frozen=True)
class Operation:
    """What all occurrences of an operation have in common. `parts`: the layers whose work it does, if several."""

    name: str
    type: str
    place: Place = NOWHERE
    attribution: str = "none"
    out_bytes: int | None = None
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Rows:
    """Occurrences, by columns `which` (of the operations), `thread` (of the names), `start_ns`, `duration_ns`,
    `alloc_bytes`, `out_bytes`."""

    operations: list[Operation]
    threads: list[str]
    table: Frame

    def with_(self, other: Rows) -> Rows:
        """Both, where the threads of the other are among those of this one, at the same places."""
        moved = other.table.assign(which=other.table["which"] + len(self.operations))
        table = pd.concat([self.table, moved], ignore_index=True)
        return Rows([*self.operations, *other.operations], self.threads, table)


@dataclass
class Events:
    """Of one kind of a plane: columns by name, all of the same length."""

    names: dict[int, str]
    texts: dict[int, str]
    threads: list[str]
    columns: dict[str, list[Ints]] = field(default_factory=dict)

    def add(self, line: Line, rows: Ints, thread: int, values: dict[str, Ints]) -> None:
        size = len(rows)
        told = {
            "thread": np.full(size, thread, dtype=np.int64),
            "kind": line.kind[rows],
            "start": line.start_ns[rows],
            "duration": line.duration_ns[rows],
            **values,
        }
        for name, column in told.items():
            self.columns.setdefault(name, []).append(column)

    def __getitem__(self, name: str) -> Ints:
        parts = self.columns.get(name)
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return sum(map(len, self.columns.get("start", ())))


def gather(planes: Iterable[Plane]) -> dict[str, Events]:
    """Of the first plane that holds threads: that of the machine itself."""
    plane = next((plane for plane in planes if plane.lines), None)
    threads: list[str] = []
    if plane is None:
        return {kind: Events({}, {}, threads) for kind in WANTED}
    names = {key: meta.name for key, meta in plane.events.items()}
    found = {kind: Events(names, plane.stats, threads) for kind in WANTED}
    keys = np.array(sorted(names), dtype=np.int64)
    kinds = np.array([_kind(names[key]) or "" for key in keys])
    for line in plane.read():
        thread = _thread(threads, line.name)
        place = np.minimum(np.searchsorted(keys, line.kind), len(keys) - 1)
        of = np.where(keys[place] == line.kind, kinds[place], "") if len(keys) else np.full(len(line.kind), "")
        for kind, stats in WANTED.items():
            rows = np.flatnonzero(of == kind)
            if len(rows):
                values = plane.values(line, rows, stats) if stats else {}
                if kind in NEEDED:
                    keep = values[NEEDED[kind]] >= 0
                    rows, values = rows[keep], {name: column[keep] for name, column in values.items()}
                found[kind].add(line, rows, thread, values)
    return found


def _thread(threads: list[str], name: str) -> int:
    if name not in threads:
        threads.append(name)
    return threads.index(name)


def _kind(name: str) -> str | None:
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith(_END):
        return XLA_END
    if _OPERATION.fullmatch(name):
        return TENSORFLOW
    return None if "::" in name or " " in name else XLA
