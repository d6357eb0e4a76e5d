"""An XSpace, as the profilers of TensorFlow and JAX write it: planes of threads ("lines") with their events.

Field numbers are those of `tsl/profiler/protobuf/xplane.proto`. Times become nanoseconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from timetrial.profiling.readers.protos import Bytes, Damaged, Ints, Span, scan, signed, text, walk

PLANES = 1
PLANE = {"name": 2, "lines": 3, "event_metadata": 4, "stat_metadata": 5}
LINE = {"name": 2, "timestamp_ns": 3, "events": 4}
EVENT = {"metadata_id": 1, "offset_ps": 2, "duration_ps": 3, "stats": 4}
STAT = {"metadata_id": 1, "uint64": 3, "int64": 4, "str": 5, "bytes": 6, "ref": 7}
METADATA = {"id": 1, "name": 2, "stats": 5}
ENTRY = {"key": 1, "value": 2}  # of a map
AT_ONCE = 200_000  # events, so that a large trace takes little memory
LATEST_NS = 1 << 62  # since 1970, some 146 years
LONGEST_NS = 7 * 24 * 3600 * 10**9  # a round that lasts longer than a week is no round


@dataclass(frozen=True)
class Meta:
    """What all events of a name have in common."""

    name: str
    stats: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Line:
    """One thread. `kind` is the key of an event's `Meta`; `stats` are the places of its statistics."""

    name: str
    kind: Ints
    start_ns: Ints
    duration_ns: Ints
    stats_of: Ints  # which event each belongs to
    stats_start: Ints
    stats_end: Ints


@dataclass(frozen=True)
class Plane:
    data: bytes = field(repr=False)
    name: str
    events: dict[int, Meta]
    stats: dict[int, str]
    lines: tuple[Span, ...]

    def read(self) -> Iterator[Line]:
        """The lines in pieces of not too many events each."""
        for span in self.lines:
            yield from _line(self.data, span)

    def values(self, line: Line, rows: Ints, names: tuple[str, ...]) -> dict[str, Ints]:
        """Statistics of the events at `rows`, by name: numbers, keys of texts in `stats`, or -1 where there are none.
        Those told as text of their own are left out."""
        wanted = np.isin(line.stats_of, rows)
        owner = np.searchsorted(rows, line.stats_of[wanted])
        data = np.frombuffer(self.data, dtype=np.uint8)
        fields = scan(data, line.stats_start[wanted], line.stats_end[wanted])
        kinds = fields.column(STAT["metadata_id"], len(owner))
        known = {name: key for key, name in self.stats.items()}
        found = {name: np.full(len(rows), -1, dtype=np.int64) for name in names}
        for number in (STAT["uint64"], STAT["int64"], STAT["ref"]):
            told = fields.only(number)
            for name in names:
                mine = kinds[told.message] == known.get(name, -1)
                found[name][owner[told.message[mine]]] = told.value[mine]
        return found


def planes(data: bytes) -> list[Plane]:
    whole = Span(0, len(data))
    return [_plane(data, value) for number, value in walk(data, whole) if number == PLANES and isinstance(value, Span)]


def _plane(data: bytes, span: Span) -> Plane:
    name, events, stats, lines = "", dict[int, Meta](), dict[int, str](), []
    for number, value in walk(data, span):
        if number == PLANE["name"]:
            name = text(data, value)
        elif number == PLANE["lines"] and isinstance(value, Span):
            lines.append(value)
        elif number == PLANE["event_metadata"] and isinstance(value, Span):
            key, meta = _entry(data, value)
            events[key] = meta
        elif number == PLANE["stat_metadata"] and isinstance(value, Span):
            key, meta = _entry(data, value)
            stats[key] = meta.name
    return Plane(data, name, events, stats, tuple(lines))


def _entry(data: bytes, span: Span) -> tuple[int, Meta]:
    key, meta = 0, Meta("")
    for number, value in walk(data, span):
        if number == ENTRY["key"]:
            key = signed(value)
        elif number == ENTRY["value"] and isinstance(value, Span):
            meta = _meta(data, value)
    return key, meta


def _meta(data: bytes, span: Span) -> Meta:
    name, stats = "", []
    for number, value in walk(data, span):
        if number == METADATA["name"]:
            name = text(data, value)
        elif number == METADATA["stats"] and isinstance(value, Span):
            stats.append(value)
    return Meta(name, tuple(stats))


def _line(data: bytes, span: Span) -> Iterator[Line]:
    name, since, starts, ends = "", 0, array("q"), array("q")  # of millions of events: no list of numbers
    for number, value in walk(data, span):
        if number == LINE["events"] and isinstance(value, Span):
            starts.append(value.start)
            ends.append(value.end)
        elif number == LINE["name"]:
            name = text(data, value)
        elif number == LINE["timestamp_ns"]:
            since = signed(value)
    content = np.frombuffer(data, dtype=np.uint8)
    for first in range(0, len(starts), AT_ONCE):
        pieces = (np.array(part[first : first + AT_ONCE], dtype=np.int64) for part in (starts, ends))
        yield _events(content, name, since, *pieces)


def _events(data: Bytes, name: str, since: int, start: Ints, end: Ints) -> Line:
    fields, count = scan(data, start, end), len(start)
    offset = fields.column(EVENT["offset_ps"], count)
    duration = fields.column(EVENT["duration_ps"], count)
    last = 1000 * LONGEST_NS
    if not 0 <= since <= LATEST_NS:
        raise Damaged(f"the thread '{name}' begins at an impossible time")
    if np.any(duration < 0) or np.any(offset < 0) or np.any(offset > last) or np.any(duration > last):
        raise Damaged(f"events of the thread '{name}' at impossible times")
    stats = fields.only(EVENT["stats"])
    order = np.argsort(stats.message, kind="stable")
    begin, finish = since + offset // 1000, since + (offset + duration) // 1000
    return Line(
        name=name,
        kind=fields.column(EVENT["metadata_id"], count),
        start_ns=begin,
        duration_ns=finish - begin,
        stats_of=stats.message[order],
        stats_start=stats.value[order],
        stats_end=stats.end[order],
    )
