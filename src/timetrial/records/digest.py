"""The fast path over very many records: of each run what statistics need, and none of its raw values.

A record is still checked as a whole, in one go with the parsing: this path and `Store` agree on what a record is, and
the time goes into opening the files. One file after the other, so that only the digests are held in memory.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from timetrial.records.choice import counted
from timetrial.records.record import SCHEMA, Kind, Record
from timetrial.records.store import REPLACED, SESSIONS, Store, Unreadable, _reason
from timetrial.spec.study import RESERVED
from timetrial.stats.intervals import Interval, interval

# The figures of peak memory, the better one first, and how each came about.
MEMORY = (
    ("allocator_live_peak", "device allocator, live bytes"),
    ("tree_peak", "resident sets of the process tree, sampled every 10 ms in a run of its own"),
    ("resident_after_steady", "kernel's high-water mark of the process"),
)


@dataclass(frozen=True, slots=True)
class Digest:
    """One run. `seconds` is the median of its laps; None where there are none, or where they are no times."""

    run: str
    trial: str
    study: str
    block: int
    role: str
    session: str
    attempt: int
    flagged: bool  # the machine was not steady during the run
    cell: Mapping[str, Any]
    kind: Kind
    reason: str
    remedy: str
    seconds: float | None
    memory: Mapping[str, int]
    accuracy: float | None
    schema: int
    machine: str
    versions: Mapping[str, str]
    hashes: Mapping[str, str]
    includes: str
    started: str

    @property
    def measured(self) -> bool:
        return self.kind == "ok" and self.seconds is not None


@dataclass(frozen=True)
class Brief:
    """One cell over all its runs. As everywhere, a cell of which a run failed has no time."""

    cell: Mapping[str, Any]
    step: Interval | None
    seconds: tuple[float, ...]  # of its processes
    outcomes: Mapping[str, int]


def digests(place: Path) -> Iterator[Digest | Unreadable]:
    """Of a record, of the folder of a study, or of a whole folder of records; in a fixed order."""
    known: dict[tuple[str, str], Any] = {}
    for path in _paths(place):
        try:
            yield _digest(_record(path), known)
        except (ValueError, OSError) as error:
            yield Unreadable(Path(path), _reason(error))


def briefs(rows: Iterable[Digest]) -> list[Brief]:
    """By cell, in the order in which the cells are first met; the anchor's twin is no cell, nor is a run of memory."""
    cells: dict[tuple[str, str], list[Digest]] = {}
    for row in counted(rows):
        if row.role == "cell":
            cells.setdefault((row.trial, row.machine), []).append(row)
    return [_brief(runs) for runs in cells.values()]


def times(runs: Iterable[Digest]) -> tuple[float, ...]:
    """Of the processes, or nothing at all where one of them failed."""
    found = [run.seconds if run.measured else None for run in runs]
    return tuple(seconds for seconds in found if seconds is not None) if None not in found else ()


def peaks(runs: Iterable[Digest]) -> tuple[tuple[int, ...], str]:
    """Of the processes, and their method: only peaks of the same method are comparable."""
    good = [run for run in runs if run.kind == "ok"]
    for name, method in MEMORY:
        values = tuple(run.memory[name] for run in good if run.memory.get(name))
        if values:
            return values, method
    return (), ""


def _brief(runs: list[Digest]) -> Brief:
    seconds = times(runs)
    counts = Counter(run.kind for run in runs)
    return Brief(runs[0].cell, interval(seconds) if seconds else None, seconds, dict(counts.most_common()))


def _paths(place: Path) -> Iterator[str]:
    if not place.is_dir():
        yield str(place)
        return
    files = _files(str(place))
    yield from files
    others = (RESERVED, SESSIONS, REPLACED) if files else (RESERVED,)  # what lies beside records
    with os.scandir(place) as entries:
        inside = [entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        folders = [entry.path for entry in inside if entry.name not in others]
    for folder in sorted(folders):
        yield from _files(folder)


def _files(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.name.endswith(".json") and not _full(entry))


def _full(entry: os.DirEntry[str]) -> bool:
    """A folder with something in it is a study, whatever its name; an empty one may be in the place of a record."""
    if not entry.is_dir():
        return False
    with os.scandir(entry) as inside:
        return next(inside, None) is not None


def _record(path: str) -> Record:
    with open(path, "rb") as file:
        content = file.read()
    with suppress(ValidationError):
        record = Record.model_validate_json(content)
        if record.schema_version <= SCHEMA:
            return record
    return Store._read(Path(path))  # the slow path has the words for what is wrong


def _digest(record: Record, known: dict[tuple[str, str], Any]) -> Digest:
    def shared(name: str) -> Any:
        """The runs of a trial mostly have equal parts: one copy of each is enough."""
        value = getattr(record, name)
        kept = known.setdefault((record.trial, name), value)
        return kept if kept == value else value

    return Digest(
        run=record.run,
        trial=record.trial,
        study=record.study,
        block=record.block,
        role=record.role,
        session=record.session,
        attempt=record.attempt,
        flagged=bool(record.flags),
        cell=shared("cell"),
        kind=record.outcome.kind,
        reason=record.outcome.reason,
        remedy=record.outcome.remedy,
        seconds=_seconds(record.laps.seconds) if record.laps else None,
        memory=record.memory,
        accuracy=record.training.accuracy if record.training else None,
        schema=record.schema_version,
        machine=record.machine,
        versions=shared("versions"),
        hashes=shared("hashes"),
        includes=shared("includes"),
        started=record.started,
    )


def _seconds(laps: tuple[float, ...]) -> float | None:
    # As `stats.intervals.process_value`, which takes an array library's time for a handful of numbers.
    found = median(laps) if laps else None
    return found if found is not None and math.isfinite(found) and found > 0 else None
