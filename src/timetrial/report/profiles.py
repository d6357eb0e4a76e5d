"""Profiles in the terminal: the answer first, what it rests on, then the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group as Together
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from timetrial.profiling.compare import Change, Difference, State, shortened
from timetrial.profiling.gathered import Group
from timetrial.profiling.views import COLUMNS, OWN, Choice, Row, View, view
from timetrial.records.record import Outcome
from timetrial.report import profile_words as said
from timetrial.report import words

_COLOURS: dict[State, str] = {"faster": "green", "slower": "red", "appeared": "yellow", "vanished": "yellow"}
_STYLES = {"row": "", "rest": "dim", "left out": "dim", "total": "bold"}


def group_tables(group: Group, choice: Choice) -> Together:
    parts: list[Any] = [Text(group.title, style="bold")]
    several = len(group.profiles) > 1
    for label, profile in group.profiles.items():
        style = "" if profile.header.enough else "bold yellow"
        parts.append(Text((f"{label}: " if several else "") + said.answer(profile), style=style))
    parts.append(evidence(group))
    if group.profiles:
        parts.append(Text(said.LEGEND, style="dim"))
    for label, profile in group.profiles.items():
        parts += [Text(f"{label}: {text}", style="dim") for text in said.notes(profile.header)]
    for table in chosen(group, choice):
        parts += [Text(), view_table(table)]
    return Together(*parts, *(failure(label, outcome) for label, outcome in group.failures.items()))


def chosen(group: Group, choice: Choice) -> Iterator[View]:
    """All engines in one table, unless its rows are names that each engine has of its own."""
    if not group.profiles:
        return
    if choice.by in OWN and len(group.profiles) > 1:
        for label, profile in group.profiles.items():
            yield view({label: profile}, choice)
    else:
        yield view(group.profiles, choice)


def evidence(group: Group) -> Table:
    table = _table(["engine", *said.EVIDENCE], left=(0, 1, len(said.EVIDENCE)))
    for label, profile in group.profiles.items():
        cells = said.evidence(profile.header)
        style = "" if profile.header.enough else "yellow"
        table.add_row(escape(label), *(cells[name] for name in said.EVIDENCE), style=style)
    for label, outcome in group.failures.items():
        table.add_row(escape(label), *[words.NOTHING] * (len(said.EVIDENCE) - 1), outcome.kind, style="red")
    return table


def view_table(found: View) -> Table:
    """Columns of one profile under their own names; of several under those of the profiles too."""
    several = len(found.labels) > 1
    heads = [
        f"{label}\n{COLUMNS[name].head}" if several else COLUMNS[name].head
        for label in found.labels
        for name in found.columns
    ]
    table = _table([*found.heads, *heads], left=(*range(len(found.heads)), *_texts(found)))
    if len(found.labels) == 1:
        table.title, table.title_justify, table.title_style = Text(found.labels[0]), "left", "bold"
    for row in found.rows:
        table.add_row(*_cells(row, found), style=_STYLES[row.kind])
    table.add_section()
    table.add_row(*_cells(found.total, found), style=_STYLES["total"])
    return table


def _texts(found: View) -> list[int]:
    """Columns of words, which stand to the left."""
    columns = [name for _ in found.labels for name in found.columns]
    return [len(found.heads) + i for i, name in enumerate(columns) if COLUMNS[name].unit == "text"]


def _cells(row: Row, found: View) -> list[str]:
    names = [escape(word) or words.NOTHING for word in row.key]
    if row.kind != "row":
        names = [escape(word) for word in row.key]
    return names + [said.value(cell, name) for cell in row.cells for name in found.columns]


def failure(label: str, outcome: Outcome) -> Text:
    line = Text(f"{label}: {outcome.kind}", style="bold red")
    line.append(f"  {outcome.reason}", style="")
    if outcome.remedy:
        line.append(f"  → {outcome.remedy}", style="dim")
    return line


def difference_table(tables: Sequence[Difference], top: int | None, banner: str = "") -> Together:
    """By layer, phase and class first; the same by type after it where both sides name operations alike."""
    first = tables[0]
    warned = [text for text in (banner, said.banner(first)) if text]
    if first.other_work:
        warned.append(said.other_work(first))
    parts: list[Any] = [Text(said.differs(first), style="bold")]
    parts += [Text(text, style="bold yellow") for text in warned]
    parts += [Text(said.difference(first)), Text(said.counts(first))]
    for found in tables:
        parts += [Text(), _changes(found, top)]
    return Together(*parts, Text(said.DIRECTION, style="dim"))


def _changes(found: Difference, top: int | None) -> Table:
    heads = [*found.heads, "BASE", "NEW", "change", "of the change", ""]
    table = _table(heads, left=(*range(len(found.heads)), len(heads) - 1))
    rows, others, total = shortened(found, top)
    for one in rows:
        named = [escape(word) or words.NOTHING for word in one.key]
        table.add_row(*named, *_figures(one, total), one.state, style=_COLOURS.get(one.state, ""))
    if others is not None:
        table.add_row(*map(escape, others.key), *_figures(others, total), "", style=_STYLES["rest"])
    table.add_section()
    table.add_row(*total.key, *_figures(total, total), "", style=_STYLES["total"])
    return table


def _figures(one: Change, total: Change) -> list[str]:
    times = [words.duration(one.base), words.duration(one.new), said.signed(one.delta)]
    return [*times, said.of_all(one, total.delta)]


def _table(heads: Sequence[str], left: Sequence[int]) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(escape(head), justify="left" if number in left else "right")
    return table
