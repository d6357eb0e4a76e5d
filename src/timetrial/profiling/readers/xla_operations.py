"""Operations of compiled XLA programs: events with the name of an HLO instruction, and when they ended."""

from __future__ import annotations

import heapq

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from timetrial.profiling.readers import programs
from timetrial.profiling.readers.events import Events, Operation, Rows
from timetrial.profiling.readers.hlo import program
from timetrial.profiling.readers.programs import CONTAINERS, Known
from timetrial.profiling.readers.protos import Ints, Span, walk
from timetrial.profiling.readers.scopes import NOWHERE, Place, Scopes
from timetrial.profiling.readers.xspace import STAT, Plane

METADATA_PLANE = "/host:metadata"
# An operation ends a moment before its end is told; where that comes later, it has gone on elsewhere meanwhile.
AT_ONCE_NS = 2_000


class Compiled:
    """The programs of a trace, and what is known of their instructions; each is worked out when it is met."""

    def __init__(self, scopes: Scopes, predicts: bool) -> None:
        self._scopes, self._otherwise = scopes, Place(None, "forward") if predicts else NOWHERE
        self._known: dict[bytes, dict[str, Known]] = {}
        self._now: dict[int, dict[str, Known]] = {}

    def meet(self, planes: list[Plane]) -> None:
        """The programs of one round; they stand in each anew."""
        self._now = {}
        for plane in planes:
            if plane.name == METADATA_PLANE:
                for meta in plane.events.values():
                    self._add(plane.data, meta.stats)

    def _add(self, data: bytes, stats: tuple[Span, ...]) -> None:
        """The statistics of a program: its number, and its HloProto."""
        told = dict(field for span in stats for field in walk(data, span))
        number, proto = told.get(STAT["uint64"], told.get(STAT["int64"])), told.get(STAT["bytes"])
        if isinstance(number, int) and isinstance(proto, Span):
            content = data[proto.start : proto.end]
            if content not in self._known:
                self._known[content] = programs.known(program(data, proto), self._scopes, self._otherwise)
            self._now[number] = self._known[content]

    def operation(self, number: int, name: str) -> Operation | None:
        """None for what only contains other operations."""
        known = self._now.get(number, {}).get(name)
        if known is not None:
            return Operation(name, known.kind, known.place, known.attribution, known.bytes, known.parts)
        opcode = name.partition(".")[0]
        return None if opcode in CONTAINERS else Operation(name, opcode)


def rows(events: Events, ends: Events, compiled: Compiled) -> Rows:
    """Each with its whole time. Those that went on beside their thread have a track of their own, as many as ran at
    once."""
    keys, which = np.unique(np.stack([events["program_id"], events["hlo_op"]]), axis=1, return_inverse=True)
    told = [compiled.operation(int(number), events.texts.get(int(name), "")) for number, name in keys.T]
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
    columns = {"which": of, "thread": thread, "start_ns": start, "duration_ns": finish - start}
    return Rows(operations, threads, pd.DataFrame({**columns, "alloc_bytes": pd.NA, "out_bytes": sizes[of]}))


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
