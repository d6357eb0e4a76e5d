"""All profiles of a study: those that can be shown, why others cannot, and which of them stand side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timetrial.profiling.profile import Profile, load
from timetrial.profiling.schema import TraceError
from timetrial.records.choice import counted
from timetrial.records.record import Outcome, Record

TOGETHER = ("model", "task", "batch", "variant")  # profiles that agree in these are of the same work
# Of a cell: what follows from the others, or may always differ.
_FOLLOWS = frozenset({"network", "parameters", "parameters_all", "multiply_adds", "operations", "version", "profile"})


@dataclass(frozen=True)
class Found:
    """One cell: its profile, or the outcome that says why there is none."""

    record: Record
    profile: Profile | None
    outcome: Outcome


@dataclass(frozen=True)
class Group:
    """Profiles of the same work by their labels, and what could not be profiled, likewise."""

    title: str
    profiles: Mapping[str, Profile]
    failures: Mapping[str, Outcome]


def gather(study: Path, records: Iterable[Record]) -> list[Found]:
    """A cell each: by workload, training first, then the fastest engine first. `study` is the folder of their study."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in counted(records):
        if record.role in ("cell", "profile"):
            cells.setdefault((record.trial, record.machine), []).append(record)
    picked = (_picked(runs) for runs in cells.values())
    return sorted((_found(study, record) for record in picked if record is not None), key=_order)


def _order(one: Found) -> tuple[object, ...]:
    cell, seconds = one.record.cell, one.profile.header.step_seconds if one.profile else math.inf
    work = (str(cell["model"]), cell["task"] != "train", int(cell["batch"]), str(cell.get("variant", "")))
    return (*work, seconds, str(cell["engine"]), one.record.run)


def _picked(runs: Sequence[Record]) -> Record | None:
    """The newest run that was made for a profile; without one, the run that failed before it."""
    made = [record for record in runs if record.role == "profile"]
    failed = [record for record in runs if not record.outcome.ok]
    return max(made or failed, key=lambda record: (record.outcome.ok, record.started), default=None)


def _found(study: Path, record: Record) -> Found:
    if not record.outcome.ok:
        return Found(record, None, record.outcome)
    try:
        return Found(record, load(study, record), record.outcome)
    except TraceError as error:
        return Found(record, None, Outcome(kind="invalid", reason=str(error)))


def groups(found: Sequence[Found]) -> list[Group]:
    """Those of the same work together, each named by its engine and by what else tells it apart."""
    together: dict[tuple[str, ...], list[Found]] = {}
    for one in found:
        together.setdefault(tuple(str(one.record.cell.get(name, "")) for name in TOGETHER), []).append(one)
    return [_group(members) for members in together.values()]


def _group(members: Sequence[Found]) -> Group:
    named = dict(zip(labels([one.record for one in members]), members, strict=True))
    cell = members[0].record.cell
    placements = {str(one.record.cell["placement"]) for one in members}
    where = placements.pop() if len(placements) == 1 else ""
    parts = (cell["model"], cell["task"], f"batch {cell['batch']}", where, cell.get("dataset"), cell.get("variant"))
    return Group(
        title=", ".join(str(part) for part in parts if part),
        profiles={label: one.profile for label, one in named.items() if one.profile is not None},
        failures={label: one.outcome for label, one in named.items() if one.profile is None},
    )


def labels(records: Sequence[Record]) -> list[str]:
    """The engine, and those coordinates in which the records differ."""
    cells = [_coordinates(record) for record in records]
    names = dict.fromkeys(name for cell in cells for name in cell)
    differing = [name for name in names if len({str(cell.get(name)) for cell in cells}) > 1]
    found = [", ".join([str(cell["engine"]), *_words(cell, differing)]) for cell in cells]
    runs = (record.run for record in records)
    return [label if found.count(label) == 1 else f"{label}, {run}" for label, run in zip(found, runs, strict=True)]


def _coordinates(record: Record) -> dict[str, Any]:
    named = {name: value for name, value in record.cell.items() if name not in _FOLLOWS}
    return {**named, "machine": record.machine}


def _words(cell: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    plain = ("placement", "precision", "model")  # these say themselves what they are
    asked = (name for name in names if name != "engine" and cell.get(name) not in (None, ""))
    return [str(cell[name]) if name in plain else f"{name} {cell[name]}" for name in asked]
