"""`timetrial show`: results from records, at any time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.run import Report
from timetrial.cli.shared import DEFAULT_RECORDS, AsJson, BadRequest, Failed, Records, explained, say

if TYPE_CHECKING:
    from timetrial.records.record import Record
    from timetrial.records.store import Store, Unreadable


def show(
    study: Annotated[str | None, typer.Argument(help="A study that has records; without it, they are listed.")] = None,
    records: Records = DEFAULT_RECORDS,
    sql: Annotated[
        str | None, typer.Option("--sql", help="A query over the table `runs`, one row a record (DuckDB).")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write one row a run to this file.")] = None,
    report: Report = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Draw the charts into this .png or .svg.")] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="One line a cell, of a study or of all; for very many records.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the results of a study from its records, also of one that is half run."""
    with explained():
        from timetrial.records.store import Store

        if records.exists() and not records.is_dir():
            raise BadRequest(f"{records}: is no folder; --records names the folder in which studies keep their records")
        store = Store(records)
        if sql:
            _query(store, sql)
        elif brief:
            _brief(store, study, as_json)
        elif study is None:
            _list(store, as_json)
        else:
            _show(store, study, csv, report, as_json)
            if picture:
                _draw(store, study, picture)


def _query(store: Store, sql: str) -> None:
    import duckdb

    try:
        print(store.query(sql))
    except duckdb.Error as error:
        raise BadRequest(f"the query cannot be answered: {error}") from None


def _list(store: Store, as_json: bool) -> None:
    from timetrial.cli.shared import print_json

    runs, others = {}, {}
    for name in store.studies():
        found = list(store.scan(name))
        runs[name] = len(_readable(found))
        others[name] = len(found) - runs[name]
    if as_json:
        print_json(runs)
    elif not runs:
        raise Failed(f"{store.folder}: there are no records yet; `timetrial quick` makes the first")
    else:
        for name, count in runs.items():
            bad = f", {others[name]} {'file that is no record' if others[name] == 1 else 'files that are no records'}"
            print(f"{name}: {count} run{'' if count == 1 else 's'}{bad if others[name] else ''}")


def _readable(items: Iterable[Record | Unreadable]) -> list[Record]:
    """The others are named and left out."""
    from timetrial.records.record import Record

    found = []
    for item in items:
        if isinstance(item, Record):
            found.append(item)
        else:
            say(f"{item.path}: left out, {item.reason}")
    return found


def _brief(store: Store, study: str | None, as_json: bool) -> None:
    """Cell by cell, without raw values: what was measured, with its interval, and what was not, with its outcome."""
    from timetrial.cli.shared import print_json
    from timetrial.records.digest import Digest, briefs, digests

    place = store.folder if study is None else store.folder / study
    if not place.is_dir():
        raise BadRequest(f"{place}: there are no records; `timetrial show` lists the studies that have some")
    runs, unreadable = list[Digest](), 0
    for item in digests(place):
        if isinstance(item, Digest):
            runs.append(item)
        else:
            unreadable += 1
    found = briefs(runs)
    if not found:
        raise Failed(f"{place}: holds no readable record ({unreadable} files were left out)")
    if as_json:
        print_json([{"cell": one.cell, "step": one.step, "outcomes": one.outcomes} for one in found])
    else:
        from timetrial.report.words import brief_line

        print("\n".join(map(brief_line, found)))
    say(f"{len(found):,} cells of {len(runs):,} runs" + (f"; {unreadable} files left out" if unreadable else ""))


def _draw(store: Store, name: str, picture: Path) -> None:
    from timetrial.report.picture import write_picture
    from timetrial.report.summary import summarise

    try:
        write_picture(picture, summarise(store.records(name)))
    except ValueError as error:
        raise BadRequest(str(error)) from None
    say(f"Picture: {picture}")


def _show(store: Store, name: str, csv: Path | None, report: Path | None, as_json: bool) -> None:
    from timetrial.cli.running import present
    from timetrial.spec.study import Study

    if name not in store.studies():
        have = ", ".join(store.studies()) or "none yet"
        raise BadRequest(f"{store.folder}: there are no records of a study '{name}' (there are: {have})")
    found = _readable(store.scan(name))
    if not found:
        raise Failed(f"{store.folder / name}: holds no readable record")
    if csv:
        store.frame(name).to_csv(csv, index=False)
        say(f"Runs: {csv}")
    shown = Study(study=name, models=("?",), engines=("?",))
    present(shown, found, store.folder, as_json=as_json, report=report)
