"""What an engine takes before it runs at its pace: medians over its processes, by engine of a group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from timetrial.records.record import Record
from timetrial.report.summary import Group, Row
from timetrial.stats.breakeven import Course
from timetrial.stats.intervals import process_value

# As they are written in a record and as people read them, in the order in which they happen.
PHASES = (("import", "import"), ("build", "build"), ("first_step", "first step"), ("warmup", "warm-up"))
# And those that come after the laps: the training from the start, where it was asked for, and the end.
LATER = ("train", "predict", "evaluate", "save", "teardown")

Phases = dict[str, float]


class PhaseTable:
    """The phases of each cell. A row knows its cell, its records know their phases."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._values: dict[str, dict[str, list[float]]] = {}
        for record in records:
            if record.outcome.ok:
                kept = self._values.setdefault(_name(record.cell, record.machine), {})
                for phase, seconds in record.phases.items():
                    kept.setdefault(phase, []).append(seconds)

    def of(self, group: Group, row: Row) -> Phases:
        """Phases that were not measured are left out."""
        return self._of(group, row, [phase for phase, _ in PHASES])

    def later(self, group: Group, row: Row) -> Phases:
        return self._of(group, row, LATER)

    def _of(self, group: Group, row: Row, phases: Iterable[str]) -> Phases:
        values = self._values.get(_name(row.cell, str(group.cell.get("machine", ""))), {})
        return {phase: process_value(values[phase]) for phase in phases if phase in values}


def _name(cell: dict[str, Any], machine: str) -> str:
    return json.dumps([cell, machine], sort_keys=True, default=str)


def course(row: Row) -> Course | None:
    """Import, build and first step, then one step after another at the steady pace."""
    if row.step is None or row.start is None or row.first_step is None:
        return None
    return Course(row.start + row.first_step, row.step.value)


def courses(rows: Sequence[Row]) -> dict[str, Course]:
    found = {row.engine: course(row) for row in rows}
    return {engine: line for engine, line in found.items() if line is not None}
