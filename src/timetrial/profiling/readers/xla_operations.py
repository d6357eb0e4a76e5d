"""Operations of compiled XLA programs: events with the name of an HLO instruction, and when they ended."""

from __future__ import annotations

import heapq

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from timetrial.profiling.readers import programs
from timetrial.profiling.readers.events import PROGRAM_END, TASK_END, XLA, XLA_END, Events, Operation, Rows
from timetrial.profiling.readers.hlo import program
from timetrial.profiling.readers.programs import Known
from timetrial.profiling.readers.protos import Ints, Span, walk
from timetrial.profiling.readers.scopes import NOWHERE, Place, Scopes
from timetrial.profiling.readers.xspace import STAT, Meta, Plane
from timetrial.profiling.schema import Frame

METADATA_PLANE = "/host:metadata"
# An operation ends a moment before its end is told; where that comes later, it has gone on elsewhere meanwhile.
AT_ONCE_NS = 2_000
# A program's memory is given back when it has run: where that is much, it takes long.
AFTER = Operation("after the program", "deallocation", Place(None, "runtime"), "exact")


class Compiled:
    """The programs of a trace, and what is known of their instructions; each is worked out when it is met."""

    def __init__(self, scopes: Scopes, predicts: bool) -> None:
        self._scopes, self._otherwise = scopes, Place(None, "forward") if predicts else NOWHERE
        self._known: dict[bytes, dict[str, Known | None]] = {}
        self._now: dict[str, dict[str, Known | None]] = {}

    def meet(self, planes: list[Plane]) -> None:
        """The programs of one round, each named `module(number)`; they stand in every round anew."""
        self._now = {}
        for plane in planes:
            if plane.name == METADATA_PLANE:
                for meta in plane.events.values():
                    self._add(plane.data, meta)

    def _add(self, data: bytes, meta: Meta) -> None:
        told = dict(field for span in meta.stats for field in walk(data, span))
        proto = told.get(STAT["bytes"])
        if isinstance(proto, Span):
            content = data[proto.start : proto.end]
            if content not in self._known:
                self._known[content] = programs.known(program(data, proto), self._scopes, self._otherwise)
            self._now[meta.name] = self._known[content]

    def operation(self, module: str, name: str) -> Operation | None:
        """None for what only contains other operations."""
        instructions = self._now.get(module, {})
        if name not in instructions:
            return Operation(name, name.partition(".")[0])
        known = instructions[name]
        if known is None:
            return None
        return Operation(name, known.kind, known.place, known.attribution, known.bytes, known.parts)


def rows(events: dict[str, Events], compiled: Compiled) -> Rows:
    own = _instructions(events[XLA], events[XLA_END], compiled)
    return own.with_(Rows([AFTER], own.threads, _afterwards(events[PROGRAM_END], events[TASK_END])))


def _afterwards(programs: Events, tasks: Events) -> Frame:
    """From the end of each program to that of its task: the next step cannot begin before."""
    began = pd.DataFrame({"thread": programs["thread"], "start_ns": programs["start"] + programs["duration"]})
    ended = pd.DataFrame({"thread": tasks["thread"], "start_ns": tasks["start"], "end": tasks["start"]})
    began, ended = (table.sort_values("start_ns", kind="stable") for table in (began, ended))
    found = pd.merge_asof(began, ended, on="start_ns", by="thread", direction="forward").dropna()
    duration = found["end"].astype("int64") - found["start_ns"]
    unknown = pd.array([pd.NA] * len(found), dtype="Int64")
    return found.assign(which=0, duration_ns=duration, alloc_bytes=unknown, out_bytes=unknown).drop(columns="end")


def _instructions(events: Events, ends: Events, compiled: Compiled) -> Rows:
    """Each with its whole time. Those that went on beside their thread have a track of their own, as many as ran at
    once."""
    columns = np.stack([events[name] for name in ("hlo_module", "program_id", "hlo_op")])
    keys, which = np.unique(columns, axis=1, return_inverse=True)
    texts = events.texts
    told = [
        compiled.operation(f"{texts.get(module)}({number})", texts.get(name, ""))
        for module, number, name in keys.T.tolist()
    ]
    own = np.array([operation is not None for operation in told], dtype=bool)[which.ravel()]
    place = np.cumsum([operation is not None for operation in told]) - 1
    start, thread = events["start"][own], events["thread"][own].copy()
    finish, beside = _finish(events, ends, own)
    threads = list(events.threads)
    thread[beside] = len(threads) + _tracks(start[beside], finish[beside])
    threads += [f"asynchronous {i + 1}" for i in range(int(thread.max(initial=-1)) + 1 - len(threads))]
    operations = [operation for operation in told if operation is not None]
    sizes = pd.array([operation.out_bytes for operation in operations], dtype="Int64")
    of = place[which.ravel()[own]]
    table = pd.DataFrame({"which": of, "thread": thread, "start_ns": start, "duration_ns": finish - start})
    unknown = pd.array([pd.NA] * len(table), dtype="Int64")
    return Rows(operations, threads, table.assign(alloc_bytes=unknown, out_bytes=sizes[of]))


def _finish(events: Events, ends: Events, own: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.bool_]]:
    """When each ended, and whether it had gone on beside its thread."""
    start, thread = events["start"][own], events["thread"][own]
    finish = start + events["duration"][own]
    if not len(ends) or not len(start):
        return finish, np.zeros(len(start), dtype=bool)
    order = np.argsort(ends["_c"], kind="stable")
    tokens, wanted = ends["_c"][order], events["_p"][own]
    found = np.minimum(np.searchsorted(tokens, wanted), len(tokens) - 1)
    row, paired = order[found], tokens[found] == wanted
    told = ends["start"][row]
    beside = paired & ((told > finish + AT_ONCE_NS) | ((ends["thread"][row] != thread) & (told > finish)))
    return np.where(beside, told, finish), beside


def _tracks(start: Ints, finish: Ints) -> Ints:
    """The lowest track that is free for each."""
    found, free, busy, used = np.zeros(len(start), dtype=np.int64), list[int](), list[tuple[int, int]](), 0
    for index in np.argsort(start, kind="stable").tolist():
        while busy and busy[0][0] <= start[index]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, used)
            used += 1
        found[index] = heapq.heappop(free)
        heapq.heappush(busy, (int(finish[index]), int(found[index])))
    return found
