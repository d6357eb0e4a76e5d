"""Carries a campaign through with live progress, and shows what came out. Shared by the commands that measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from timetrial.cli.shared import FAILED, console, print_json, say

if TYPE_CHECKING:
    from rich.console import Console

    from timetrial.records.record import Record
    from timetrial.report.tensorboard import EventFile
    from timetrial.runner.campaign import Campaign
    from timetrial.runner.steps import Notice
    from timetrial.spec.study import Study
    from timetrial.spec.trial import Trial


def carry_out(
    study: Study,
    trials: Sequence[Trial],
    records: Path,
    *,
    fresh: bool,
    as_json: bool,
    report: Path | None,
    tensorboard: Path | None = None,
) -> None:
    campaign = measure(study, trials, records, fresh, tensorboard)
    found = list(campaign.done.values())
    present(study, found, records, as_json=as_json, report=report)
    if campaign.left_out:
        say(_too_short(campaign))
    leave(found)


def measure(
    study: Study, trials: Sequence[Trial], records: Path, fresh: bool, tensorboard: Path | None = None
) -> Campaign:
    """All that is left of a study, with its progress."""
    from timetrial.cli.loading import data_ready
    from timetrial.runner.campaign import Campaign

    data_ready(trials)
    campaign = Campaign(study, trials, records, fresh)
    if campaign.done:
        say(f"{len(campaign.done)} runs are already measured and are kept (--fresh measures them again).")
    _watch(campaign, Scribe(tensorboard, study.study))
    return campaign


def _too_short(campaign: Campaign) -> str:
    """What the budget did not reach, and what would."""
    from timetrial.report.words import duration

    cells = len(campaign.left_out)
    more = campaign.expected_seconds()
    return (
        f"The budget of {duration(campaign.study.budget)} is used up: {cells} of {campaign.cells} cells have fewer "
        f"runs than planned. The same command with about {duration(more)} more goes on from here."
    )


def present(study: Study, found: Sequence[Record], records: Path, *, as_json: bool, report: Path | None) -> None:
    from timetrial.records.store import Store
    from timetrial.report.ceiling import ceilings
    from timetrial.report.energy import why_not
    from timetrial.report.notes import remarks, shortcomings
    from timetrial.report.scaling import workloads
    from timetrial.report.summary import summarise

    groups = summarise(found, ceilings(Store(records), study.study))
    if as_json:
        answer = {"study": study.study, "records": str(records / study.study), "groups": groups}
        print_json({**answer, "scaling": workloads(groups), "shortcomings": shortcomings(groups, found, ())})
    else:
        from timetrial.report.terminal import group_table, scaling_table, tradeoff_table
        from timetrial.report.tradeoff import tradeoffs

        out = console()
        tables = (
            map(group_table, groups),
            map(scaling_table, workloads(groups)),
            map(tradeoff_table, tradeoffs(groups)),
        )
        for part in chain(*tables):
            out.print()
            out.print(part)
        if without := why_not(Store(records), study.study):
            out.print()
            out.print(without, markup=False, highlight=False)
        out.print()
        for text in remarks(groups, found):
            out.print(text, style="yellow", markup=False)
        out.print(f"Records: {records / study.study}")
    if report is not None:
        from timetrial.report.html import write_page

        write_page(report, study.study, study.title, groups, found, records)
        say(f"Report: {report}")


def leave(found: Sequence[Record]) -> None:
    """Exit code 1 when something failed; an engine that is not installed is no failure of the study."""
    kinds = Counter(record.outcome.kind for record in found)
    failures = sum(count for kind, count in kinds.items() if kind not in ("ok", "missing", "unsupported", "skipped"))
    if failures or not kinds["ok"]:
        raise typer.Exit(FAILED)


class Scribe:
    """Writes how each training goes into event files, where that was asked for: a folder a run."""

    def __init__(self, folder: Path | None, study: str) -> None:
        self._folder, self._study = folder, study
        self._file: EventFile | None = None

    def hear(self, notice: Notice) -> None:
        if self._folder is None:
            return
        if notice.kind == "end":
            self.close()
        elif notice.event and notice.event["event"] in ("progress", "epoch"):
            from timetrial.report.tensorboard import EventFile

            trial = notice.step.trial
            name = f"{trial.engine}-{trial.model}".replace("/", "_")
            self._file = self._file or EventFile(self._folder / self._study / f"{name}-{notice.step.run}")
            self._file.hear(notice.event)

    def close(self) -> None:
        if self._file:
            self._file.close()
        self._file = None


def _watch(campaign: Campaign, scribe: Scribe) -> None:
    """Runs all that is left under a progress bar; on anything but a terminal, one line a run and one an epoch."""
    from timetrial.report.monitor import epoch_line

    out = console(stderr=True)
    if out.is_terminal:
        _with_bar(campaign, out, scribe)
        return

    def listen(notice: Notice) -> None:
        scribe.hear(notice)
        if notice.event and notice.event["event"] == "epoch":
            say(f"  {notice.step.trial.model} on {notice.step.trial.engine}, {epoch_line(notice.event)}")

    for number, record in enumerate(campaign.go(listen), 1):
        say(f"[{number}/{number + len(campaign.todo)}] {line(record)}")


def _with_bar(campaign: Campaign, out: Console, scribe: Scribe) -> None:
    """While a training goes on, a second line tells how."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from timetrial.report.monitor import Monitor
    from timetrial.report.words import duration

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=out, transient=True, refresh_per_second=1) as progress:
        made = 0
        task = progress.add_task("starting", total=None, left="")
        monitor, course = Monitor(), progress.add_task("", total=None, left="", visible=False)

        def show(description: str) -> None:
            left = f"about {duration(campaign.expected_seconds())} left"
            total = made + len(campaign.todo)
            progress.update(task, description=description, completed=made, total=total, left=left)

        def listen(notice: Notice) -> None:
            trial = notice.step.trial
            scribe.hear(notice)
            if notice.event and monitor.hear(notice.event):
                progress.update(course, description=f"{monitor.line()}  {monitor.curve()}", visible=monitor.active)
            elif notice.kind == "end":
                monitor.begin()
                progress.update(course, visible=False)
            elif notice.kind == "begin":
                show(f"{trial.model} on {trial.engine}, block {notice.step.block + 1}")

        for record in campaign.go(listen):
            made += 1
            progress.console.print(line(record), highlight=False, markup=False)


def line(record: Record) -> str:
    from timetrial.report.words import duration
    from timetrial.stats.intervals import process_value

    cell = record.cell
    name = f"{cell['model']} {cell['task']} on {cell['engine']}, {cell['placement']}, block {record.block + 1}"
    what = {"cell": "", "twin": ", once more for the noise floor"}.get(record.role, f", {record.role}")
    name += what + (f", attempt {record.attempt + 1}" if record.attempt else "")
    if record.outcome.ok and record.laps:
        flag = f" ({record.flags[0].partition(':')[0]})" if record.flags else ""
        return f"{name}: {duration(process_value(record.laps.seconds))} a step{flag}"
    if record.outcome.ok and record.profile:
        return f"{name}: {record.profile.steps * len(record.profile.profiled)} steps traced"
    return f"{name}: {record.outcome.kind}, {record.outcome.reason}"
