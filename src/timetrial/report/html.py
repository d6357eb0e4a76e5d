"""A study's report as one HTML file: the question, the answer, the figures, the method."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial import __version__
from timetrial.records.choice import newest
from timetrial.records.record import Record
from timetrial.records.store import Store, write_atomically
from timetrial.report import charts, energy, notes, regions, spending, words
from timetrial.report import scaling as climbing
from timetrial.report import tradeoff as trading
from timetrial.report.ceiling import ceilings, sentences
from timetrial.report.crossings import crossings
from timetrial.report.frame import Figure, rendered
from timetrial.report.overview import overview
from timetrial.report.phases import PhaseTable, courses
from timetrial.report.style import Look, looks
from timetrial.report.summary import GROUP_KEYS, TITLED, Group
from timetrial.report.tables import Table, table
from timetrial.report.versions import answer as by_version
from timetrial.report.versions import histories

_TITLED = ("model", "task", "batch", "placement", "dataset", "preprocessing")  # what a group's title says already
MOST_DRAWN = 60  # groups whose charts a page can hold and a browser draw; the tables hold all


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    banner: str  # before the answer, where the clocks ran over different work
    answer: str
    table: Table
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Climb:
    """What more threads bring on one workload."""

    id: str
    title: str
    answers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figure: Figure


def write_page(
    path: Path, study: str, title: str, groups: Sequence[Group], records: Sequence[Record], folder: Path
) -> None:
    """`folder` is the store's: it holds the study's own folder and the machines' inventories."""
    write_atomically(path, page(study, title, groups, records, folder))


def page(study: str, title: str, groups: Sequence[Group], found: Sequence[Record], folder: Path) -> str:
    store, records = Store(folder), newest(found)
    sections, climbs = _sections(groups, records), _climbs(groups)
    return rendered(
        "page.html.j2",
        drawn=any(section.figures for section in sections),
        study=study,
        title=title or study,
        sections=sections,
        glance=_glance(groups),
        climbs=climbs,
        climb_heads=climbing.HEADS,
        trades=_trades(groups),
        trade_heads=trading.HEADS,
        bills=spending.bills(groups),
        bill_heads=spending.HEADS,
        facts=_facts(study, records),
        method=[*notes.method(records), *_limits(store, study), *_without_energy(store, study)],
        machines=_machines(store, records),
        versions=notes.versions(records),
        shortcomings=[*notes.shortcomings(groups, found, store.unreadable(study)), *_undrawn(groups)],
        folder=str(folder / study),
        command=_command(study, folder, any(section.table.rows for section in sections)),
        nothing=words.NOTHING,
    )


def _undrawn(groups: Sequence[Group]) -> list[str]:
    more = len(groups) - MOST_DRAWN
    said = f"Charts are drawn of the first {MOST_DRAWN} of {len(groups):,} workloads; the tables hold all of them."
    return [said] if more > 0 else []


def _limits(store: Store, study: str) -> list[tuple[str, str]]:
    found = sentences(ceilings(store, study))
    said = "The best matrix product of any installed library, measured in the same session. "
    return [("The machine's limit", said + "; ".join(found) + ".")] if found else []


def _without_energy(store: Store, study: str) -> list[tuple[str, str]]:
    found = energy.why_not(store, study)
    return [("Energy", found)] if found else []


def _sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    look = looks(row.engine for group in groups for row in group.rows)
    phases = PhaseTable(records)
    extra = _differing(groups)
    return [
        Section(
            id=f"group-{i}",
            title=", ".join([group.title, *(f"{name} {group.cell.get(name)}" for name in extra)]),
            banner=group.banner,
            answer=words.answer(group.rows),
            table=table(group),
            figures=_figures(group, phases, look, i) if i <= MOST_DRAWN else (),
        )
        for i, group in enumerate(groups, 1)
    ]


def _glance(groups: Sequence[Group]) -> Figure | None:
    drawn = overview(groups[:MOST_DRAWN])
    if drawn is None:
        return None
    caption = (
        "The time of a step as a multiple of the fastest engine's on the same work; what was not measured, in words."
    )
    return Figure("glance", "All cells at a glance", charts.wide(drawn, "Times as multiples of the fastest"), caption)


