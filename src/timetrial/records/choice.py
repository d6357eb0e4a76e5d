"""Which of the records count: of a run that was made again, the last attempt."""

from __future__ import annotations

from collections.abc import Iterable
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


A = TypeVar("A", bound=Attempt)


def counted(records: Iterable[A]) -> list[A]:
    """In the order in which each run is first met."""
    last: dict[tuple[object, ...], A] = {}
    for record in records:
        key = (record.study, record.machine, record.trial, record.run.partition(AGAIN)[0])
        if key not in last or last[key].attempt <= record.attempt:
            last[key] = record
    return list(last.values())


def floor_of(records: Iterable[Record]) -> Floor:
    """The smallest difference that can be seen: what an anchor cell and its twin differ by, at most."""
    times: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in counted(records):
        if record.outcome.ok and record.laps and record.role in TIMED:
            of_cell = times.setdefault((record.trial, record.machine), {})
            of_cell.setdefault(record.role, []).append(process_value(record.laps.seconds))
    found = [floor(roles["cell"], roles["twin"]) for roles in times.values() if {"cell", "twin"} <= roles.keys()]
    return max(found, key=lambda one: one.value, default=Floor())
