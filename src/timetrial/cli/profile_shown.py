"""What `timetrial profile` shows and writes, whether just measured or taken from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timetrial.cli.shared import FAILED, BadRequest, Failed, console, print_json, say

if TYPE_CHECKING:
    from timetrial.profiling.compare import Difference
    from timetrial.profiling.gathered import Found, Group
    from timetrial.profiling.profile import Profile
    from timetrial.profiling.views import Choice, View
    from timetrial.records.record import Record

By = Annotated[str, typer.Option("--by", help="layer (and phase), type, class, operation or phase.")]
Sort = Annotated[str, typer.Option("--sort", help="time, bytes, flops, count, alloc, … or name.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Only these, with commas between: time, share, cumulative, self, count, alloc, flops, gflops, bytes, gbs, "
        "attributed.",
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="Only what has a word in its name, type or layer, or phase=backward, layer=conv*, class=conv, share>1%; "
        "may be given several times.",
    ),
]
Top = Annotated[int | None, typer.Option("--top", min=1, help="So many rows, the others summed up in one.")]
Published = Annotated[bool, typer.Option("--published", help="In the form of the published report.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write an HTML page with charts to this file.")]
Pictures = Annotated[Path | None, typer.Option("--pictures", help="Draw the page's charts as .png into this folder.")]
TraceFile = Annotated[
    Path | None, typer.Option("--trace", help="Write a trace that Perfetto and chrome://tracing open.")
]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write one row an operation to this file.")]
Parquet = Annotated[Path | None, typer.Option("--parquet", help="Write one row an operation to this file.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 1 also where there is not enough evidence.")]


@dataclass(frozen=True)
class Wanted:
    """The options that both ways of looking at profiles have."""

    by: str
    sort: str
    columns: str | None
    filters: list[str] | None
    top: int | None
    published: bool
    report: Path | None
    pictures: Path | None
    trace: Path | None
    csv: Path | None
    parquet: Path | None
    strict: bool
    as_json: bool

    @property
    def choice(self) -> Choice:
        """Refuses what there is not: to be asked for before anything is measured."""
        from timetrial.profiling.views import choose

        if self.published and self.as_json:
            raise BadRequest("--json and --published: give one of them")
        columns = [name.strip() for name in self.columns.split(",")] if self.columns else []
        return choose(self.by, self.sort, columns, self.filters or (), self.top)


@dataclass(frozen=True)
class Side:
    """BASE or NEW of a comparison."""

    name: str
    record: Record
    profile: Profile


def show(wanted: Wanted, choice: Choice, study: Path, found: Sequence[Found]) -> None:
    """`study` is the folder of its records. What cannot be shown is a row with its reason."""
    from timetrial.profiling.gathered import groups, labels

    there = [one for one in found if one.profile is not None]
    profiles = [one.profile for one in there if one.profile is not None]
    if profiles:
        choice.filters.check([profile.ops for profile in profiles])
    gathered = groups(found)
    if wanted.as_json:
        print_json(_answer(study, gathered, choice))
    elif wanted.published:
        _published(gathered)
    else:
        _tables(gathered, choice, study)
    if profiles:
        _write(wanted, study, dict(zip(labels([one.record for one in there]), profiles, strict=True)))
    _leave(wanted, found, profiles)


def _tables(gathered: Sequence[Group], choice: Choice, study: Path) -> None:
    from timetrial.report.profiles import group_tables

    out = console()
    for group in gathered:
        out.print()
        out.print(group_tables(group, choice))
    out.print()
    out.print(f"Records: {study}", markup=False)


def _published(gathered: Sequence[Group]) -> None:
    """To the character: nothing is wrapped, and nothing taken for markup."""
    from timetrial.profiling.published import report
    from timetrial.report.profile_sentences import not_enough
    from timetrial.report.profiles import failure

    out = console()
    for group in gathered:
        out.print(group.title, style="bold", markup=False)
        for label, profile in group.profiles.items():
            out.print(f"{label}:", markup=False)
            if profile.header.problems:
                out.print(not_enough(profile.header), style="bold yellow", markup=False)
            out.file.write(report(profile).rstrip("\n") + "\n")
        for label, outcome in group.failures.items():
            out.print(failure(label, outcome))


def _write(wanted: Wanted, study: Path, profiles: Mapping[str, Profile]) -> None:
    from timetrial.profiling import export

    if wanted.trace:
        export.write_trace(wanted.trace, profiles)
        say(f"Trace: {wanted.trace} (open it in Perfetto or chrome://tracing)")
    if wanted.csv:
        export.write_csv(wanted.csv, profiles.values())
        say(f"Operations: {wanted.csv}")
    if wanted.parquet:
        export.write_parquet(wanted.parquet, profiles.values())
        say(f"Operations: {wanted.parquet}")
    if wanted.report or wanted.pictures:
        _draw(wanted, study, list(profiles.values()))


def _draw(wanted: Wanted, study: Path, profiles: Sequence[Profile]) -> None:
    from timetrial.records.store import Store
    from timetrial.report.ceiling import ceilings
    from timetrial.report.profile_page import write_page
    from timetrial.report.profile_picture import write_pictures

    limits = ceilings(Store(study.parent), study.name) or None
    if wanted.report:
        write_page(wanted.report, study.name, profiles, limits)
        say(f"Report: {wanted.report}")
    if wanted.pictures:
        for path in write_pictures(wanted.pictures, profiles, limits):
            say(f"Picture: {path}")


def _leave(wanted: Wanted, found: Sequence[Found], profiles: Sequence[Profile]) -> None:
    """Exit code 1 where something failed; an engine that is not there or has no profiler is no failure."""
    failed = [
        one for one in found if one.profile is None and one.outcome.kind not in ("missing", "unsupported", "skipped")
    ]
    weak = [profile for profile in profiles if not profile.header.enough]
    if failed or not profiles or (wanted.strict and weak):
        raise typer.Exit(FAILED)


# --- from records


def chosen(text: str, records: Path) -> tuple[Path, list[Found]]:
    """The folder of a study and those of its cells that are meant."""
    from timetrial.cli.loading import chosen_by, place_of
    from timetrial.profiling.gathered import gather
    from timetrial.records.record import Record
    from timetrial.records.store import Store
    from timetrial.report.comparison import named_by

    name, _, after = text.partition("?")
    place = place_of(name, records).absolute()
    study, run = (place, None) if place.is_dir() else (place.parent, place.stem)
    wanted, found = chosen_by(text, after), list[Record]()
    for item in Store(study.parent).scan(study.name):
        if not isinstance(item, Record):
            say(f"{item.path}: left out, {item.reason}")
        elif run in (None, item.run):
            found.append(item)
    if not any(record.role == "profile" for record in found):
        raise Failed(
            f"{place}: holds no profile; `timetrial profile --model NAME` makes one, and so does a study with "
            "measure: [time, profile]"
        )
    kept = [record for record in found if named_by(wanted, record, text)]
    if not kept:
        raise BadRequest(f"{text}: no readable record is there that is so")
    return study, gather(study, kept)


def one(text: str, records: Path) -> Side:
    """The one profile that is meant."""
    from timetrial.profiling.gathered import labels

    _, found = chosen(text, records)
    there = [Side(text, one.record, one.profile) for one in found if one.profile is not None]
    if not there:
        reasons = "; ".join(f"{one.record.cell['engine']}: {one.outcome.kind}, {one.outcome.reason}" for one in found)
        raise Failed(f"{text}: has no profile that can be read ({reasons})")
    if len(there) > 1:
        named = "; ".join(labels([side.record for side in there]))
        raise BadRequest(
            f"{text}: has {len(there)} profiles ({named}); choose one by its coordinates, as in "
            f"'{text}{'&' if '?' in text else '?'}engine={there[0].record.cell['engine']}'"
        )
    return there[0]


def refused(base: Side, new: Side) -> list[str]:
    """In what two profiles must not differ."""
    pairs = {
        "machine": (base.record.machine, new.record.machine),
        "task": (base.profile.header.task, new.profile.header.task),
    }
    return [f"{name}: {ours} in BASE, {theirs} in NEW" for name, (ours, theirs) in pairs.items() if ours != theirs]


# --- as JSON


def _answer(study: Path, gathered: Sequence[Group], choice: Choice) -> dict[str, Any]:
    from timetrial.report.profile_sentences import answer
    from timetrial.report.profiles import chosen as views_of

    def profile(one: Profile) -> dict[str, Any]:
        return {
            "answer": answer(one),
            "enough": one.header.enough,
            "problems": one.header.problems,
            "header": one.header,
        }

    return {
        "study": study.name,
        "records": str(study),
        "groups": [
            {
                "title": group.title,
                "profiles": {label: profile(one) for label, one in group.profiles.items()},
                "failures": group.failures,
                "views": [_view(found) for found in views_of(group, choice)],
            }
            for group in gathered
        ],
    }


def _view(found: View) -> dict[str, Any]:
    from timetrial.profiling.views import COLUMNS

    def row(one: Any) -> dict[str, Any]:
        cells = {
            label: {name: column.of(cell) for name, column in COLUMNS.items()} if cell else None
            for label, cell in zip(found.labels, one.cells, strict=True)
        }
        return {"kind": one.kind, **dict(zip(found.heads, one.key, strict=True)), "of": cells}

    return {"by": found.by, "rows": [row(one) for one in found.rows], "total": row(found.total)}


def compared_as_json(tables: Sequence[Difference], problems: Sequence[str]) -> dict[str, Any]:
    from timetrial.report import profile_sentences as said

    first = tables[0]
    return {
        "answer": said.banner(first) or said.difference(first),
        "enough": not first.problems,
        "problems": first.problems,
        "forced": list(problems),
        "direction": said.DIRECTION,
        "differs": [{"what": what, "base": ours, "new": theirs} for what, ours, theirs in first.differs],
        "base": first.base,
        "new": first.new,
        "seconds": {"steps": first.steps, "operations": first.operations, "explained": first.explained},
        "tables": [
            {
                "by": found.heads,
                "changes": [
                    {**dict(zip(found.heads, one.key, strict=True)), "base": one.base, "new": one.new,
                     "delta": one.delta, "state": one.state}
                    for one in found.changes
                ],
            }
            for found in tables
        ],
    }  # fmt: skip