def _climbs(groups: Sequence[Group]) -> list[Climb]:
    look = looks(row.engine for group in groups for row in group.rows)
    caption = "A dot is the estimate, the band its 95 % interval; the dashed line is what would be ideal."
    return [
        Climb(
            id=f"climb-{i}",
            title=item.title,
            answers=tuple(climbing.answer(ladder) for ladder in item.ladders),
            rows=tuple(row for ladder in item.ladders for row in climbing.cells(ladder)),
            figure=Figure(
                f"climb-chart-{i}",
                "Speed-up against threads",
                charts.speedup_chart(item, look),
                caption,
                tuple(text for ladder in item.ladders for text in climbing.notes(ladder)),
            ),
        )
        for i, item in enumerate(climbing.workloads(groups), 1)
    ]


def _trades(groups: Sequence[Group]) -> list[Climb]:
    return [
        Climb(
            id=f"trade-{i}",
            title=item.title,
            answers=(trading.answer(item),),
            rows=tuple(trading.cells(item)),
            figure=Figure(f"trade-chart-{i}", "Accuracy against time", trading.chart(item), trading.note(item)),
        )
        for i, item in enumerate(trading.tradeoffs(groups), 1)
    ]


def _differing(groups: Sequence[Group]) -> list[str]:
    """What groups differ in beside what their titles say."""
    names = [name for name in (*GROUP_KEYS, "machine") if name not in (*_TITLED, *TITLED, *regions.KEYS)]
    return [name for name in names if len({str(group.cell.get(name)) for group in groups}) > 1]


def _figures(group: Group, phases: PhaseTable, look: Mapping[str, Look], number: int) -> tuple[Figure, ...]:
    measured = [row for row in group.rows if row.step]
    starts = {row.engine: phases.of(group, row) for row in measured}
    drawn = (
        (
            "Time of a step",
            charts.step_chart(group, look),
            "A dot is one process (the median of its laps), the upright line the estimate, the band its 95 % interval.",
            (),
        ),
        (
            "Time to get going",
            charts.start_chart(group, starts),
            "Medians over the processes. The warm-up includes finding the length of a lap.",
            tuple(_afterwards(row.engine, phases.later(group, row)) for row in measured if phases.later(group, row)),
        ),
        (
            "Time against number of steps",
            charts.course_chart(group, courses(group.rows), look),
            "Import, build and first step, then step after step at the steady pace; the steps are counted from there.",
            tuple(crossings(group.rows)),
        ),
        (
            "Time of a step by version",
            charts.version_chart(group.title, found := histories(group.rows, group.floor.value)),
            "A dot is the estimate, the band its 95 % interval; versions from old to new.",
            tuple(by_version(history) for history in found),
        ),
    )
    return tuple(
        Figure(f"chart-{number}-{i}", title, spec, caption, said)
        for i, (title, spec, caption, said) in enumerate(drawn, 1)
        if spec is not None
    )


def _afterwards(engine: str, later: Mapping[str, float]) -> str:
    parts = (f"{phase} {words.duration(seconds)}" for phase, seconds in later.items())
    return f"{engine}, after the laps: {', '.join(parts)}."


def _facts(study: str, records: Sequence[Record]) -> list[str]:
    runs = len(records)
    failed = sum(not record.outcome.ok for record in records)
    days = sorted({record.started[:10] for record in records if record.started})
    when = [f"measured {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")] if days else []
    bad = f", {failed} of them not measured" if failed else ""
    return [f"Study {study}", f"{runs} {'run' if runs == 1 else 'runs'}{bad}", *when, f"Timetrial {__version__}"]


def _machines(store: Store, records: Sequence[Record]) -> list[tuple[str, notes.Pairs]]:
    names = sorted({record.machine for record in records if record.machine})
    return [(name, notes.machine_facts(store.machine(name))) for name in names]


def _command(study: str, folder: Path, measured: bool) -> str:
    wanted = "list_median(laps.seconds) AS step" if measured else "outcome.kind AS outcome"
    quoted = study.replace("'", "''")
    sql = f"SELECT cell.model, cell.engine, block, {wanted} FROM runs WHERE study = '{quoted}' ORDER BY ALL"
    # Easier to read in double quotes, where the shell leaves all of it as it is.
    text = shlex.quote(sql) if set(sql) & set('"$`\\!') else f'"{sql}"'
    return f"timetrial show {shlex.quote(study)} --records {shlex.quote(str(folder))} --sql {text}"
