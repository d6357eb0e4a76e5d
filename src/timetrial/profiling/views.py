"""Where the time of a step goes: profiles by operation type, layer and phase, class, operation or phase.

Several profiles of one workload stand side by side. Whatever is left out of the rows is summed up in rows of its own,
so that the rows of a profile always add up to the union of its operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from timetrial.engines.registry import advice
from timetrial.profiling.filters import Filters, ViewError, parse
from timetrial.profiling.profile import Profile
from timetrial.profiling.schema import Frame

# What a row of each view is named by.
VIEWS: dict[str, tuple[str, ...]] = {
    "layer": ("layer", "phase"),
    "type": ("type",),
    "class": ("class",),
    "operation": ("name", "layer", "phase"),
    "phase": ("phase",),
}
# In these, names are the framework's own: what one calls so another does not have.
OWN = ("type", "operation")
Key = tuple[str, ...]
Kind = Literal["row", "rest", "left out", "total"]


@dataclass(frozen=True)
class Part:
    """Of one key and one way of attribution, a mean step. What is not known is None."""

    attribution: str
    wall: float  # seconds
    self_time: float
    count: float
    alloc: float | None
    flops: float | None
    bytes: float | None


@dataclass(frozen=True)
class Cell:
    """One row of one profile, a mean step."""

    time: float  # seconds of the wall clock
    self_time: float  # of all threads
    share: float  # of the union of all operations
    count: float
    alloc: float | None
    flops: float | None
    bytes: float | None
    attributed: str  # the ways, that of most time first
    cumulative: float = 0.0  # share of this row and all below it

    @property
    def flop_rate(self) -> float | None:
        return self.flops / self.time if self.flops and self.time else None

    @property
    def byte_rate(self) -> float | None:
        return self.bytes / self.time if self.bytes and self.time else None


@dataclass(frozen=True)
class Column:
    head: str
    unit: str  # how it is written: seconds, share, count, bytes, flops, flop_rate, byte_rate, text
    of: Callable[[Cell], float | str | None]


COLUMNS: dict[str, Column] = {
    "time": Column("time a step", "seconds", lambda cell: cell.time),
    "share": Column("share", "share", lambda cell: cell.share),
    "cumulative": Column("and all below", "share", lambda cell: cell.cumulative),
    "self": Column("thread time", "seconds", lambda cell: cell.self_time),
    "count": Column("count a step", "count", lambda cell: cell.count),
    "alloc": Column("allocated", "bytes", lambda cell: cell.alloc),
    "flops": Column("FLOP", "flops", lambda cell: cell.flops),
    "bytes": Column("moved", "bytes", lambda cell: cell.bytes),
    "gflops": Column("achieved", "flop_rate", lambda cell: cell.flop_rate),
    "gbs": Column("bandwidth", "byte_rate", lambda cell: cell.byte_rate),
    "attributed": Column("attributed", "text", lambda cell: cell.attributed),
}
ALONE = ("time", "share", "cumulative", "count", "alloc", "flops", "gflops", "bytes", "gbs", "attributed")
SIDE_BY_SIDE = ("time", "share")
SORTS = ("time", "bytes", "flops", "name", "count", "alloc", "self", "gflops", "gbs", "share")


@dataclass(frozen=True)
class Choice:
    """What is to be shown; made by `choose`, which knows what there is."""

    by: str = "layer"
    sort: str = "time"
    columns: tuple[str, ...] = ()  # those that fit the number of profiles unless given
    filters: Filters = field(default_factory=Filters)
    top: int | None = None


@dataclass(frozen=True)
class Row:
    kind: Kind
    key: Key  # as many words as the view has; for other rows a description comes first
    cells: tuple[Cell | None, ...]  # a profile each; None where it has no such operation


@dataclass(frozen=True)
class View:
    by: str
    heads: tuple[str, ...]  # of the key
    labels: tuple[str, ...]  # of the profiles
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    total: Row


def choose(
    by: str = "layer",
    sort: str = "time",
    columns: Sequence[str] = (),
    filters: Iterable[str] = (),
    top: int | None = None,
) -> Choice:
    for what, words, known in (("view", [by], VIEWS), ("column", columns, COLUMNS), ("sort", [sort], SORTS)):
        for word in words:
            if word not in known:
                raise ViewError(f"there is no {what} '{word}'; {advice(word, known)}")
    if top is not None and top < 1:
        raise ViewError(f"top {top}: at least one row is to be shown")
    return Choice(by, sort, tuple(dict.fromkeys(columns)), parse(filters), top)


def view(profiles: Mapping[str, Profile], choice: Choice) -> View:
    """Profiles by their labels, in one table: of one all columns, of several a few columns each."""
    tables = [_Table.of(one, choice) for one in profiles.values()]
    ranked = _ranked(tables, choice)
    least = choice.filters.least
    small = {key for key in ranked if all(table.share(key) < least for table in tables)}
    shown = [key for key in ranked if key not in small][: choice.top]
    rest = [key for key in ranked if key not in set(shown)]
    width = len(VIEWS[choice.by])
    rows = [Row("row", key, tuple(table.cell([key]) for table in tables)) for key in shown]
    if rest:
        name = f"{len(rest)} other{'s' if len(rest) > 1 else ''}"
        rows.append(Row("rest", _named(name, width), tuple(table.cell(rest) for table in tables)))
    if any(table.left_out for table in tables):
        cells = tuple(table.joined(table.left_out) for table in tables)
        rows.append(Row("left out", _named("left out by the filter", width), cells))
    total = Row("total", _named("all", width), tuple(table.joined(table.every) for table in tables))
    columns = choice.columns or (ALONE if len(profiles) == 1 else SIDE_BY_SIDE)
    return View(choice.by, VIEWS[choice.by], tuple(profiles), columns, _cumulated(rows), _cumulated([total])[0])


def _named(text: str, width: int) -> Key:
    return (text, *[""] * (width - 1))


@dataclass(frozen=True)
class _Table:
    """One profile's parts by key, and those that a filter leaves out."""

    parts: Mapping[Key, Sequence[Part]]
    left_out: Sequence[Part]
    whole: float

    @classmethod
    def of(cls, profile: Profile, choice: Choice) -> _Table:
        kept = choice.filters.keep(profile.ops)
        parts = grouped(replace(profile, ops=profile.ops[kept]), VIEWS[choice.by])
        others = grouped(replace(profile, ops=profile.ops[~kept]), ())
        left_out = [part for found in others.values() for part in found]
        whole = math.fsum(part.wall for found in (*parts.values(), left_out) for part in found)
        return cls(parts, left_out, whole)

    @property
    def every(self) -> list[Part]:
        return [part for found in (*self.parts.values(), self.left_out) for part in found]

    def share(self, key: Key) -> float:
        cell = self.cell([key])
        return cell.share if cell else 0.0

    def cell(self, keys: Iterable[Key]) -> Cell | None:
        return self.joined([part for key in keys for part in self.parts.get(key, ())])

    def joined(self, parts: Sequence[Part]) -> Cell | None:
        if not parts:
            return None
        time = math.fsum(part.wall for part in parts)
        ways: dict[str, float] = {}
        for part in parts:
            ways[part.attribution] = ways.get(part.attribution, 0.0) + part.wall
        return Cell(
            time=time,
            self_time=math.fsum(part.self_time for part in parts),
            share=time / self.whole if self.whole else 0.0,
            count=math.fsum(part.count for part in parts),
            alloc=_known(part.alloc for part in parts),
            flops=_known(part.flops for part in parts),
            bytes=_known(part.bytes for part in parts),
            attributed=", ".join(sorted(filter(None, ways), key=lambda way: -ways[way])),
        )


