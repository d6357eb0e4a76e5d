"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group as Together
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from timetrial.report import energy, scaling, tradeoff, versions, words
from timetrial.report.scaling import Workload
from timetrial.report.summary import Group, Row

_LIMIT, _ENERGY = "of the limit", "energy a step"
_COLUMNS = (
    ("engine", "left"), ("median step", "right"), ("samples/s", "right"), ("first step", "right"),
    (_LIMIT, "right"), ("peak memory", "right"), (_ENERGY, "right"), ("accuracy", "right"), ("equivalence", "left"),
    ("against the fastest", "left"),
)  # fmt: skip
_COLOURS = {"faster": "green", "slower": "red", "same": "cyan", "undecided": "yellow"}


def group_table(group: Group) -> Together:
    """The answer first, then the table, then what could not be measured and why."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    shown = {_LIMIT: any(row.limit is not None for row in group.rows), _ENERGY: any(row.energy for row in group.rows)}
    for name, justify in _COLUMNS:
        if not shown.get(name, True):
            continue
        table.add_column(name, justify=justify, no_wrap=name in ("engine", "median step"))  # type: ignore[arg-type]
    for row in group.rows:
        if row.step:
            table.add_row(*_cells(row, shown))
    said = [Text(versions.answer(history)) for history in versions.histories(group.rows, group.floor.value)]
    warned = [Text(group.banner, style="bold yellow")] if group.banner else []
    parts: list[object] = [Text(group.title, style="bold"), *warned, Text(words.answer(group.rows)), *said, table]
    if any(row.verdict for row in group.rows):
        parts.append(Text(words.floor(group.floor), style="dim"))
    parts += [Text(text, style="dim") for text in words.errors(group.rows)]
    parts += [_failure(row) for row in group.rows if not row.step]
    return Together(*parts)  # type: ignore[arg-type]


def scaling_table(workload: Workload) -> Together:
    """What more threads bring: the answer of each engine, then the table."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for i, head in enumerate(scaling.HEADS):
        table.add_column(head, justify="right" if 0 < i < len(scaling.HEADS) - 1 else "left")
    parts: list[object] = [Text(f"What more threads bring: {workload.title}", style="bold")]
    for ladder in workload.ladders:
        parts.append(Text(scaling.answer(ladder)))
        for line in scaling.cells(ladder):
            table.add_row(*map(escape, line), style=_COLOURS.get(line[-1], ""))
    notes = [Text(text, style="dim") for ladder in workload.ladders for text in scaling.notes(ladder)]
    return Together(*parts, table, *notes)  # type: ignore[arg-type]


def tradeoff_table(found: tradeoff.Tradeoff) -> Together:
    """What accuracy costs: which models nothing beats, then all of them."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for i, head in enumerate(tradeoff.HEADS):
        table.add_column(head, justify="right" if 1 < i < len(tradeoff.HEADS) - 1 else "left")
    for line in tradeoff.cells(found):
        table.add_row(*map(escape, line), style="green" if line[-1] else "")
    title, said = Text(f"What accuracy costs: {found.title}", style="bold"), Text(tradeoff.answer(found))
    return Together(title, said, table, Text(tradeoff.note(found), style="dim"))


def _cells(row: Row, shown: Mapping[str, bool]) -> list[str]:
    score = words.percent(row.accuracy) if row.accuracy is not None else _error(row)
    style = "bold green" if row.fastest else _COLOURS.get(row.verdict.word if row.verdict else "", "")
    against = words.versus(row.verdict, row.fastest)
    return [
        escape(row.engine),
        words.timing(row.step),
        words.rate(row.samples_per_second),
        words.duration(row.first_step),
        *([words.NOTHING if row.limit is None else f"{words.figures(row.limit)} %"] if shown[_LIMIT] else []),
        words.memory(row.memory),
        *([energy.short_words(row.energy)] if shown[_ENERGY] else []),
        score,
        words.equivalence(row),
        f"[{style}]{against}[/]" if style else against,
    ]


def _error(row: Row) -> str:
    """And under it what it is to be held against."""
    return words.NOTHING if row.error is None else escape("\n".join([words.error(row), *words.baselines(row)]))


def _failure(row: Row) -> Text:
    line = Text(f"{row.engine}: {row.outcome.kind}", style="bold red")
    line.append(f"  {row.outcome.reason}", style="")
    if row.outcome.remedy:
        line.append(f"  → {row.outcome.remedy}", style="dim")
    return line
