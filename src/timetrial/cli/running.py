"""Carries a campaign through with live progress, and shows what came out. Shared by `run` and `quick`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from timetrial.cli.shared import FAILED, console, print_json, say

if TYPE_CHECKING:
    from timetrial.records.record import Record
    from timetrial.runner.campaign import Campaign, Step
    from timetrial.spec.study import Study
    from timetrial.spec.trial import Trial


def carry_out(
    study: Study, trials: Sequence[Trial], records: Path, *, fresh: bool, as_json: bool, report: Path | None
) -> None:
    from timetrial.runner.campaign import Campaign

    campaign = Campaign(study, trials, records, fresh)
    done, todo = len(campaign.done), len(campaign.todo)
    if done:
        say(f"{done} of {done + todo} runs are already measured and are kept (--fresh measures them again).")
    _watch(campaign)
    wanted = {step.run for step in campaign.all_steps}
    found = [record for record in campaign.done.values() if record.run in wanted]
    present(study, found, records, as_json=as_json, report=report)
    _leave(found)


def present(study: Study, found: Sequence[Record], records: Path, *, as_json: bool, report: Path | None) -> None:
    from timetrial.report.summary import summarise

    groups = summarise(found)
    if as_json:
        print_json({"study": study.study, "records": str(records / study.study), "groups": groups})
    else:
        from timetrial.report.terminal import group_table

        out = console()
        for group in groups:
            out.print()
            out.print(group_table(group))
        out.print()
        out.print(f"Records: {records / study.study}")
    if report is not None:
        from timetrial.report.html import write_page

        write_page(report, study.study, study.title, groups, found, records)
        say(f"Report: {report}")


def _leave(found: Sequence[Record]) -> None:
    """Exit code 1 when something failed; an engine that is not installed is no failure of the study."""
    kinds = Counter(record.outcome.kind for record in found)
    failures = sum(count for kind, count in kinds.items() if kind not in ("ok", "missing", "unsupported", "skipped"))
    if failures or not kinds["ok"]:
        raise typer.Exit(FAILED)


def _watch(campaign: Campaign) -> None:
    """Runs all that is left under a progress bar; on anything but a terminal, one line a run."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    out = console(stderr=True)
    if not campaign.todo:
        return
    if not out.is_terminal:
        for number, record in enumerate(campaign.go(), 1):
            say(f"[{number}/{number + len(campaign.todo)}] {_line(record)}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True, refresh_per_second=1) as progress:
        task = progress.add_task("starting", total=len(campaign.todo))

        def listen(notice: object) -> None:
            step: Step = notice.step  # type: ignore[attr-defined]
            if notice.kind == "begin":  # type: ignore[attr-defined]
                progress.update(task, description=f"{step.trial.model} on {step.trial.engine}, block {step.block + 1}")

        for record in campaign.go(listen):
            progress.advance(task)
            progress.console.print(_line(record), highlight=False, markup=False)


def _line(record: Record) -> str:
    from timetrial.report.words import duration
    from timetrial.stats.intervals import process_value

    cell = record.cell
    name = f"{cell['model']} {cell['task']} on {cell['engine']}, {cell['placement']}, block {record.block + 1}"
    if record.outcome.ok and record.laps:
        return f"{name}: {duration(process_value(record.laps.seconds))} a step"
    return f"{name}: {record.outcome.kind}, {record.outcome.reason}"
