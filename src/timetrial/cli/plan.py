"""`timetrial plan`: what a study would run, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.run import Budget, Engines, Models, ProfileName, Repeat, StudyName
from timetrial.cli.shared import DEFAULT_RECORDS, AsJson, Records, explained, print_json

if TYPE_CHECKING:
    from timetrial.spec.study import Study
    from timetrial.spec.trial import Trial

SHOWN = 40


def plan(
    study: StudyName,
    engines: Engines = None,
    models: Models = None,
    repeat: Repeat = None,
    profile: ProfileName = None,
    budget: Budget = None,
    records: Records = DEFAULT_RECORDS,
    every: Annotated[bool, typer.Option("--all", help="List every trial, however many there are.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the trials of a study, how many runs they take and about how long, and run nothing."""
    with explained():
        from timetrial.cli.loading import asked_for

        asked, trials = asked_for(study, engines=engines, models=models, repeat=repeat, profile=profile, budget=budget)
        show_plan(asked, trials, records, as_json, every)


def show_plan(study: Study, trials: Sequence[Trial], records: Path, as_json: bool, every: bool = False) -> None:
    from timetrial.report.words import duration
    from timetrial.runner.forecast import Forecast
    from timetrial.runner.profiles import processes

    forecast = Forecast(study)
    runs = len(trials) * processes(study)
    seconds = processes(study) * sum(forecast.seconds(trial) for trial in trials)
    if as_json:
        listed = [{"trial": trial.id, **trial.coordinates} for trial in trials]
        print_json({"study": study.study, "trials": listed, "runs": runs, "expected_seconds": seconds})
        return
    print(f"{study.study}: {study.title}" if study.title else study.study)
    print(
        f"{len(trials)} trials x {processes(study)} processes = {runs} runs, about {duration(seconds)} "
        f"with profile {study.profile}; records in {records / study.study}"
    )
    if study.budget is not None and study.budget < seconds:
        print(f"The budget is {duration(study.budget)}: the cheapest answers come first, as many as there is time for.")
    for axis in ("model", "engine", "placement", "task", "batch"):
        counts = Counter(str(trial.coordinates[axis]) for trial in trials)
        names = list(counts)
        more = f" … and {len(names) - 12} more" if len(names) > 12 else ""
        print(f"  {axis + 's' if axis != 'batch' else 'batches'}: {', '.join(names[:12])}{more}")
    _list(trials if every else trials[:SHOWN], len(trials))


def _list(trials: Sequence[Trial], total: int) -> None:
    for trial in trials:
        size = trial.network.parameter_count(trainable_only=True)
        print(
            f"{trial.id}  {trial.model}  {trial.task}  {trial.engine}  {trial.placement}  "
            f"batch {trial.recipe.batch}  {size:,} parameters"
        )
    if total > len(trials):
        print(f"… and {total - len(trials)} more (--all lists them)")