def grouped(profile: Profile, by: Sequence[str]) -> dict[Key, list[Part]]:
    """The operations of a mean step by some columns; a layer or a phase that is not known is an empty word."""
    found: dict[Key, list[Part]] = {}
    if profile.ops.empty:
        return found
    table = profile.per_step(*by, "attribution")
    keys = [_words(table, name) for name in by]
    for number, row in enumerate(table.itertuples(index=False)):
        way = row.attribution if isinstance(row.attribution, str) else ""
        part = Part(
            attribution=way,
            wall=row.wall_ns / 1e9,
            self_time=row.self_ns / 1e9,
            count=float(row.count),
            alloc=_number(row.alloc_bytes),
            flops=_number(row.flops) or None,  # no work is counted for it: that is not known, not none
            bytes=_number(row.bytes) or None,
        )
        found.setdefault(tuple(words[number] for words in keys), []).append(part)
    return found


def _words(table: Frame, name: str) -> list[str]:
    return [value if isinstance(value, str) else "" for value in table[name].astype(object)]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _known(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return math.fsum(found) if found else None


def _ranked(tables: Sequence[_Table], choice: Choice) -> list[Key]:
    """By the largest figure that any of the profiles has; what none has comes last."""
    keys = sorted({key for table in tables for key in table.parts})
    if choice.sort == "name":
        return keys

    def figure(key: Key) -> float:
        cells = [table.cell([key]) for table in tables]
        values = [COLUMNS[choice.sort].of(cell) for cell in cells if cell]
        return max((value for value in values if isinstance(value, float)), default=-math.inf)

    return sorted(keys, key=figure, reverse=True)


def _cumulated(rows: Sequence[Row]) -> tuple[Row, ...]:
    """From the last row upwards, profile by profile."""
    found = list[Row]()
    below = [0.0] * (len(rows[0].cells) if rows else 0)
    for row in reversed(rows):
        below = [so_far + (cell.share if cell else 0.0) for so_far, cell in zip(below, row.cells, strict=True)]
        cells = [cell and replace(cell, cumulative=sum_) for cell, sum_ in zip(row.cells, below, strict=True)]
        found.append(replace(row, cells=tuple(cells)))
    return tuple(reversed(found))
