"""`timetrial compare`: is NEW faster or slower than BASE, cell by cell, and how sure is that?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timetrial.cli.shared import (
    DEFAULT_RECORDS,
    FAILED,
    AsJson,
    BadRequest,
    Records,
    console,
    explained,
    print_json,
    say,
)

if TYPE_CHECKING:
    from timetrial.report.comparison import Cell, Line, Side
    from timetrial.report.comparison_gate import Checked
    from timetrial.report.comparison_rules import Compared

Place = "a record, a folder of records, the folder of a study, or the name of a study; '?engine=torch' chooses cells"


def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", help=f"What to compare with: {Place}.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="What is compared: as BASE.")],
    across: Annotated[
        list[str] | None,
        typer.Option("--across", help="A coordinate that is meant to differ (engine, placement, …); several allowed."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            help="Exit code 1 where this is shown: 'slower > 3%', 'memory > 10%', 'failed', 'gone', 'undecided'; "
            "several allowed. What is undecided passes unless 'undecided' is named.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Compare what is not comparable, under a banner.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
    records: Records = DEFAULT_RECORDS,
    as_json: AsJson = False,
) -> None:
    """Compare two measurements: the speed-up of NEW over BASE, cell by cell, with intervals and verdicts.

    Without --across only the engine's version, the adapters' code and the time may differ. Anything else is refused
    with exit code 2.
    """
    with explained():
        from timetrial.report.comparison_gate import check, parse
        from timetrial.report.comparison_rules import compare as compare_sides

        if as_json and as_markdown:
            raise BadRequest("--json and --markdown: give one of them")
        conditions = [parse(text) for text in fail_if or ()]
        compared = compare_sides(_side(base, records), _side(new, records), across or (), force)
        checked = check(compared.found.lines, conditions)
        _show(compared, checked, as_json, as_markdown)
        if not all(one.passed for one in checked):
            raise typer.Exit(FAILED)


def _side(text: str, records: Path) -> Side:
    from timetrial.cli.loading import chosen_by, place_of
    from timetrial.records.digest import digests
    from timetrial.report.comparison import matching, side

    name, _, wanted = text.partition("?")
    found = matching(side(text, digests(place_of(name, records))), chosen_by(text, wanted))
    for item in found.unreadable:
        say(f"{item.path}: left out, {item.reason}")
    if not found.cells:
        raise BadRequest(f"{text}: no readable record is there" + (" that is so" if wanted else ""))
    return found


def _show(compared: Compared, checked: list[Checked], as_json: bool, as_markdown: bool) -> None:
    from timetrial.report import comparison_words

    if as_json:
        print_json(_answer(compared, checked))
    elif as_markdown:
        print(comparison_words.markdown(compared, checked))
    else:
        console().print(comparison_words.terminal(compared, checked))


def _answer(compared: Compared, checked: list[Checked]) -> dict[str, Any]:
    from timetrial.report import comparison_words

    found = compared.found
    return {
        "answer": comparison_words.answer(compared),
        "forced": bool(compared.problems),
        "banner": compared.banner,
        "direction": comparison_words.DIRECTION,
        "base": found.base.name,
        "new": found.new.name,
        "across": compared.across,
        "differs": [{"what": what, "base": ours, "new": theirs} for what, ours, theirs in compared.differs],
        "floor": found.floor,
        "floors": found.floors,
        "counts": found.counts,
        "cells": [_line(line) for line in found.lines],
        "gate": [
            {
                "condition": one.condition.text,
                "passed": one.passed,
                "shown_by": [line.coordinates for line in one.lines],
                "undecided": one.undecided,
            }
            for one in checked
        ],
        "left_out": [
            {"path": str(item.path), "reason": item.reason}
            for one in (found.base, found.new)
            for item in one.unreadable
        ],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        **line.coordinates,
        "state": line.state,
        "speedup": line.verdict.speedup if line.verdict else None,
        "more": line.verdict.more if line.verdict else None,
        "memory_ratio": line.memory,
        "memory_method": line.memory_note,
        "base": _half(line.base),
        "new": _half(line.new),
    }


def _half(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    run = cell.outcome
    return {
        "study": run.study,
        "outcome": cell.kind,
        "reason": run.reason,
        "remedy": run.remedy,
        "step": cell.step,
        "seconds": cell.seconds,
        "versions": run.versions,
        "adapter": run.hashes.get("adapter", ""),
    }
