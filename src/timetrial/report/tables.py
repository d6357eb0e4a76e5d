"""The table of a group as cells: what is read, what is sorted by, and the small print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from timetrial.records.record import Equivalence
from timetrial.report import energy, words
from timetrial.report.summary import Group, Row

_LIMIT = "of the limit"
# Name, what it is sorted as, and the side that it stands on.
COLUMNS = (
    ("engine", "text", "left"), ("median step", "number", "right"), ("processes", "number", "right"),
    ("samples/s", "number", "right"), ("first step", "number", "right"), ("import and build", "number", "right"),
    (_LIMIT, "number", "right"), ("peak memory", "number", "right"), ("accuracy", "number", "right"),
    ("equivalence", "text", "left"),
    ("against the fastest", "number", "left"),
)  # fmt: skip
ENERGY_COLUMNS = (("energy a step", "number", "right"), ("EDP", "number", "right"))
_BEFORE_ENERGY = 8  # columns that stand before those of energy, where there are any


@dataclass(frozen=True)
class Cell:
    text: str
    key: str = ""  # sorted by; empty: last, whichever way
    small: tuple[str, ...] = ()
    more: tuple[str, ...] = ()  # folded away under its first line
    mark: str = ""  # class of the cell
    note: int | None = None  # number of a footnote


@dataclass(frozen=True)
class Table:
    rows: tuple[tuple[Cell, ...], ...]
    footnotes: tuple[str, ...]
    failures: tuple[Row, ...]
    columns: tuple[tuple[str, str, str], ...] = COLUMNS


def table(group: Group) -> Table:
    measured = [row for row in group.rows if row.step]
    methods = list(dict.fromkeys(row.memory_method for row in measured if row.memory is not None))
    notes = [f"Peak memory by the {method}; more is not worse." for method in methods]
    joined = [_cells(row, methods) for row in measured]
    columns: tuple[tuple[str, str, str], ...] = COLUMNS
    if any(row.energy for row in measured):
        joined = [
            (*cells[:_BEFORE_ENERGY], *_energy(row, notes), *cells[_BEFORE_ENERGY:])
            for row, cells in zip(measured, joined, strict=True)
        ]
        columns = (*COLUMNS[:_BEFORE_ENERGY], *ENERGY_COLUMNS, *COLUMNS[_BEFORE_ENERGY:])
    if not any(row.limit for row in measured):  # a column of dashes pushes the others out of sight
        place = [name for name, *_ in columns].index(_LIMIT)
        joined = [(*cells[:place], *cells[place + 1 :]) for cells in joined]
        columns = (*columns[:place], *columns[place + 1 :])
    return Table(tuple(joined), tuple(notes), tuple(row for row in group.rows if not row.step), columns)


def _energy(row: Row, notes: list[str]) -> tuple[Cell, Cell]:
    """Adds to the notes what is to be said of them, once."""
    if row.energy is None:
        return Cell(words.NOTHING, mark="right"), Cell(words.NOTHING, mark="right")
    joules = number(words.joules(row.energy.joules), row.energy.joules.value)
    taken = replace(joules, small=energy.small_print(row.energy), note=_noted(energy.footnote(row.energy), notes))
    return taken, _product(row.edp, notes)


def _product(found: energy.Product | None, notes: list[str]) -> Cell:
    if found is None:
        return Cell(words.NOTHING, mark="right")
    ratio = found.ratio
    wide = ratio.low is not None and ratio.high is not None and ratio.low < ratio.high
    small = [f"{ratio.low:.2f}x to {ratio.high:.2f}x"] if wide else []
    small += [f"{found.with_idle.value:.2f}x with idle devices"] if found.with_idle else []
    note = _noted(energy.product_note(found), notes)
    return replace(number(f"{ratio.value:.2f}x", ratio.value), small=tuple(small), note=note)


def _noted(text: str, notes: list[str]) -> int:
    if text not in notes:
        notes.append(text)
    return notes.index(text) + 1


def _cells(row: Row, methods: Sequence[str]) -> tuple[Cell, ...]:
    assert row.step is not None
    return (
        Cell(row.engine, row.engine, (row.version,) if row.version else ()),
        replace(number(words.timing(row.step), row.step.value), small=_laps(row)),
        number(str(row.step.processes), row.step.processes),
        number(words.rate(row.samples_per_second), row.samples_per_second),
        number(words.duration(row.first_step), row.first_step),
        number(words.duration(row.start), row.start),
        number(words.NOTHING if row.limit is None else f"{words.figures(row.limit)} %", row.limit),
        _memory(row, methods),
        _score(row),
        _equivalence(row.equivalence),
        _verdict(row),
    )


def _laps(row: Row) -> tuple[str, ...]:
    found = words.tails(row.laps)
    beside = (("device", row.device), ("input", row.input))
    parts = tuple(f"{name}: {words.duration(seconds)}" for name, seconds in beside if seconds is not None)
    return (*parts, f"laps: {found}") if found else parts


def number(text: str, value: float | None) -> Cell:
    return Cell(text, "" if value is None else repr(float(value)), mark="right")


def _memory(row: Row, methods: Sequence[str]) -> Cell:
    if row.memory is None:
        return Cell(words.NOTHING, mark="right")
    cell = number(words.memory(row.memory), row.memory)
    return replace(cell, note=methods.index(row.memory_method) + 1)


def _score(row: Row) -> Cell:
    if row.accuracy is None and row.error is not None:
        rms = words.in_unit(row.error, row.unit)
        small = (*([f"{rms} rms"] if rms else []), *words.baselines(row, rms=True))
        return replace(number(words.error(row), row.error), small=small)
    return number(words.percent(row.accuracy), row.accuracy)


def _equivalence(found: Equivalence | None) -> Cell:
    if found is None:
        return Cell(words.NOTHING)
    stages = (("outputs", found.forward), ("gradients", found.gradient), ("updates after steps", found.steps))
    known = [error for _, error in stages if error is not None]
    errors = [f"{name}: {words.NOTHING if error is None else f'{error:.1e}'}" for name, error in stages]
    differences = [f"followed by the reference: {difference}" for difference in found.differences]
    return Cell(
        "proved" if found.passed else "WRONG",
        "proved" if found.passed else "wrong",
        more=(f"worst error {max(known):.1e}" if known else "errors", *errors, *differences),
        mark="good" if found.passed else "bad",
    )


def _verdict(row: Row) -> Cell:
    text = words.versus(row.verdict, row.fastest)
    if row.fastest:
        return Cell(text, "1.0", mark="good")
    if row.verdict is None:
        return Cell(text)
    ratio = row.verdict.speedup
    small = () if ratio.low is None or ratio.high is None else (f"{1 / ratio.high:.2f}x to {1 / ratio.low:.2f}x",)
    return Cell(text, repr(1 / ratio.value), small=small, mark=row.verdict.word)
