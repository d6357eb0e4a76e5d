"""`timetrial run`: carry out a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from timetrial.cli.shared import DEFAULT_RECORDS, AsJson, Records, explained

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A study file, or the name of a built-in study.")]
Engines = Annotated[
    list[str] | None, typer.Option("--engine", "-e", help="Only these engines; may be given several times.")
]
Models = Annotated[list[str] | None, typer.Option("--model", "-m", help="Only these models.")]
Repeat = Annotated[int | None, typer.Option("--repeat", min=1, max=1000, help="Processes for each cell.")]
ProfileName = Annotated[str | None, typer.Option("--profile", help="quick, normal or publish.")]
Budget = Annotated[
    str | None, typer.Option("--budget", help="Time for the whole study, as 20m or 1.5h: cheapest answers first.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Measure again what is already measured.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write an HTML report to this file.")]


def run(
    study: StudyName,
    engines: Engines = None,
    models: Models = None,
    repeat: Repeat = None,
    profile: ProfileName = None,
    budget: Budget = None,
    records: Records = DEFAULT_RECORDS,
    fresh: Fresh = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")] = False,
    report: Report = None,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", help="Also write how trainings go as event files into this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    r"""Carry out a study: every engine alone, proved equal first, in randomised blocks; resumes where it was.

    A study file names its question and its axes:

        study: widths
        models: \[libraries/mlp-2x25, libraries/mlp-2x200]
        engines: \[torch, jax]
        repeat: 5
    """
    with explained():
        from timetrial.cli.loading import asked_for
        from timetrial.cli.plan import show_plan
        from timetrial.cli.running import carry_out

        asked, trials = asked_for(study, engines=engines, models=models, repeat=repeat, profile=profile, budget=budget)
        if dry_run:
            show_plan(asked, trials, records, as_json)
        else:
            carry_out(asked, trials, records, fresh=fresh, as_json=as_json, report=report, tensorboard=tensorboard)
