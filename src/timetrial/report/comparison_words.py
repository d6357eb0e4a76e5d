"""A comparison for people: the answer first, then the table, then what it rests on. For a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from timetrial.report import words
from timetrial.report.comparison import Cell, Comparison, Line
from timetrial.report.comparison_gate import Checked
from timetrial.report.comparison_rules import Compared
from timetrial.stats.intervals import Ratio

if TYPE_CHECKING:
    from rich.console import Group as Together

DIRECTION = "The speed-up is the time of BASE over the time of NEW: above 1, NEW is faster."
_SAID = {"same": "the same"}
_COLOURS = {"faster": "green", "slower": "red", "same": "cyan", "undecided": "yellow"}
_HEADS = ("BASE", "NEW", "speed-up of NEW", "verdict", "memory, NEW / BASE")


def answer(compared: Compared) -> str:
    """`2 slower, 5 the same, 1 undecided.`"""
    counts = compared.found.counts
    if not counts:
        return "There is nothing to compare."
    return ", ".join(f"{count} {_SAID.get(state, state)}" for state, count in counts.items()) + "."


def told(compared: Compared) -> list[str]:
    """The coordinates in which the lines differ: what names them."""
    lines = compared.found.lines
    names = dict.fromkeys(name for line in lines for name in line.coordinates)
    varied = [name for name in names if len({str(line.coordinates.get(name)) for line in lines}) > 1]
    return varied or ["model"]


def name(line: Line, names: Sequence[str]) -> str:
    return ", ".join(str(line.coordinates.get(part, "")) for part in names)


def common(compared: Compared) -> str:
    """What all lines have in common, as far as a person would ask for it."""
    shown = ("model", "engine", "task", "batch", "placement", "dataset", "precision")
    lines, varied = compared.found.lines, told(compared)
    first = lines[0].coordinates if lines else {}
    parts = [f"{part} {first[part]}" for part in shown if part in first and (part not in varied or len(lines) == 1)]
    return ", ".join(parts)


def cells(line: Line, names: Sequence[str]) -> list[str]:
    return [
        *[str(line.coordinates.get(part, "")) or words.NOTHING for part in names],
        _half(line.base),
        _half(line.new),
        times(line.verdict.speedup if line.verdict else None),
        _verdict(line),
        times(line.memory),
    ]


def heads(names: Sequence[str]) -> list[str]:
    return [*names, *_HEADS]


def times(found: Ratio | None) -> str:
    """`1.20x [1.15 to 1.25]`"""
    if found is None:
        return words.NOTHING
    if found.low is None or found.high is None:
        return f"{found.value:.3f}x"
    return f"{found.value:.3f}x [{found.low:.3f} to {found.high:.3f}]"


def _half(cell: Cell | None) -> str:
    if cell is None:
        return words.NOTHING
    return words.timing(cell.step) if cell.step else cell.kind


def _verdict(line: Line) -> str:
    more = line.verdict.more if line.verdict else None
    if line.state == "undecided" and more:
        return f"undecided; {more} more {'run' if more == 1 else 'runs'} of each would decide"
    return line.state


def notes(compared: Compared) -> Iterator[str]:
    """What the table rests on, a sentence a line."""
    found = compared.found
    for what, ours, theirs in compared.differs:
        yield f"Differs: {what}, {ours} in BASE, {theirs} in NEW."
    yield DIRECTION + _brackets(found)
    cells_ = "1 cell" if len(found.floors) == 1 else f"{len(found.floors) or 'no'} cells"
    basis = f"from {cells_} measured twice, at least 1 %"
    yield f"Noise floor: {100 * found.floor:.2g} % ({basis}); a smaller difference is called none."
    if any(one.told_apart for one in found.floors):
        yield "A cell measured twice differs from itself for certain: something moved the times of a whole session."
    if _apart(found):
        yield (
            "BASE and NEW were measured in sessions of their own: what the machine did differently between these is "
            "not in the intervals. Cells of one session are free of that."
        )
    for label, one in (("BASE", found.base), ("NEW", found.new)):
        runs = [run for cell in one.cells for run in cell.runs]
        if flagged := sum(run.flagged for run in runs):
            yield f"{label}: the machine was not steady during {flagged} of {len(runs)} runs."
    yield from dict.fromkeys(f"Memory: {line.memory_note}." for line in found.lines if line.memory_note)
    for label, one in (("BASE", found.base), ("NEW", found.new)):
        yield from (f"{label}: {item.path}: left out, {item.reason}." for item in one.unreadable)


def _brackets(found: Comparison) -> str:
    levels = [line.verdict.confidence for line in found.lines if line.verdict and line.verdict.speedup.low is not None]
    if not levels:
        return ""
    low, high = (f"{100 * level:.4g} %" for level in (min(levels), max(levels)))
    text = f" In brackets: its interval over processes, of {low if low == high else f'{low} to {high}'}"
    if len(levels) > 1:
        text += f", so that of {len(levels)} verdicts with 95 % confidence not one is wrong (Holm)"
    return text + "."


def _apart(found: Comparison) -> bool:
    base, new = ({run.session for cell in one.cells for run in cell.runs} for one in (found.base, found.new))
    return not base & new and "" not in base | new


def failures(compared: Compared, names: Sequence[str]) -> Iterator[str]:
    """Why a cell has no time, a line each; what is the same on both sides is said once."""
    for line in compared.found.lines:
        told_: dict[str, str] = {}
        for label, cell in (("BASE", line.base), ("NEW", line.new)):
            if cell and not cell.seconds:
                run = cell.outcome
                remedy = f" → {run.remedy}" if run.remedy else ""
                reason = f"{cell.kind}{f': {run.reason}' if run.reason else ''}{remedy}"
                told_[reason] = "both" if reason in told_ else label
        yield from (f"{name(line, names)}, {label}: {reason}" for reason, label in told_.items())


def gate(checked: Sequence[Checked], names: Sequence[str]) -> Iterator[str]:
    """Each condition, and what undecided cells mean for it."""
    for one in checked:
        verdict = "passed" if one.passed else f"FAILED by {'; '.join(name(line, names) for line in one.lines)}"
        yield f"Gate '{one.condition.text}': {verdict}."
    words_ = {one.condition.word for one in checked}
    if checked and "undecided" not in words_ and (count := checked[0].undecided):
        cells_ = "cell is" if count == 1 else "cells are"
        yield f"{count} {cells_} undecided, and undecided passes: a gate fails on what is shown (--fail-if undecided)."


def title(compared: Compared) -> str:
    across = f", across {' and '.join(compared.across)}" if compared.across else ""
    return f"NEW ({compared.found.new.name}) against BASE ({compared.found.base.name}){across}"


def terminal(compared: Compared, checked: Sequence[Checked]) -> Together:
    from rich.console import Group as Together
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    names = told(compared)
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for i, head in enumerate(heads(names)):
        right = len(names) <= i < len(names) + 3
        table.add_column(escape(head), justify="right" if right else "left", overflow="fold")
    for line in compared.found.lines:
        table.add_row(*map(escape, cells(line, names)), style=_COLOURS.get(line.state, ""))
    parts: list[Any] = [Text(compared.banner, style="bold white on red")] if compared.banner else []
    parts += [Text(title(compared), style="bold"), Text(answer(compared))]
    parts += [Text(text, style="dim") for text in [common(compared)] if text]
    parts.append(table)
    parts += [Text(text, style="red") for text in failures(compared, names)]
    parts += [Text(text, style="dim") for text in notes(compared)]
    parts += [Text(text, style="bold") for text in gate(checked, names)]
    return Together(*parts)


def markdown(compared: Compared, checked: Sequence[Checked]) -> str:
    """For a pull request: the answer can be read without opening anything."""
    names = told(compared)
    text = [f"> **{_plain(compared.banner)}**", ""] if compared.banner else []
    text += [f"**{answer(compared)}** {_plain(title(compared))}.", ""]
    text += [f"{_plain(line)}  " for line in gate(checked, names)] + ([""] if checked else [])
    text += [_row(heads(names)), _row(["---"] * len(names) + ["---:"] * 3 + ["---"] * 2, raw=True)]
    text += [_row(cells(line, names)) for line in compared.found.lines]
    rest = [*failures(compared, names), *([f"All: {common(compared)}."] if common(compared) else []), *notes(compared)]
    text += ["", *(f"- {_plain(line)}" for line in rest), ""]
    return "\n".join(text)


def _row(values: Sequence[str], raw: bool = False) -> str:
    return "| " + " | ".join(value if raw else _plain(value) for value in values) + " |"


def _plain(text: str) -> str:
    """Names and reasons come from outside: nothing of them is Markdown or HTML."""
    flat = " ".join(text.split())
    for letter in "\\`*_[]|~#":
        flat = flat.replace(letter, "\\" + letter)
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
