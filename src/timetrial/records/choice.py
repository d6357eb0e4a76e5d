"""Which of the records count: of a cell, the runs of its newest code and versions; of a run made again, the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from timetrial.records.record import TIMED, Record
from timetrial.stats.floor import Floor, floor
from timetrial.stats.intervals import process_value

AGAIN = "-again"  # and the number of the attempt, at the end of the name of a run that was made again


class Attempt(Protocol):
    """What a record and its digest have in common."""

    @property
    def study(self) -> str: ...
    @property
    def trial(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def machine(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def started(self) -> str: ...
    @property
    def versions(self) -> Mapping[str, str]: ...
    @property
    def hashes(self) -> Mapping[str, str]: ...


A = TypeVar("A", bound=Attempt)


def counted(records: Iterable[A]) -> list[A]:
    """In the order in which each run is first met."""
    return attempts(newest(records))


def newest(records: Iterable[A]) -> list[A]:
    """Without those that were made with other code or versions than the last run of their cell: a mean over both
    would be of two things. A study that is run again counts no others either."""
    found, last = list(records), dict[tuple[str, str, str], A]()
    for record in found:
        key = _cell(record)
        if key not in last or last[key].started <= record.started:
            last[key] = record
    return [record for record in found if _alike(record, last[_cell(record)])]


def attempts(records: Iterable[A]) -> list[A]:
    """Of each run the last attempt, whatever it was made with."""
    last: dict[tuple[str, ...], A] = {}
    for record in records:
        key = (*_cell(record), record.run.partition(AGAIN)[0])
        if key not in last or (last[key].started, last[key].attempt) <= (record.started, record.attempt):
            last[key] = record
    return list(last.values())


def _cell(record: Attempt) -> tuple[str, str, str]:
    return record.study, record.machine, record.trial


def _alike(one: Attempt, other: Attempt) -> bool:
    """The same code, and the same versions as far as both tell them: a run that failed early may tell fewer."""
    same_code = one.hashes.get("adapter") == other.hashes.get("adapter")
    return same_code and all(other.versions.get(name, version) == version for name, version in one.versions.items())


def floor_of(records: Iterable[Record]) -> Floor:
    """The smallest difference that can be seen: what an anchor cell and its twin differ by, at most."""
    times: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in counted(records):
        if record.outcome.ok and record.laps and record.role in TIMED:
            of_cell = times.setdefault((record.trial, record.machine), {})
            of_cell.setdefault(record.role, []).append(process_value(record.laps.seconds))
    found = [floor(roles["cell"], roles["twin"]) for roles in times.values() if {"cell", "twin"} <= roles.keys()]
    return max(found, key=lambda one: one.value, default=Floor())
