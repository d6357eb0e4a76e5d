"""`timetrial profile`: where the milliseconds of a step go, engine by engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timetrial.cli.profile_shown import (
    By,
    Columns,
    Csv,
    Filters,
    Parquet,
    Pictures,
    Published,
    Report,
    Sort,
    Strict,
    Top,
    TraceFile,
    Wanted,
)
from timetrial.cli.run import Fresh
from timetrial.cli.shared import DEFAULT_RECORDS, FAILED, AsJson, BadRequest, Records, console, explained, print_json

if TYPE_CHECKING:
    from timetrial.profiling.gathered import Found

app = typer.Typer(invoke_without_command=True, no_args_is_help=True)
Side = "STUDY?engine=torch&task=train: the name or folder of a study, and after ? which of its cells"
LONGEST = 64  # name of a study


@app.callback()
def profile(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A model of the zoo, with options after ?.")
    ] = None,
    engines: Annotated[
        list[str] | None, typer.Option("--engine", "-e", help="Engines, with commas between; unless given, all there.")
    ] = None,
    tasks: Annotated[str, typer.Option("--task", "-t", help="train, infer, or train,infer.")] = "train",
    data: Annotated[str, typer.Option("--data", help="A dataset; `default` is the model's own.")] = "synthetic",
    samples: Annotated[str | None, typer.Option("--samples", help="Of the training data: a number, or 33%.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Of the recipe unless given.")] = None,
    placement: Annotated[str, typer.Option("--placement", "-p", help="cpu, cpu:THREADS or cuda:INDEX.")] = "cpu",
    precision: Annotated[str | None, typer.Option("--precision", help="float32, float64 or bfloat16.")] = None,
    loop: Annotated[str, typer.Option("--loop", help="step or fit.")] = "step",
    feed: Annotated[str, typer.Option("--feed", help="How batches come: resident, batch or loader.")] = "resident",
    compile_: Annotated[str, typer.Option("--compile", help="How the engine compiles.")] = "default",
    limits: Annotated[bool, typer.Option("--limits", help="Also measure what this machine can do at most.")] = False,
    fresh: Fresh = False,
    by: By = "layer",
    sort: Sort = "time",
    columns: Columns = None,
    filters: Filters = None,
    top: Top = None,
    published: Published = False,
    report: Report = None,
    pictures: Pictures = None,
    trace: TraceFile = None,
    csv: Csv = None,
    parquet: Parquet = None,
    strict: Strict = False,
    records: Records = DEFAULT_RECORDS,
    as_json: AsJson = False,
) -> None:
    """Trace steps of a model with each engine's own profiler, and show where their time goes.

    Rounds with and without the profiler take turns: its own cost is known.

    What was measured is kept, and shown again by `timetrial profile show`.
    """
    with explained():
        if context.invoked_subcommand:
            _nothing_before(context)
            return
        if model is None:
            raise BadRequest("name a model with --model (`timetrial models list`), or look at a study with `show`")
        from timetrial.cli.profile_shown import show

        wanted = Wanted(
            by, sort, columns, filters, top, published, report, pictures, trace, csv, parquet, strict, as_json
        )
        choice = wanted.choice
        content = _study(model, engines, tasks, data, samples, placement, limits)
        content["recipe"] = {k: v for k, v in {"batch": batch, "precision": precision}.items() if v is not None}
        content["settings"] = {"loop": loop, "feed": feed, "compile": compile_}
        show(wanted, choice, *_measured(content, records, fresh))


def _measured(content: dict[str, Any], records: Path, fresh: bool) -> tuple[Path, list[Found]]:
    from timetrial.cli.loading import trials_of
    from timetrial.cli.running import measure
    from timetrial.profiling.gathered import gather
    from timetrial.spec.study import parse_study

    study = parse_study(content, "command line")
    done = measure(study, trials_of(study), records, fresh).done
    place = records.absolute() / study.study
    return place, gather(place, done.values())


def _nothing_before(context: typer.Context) -> None:
    """What stands before `show` or `compare` would be taken for theirs and do nothing."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE":
            name = f"`timetrial profile {context.invoked_subcommand}`"
            raise BadRequest(
                f"{parameter.opts[0]} stands before {name}; give {name} first, and its own options after it"
            )


def _study(
    model: str, engines: list[str] | None, tasks: str, data: str, samples: str | None, placement: str, limits: bool
) -> dict[str, Any]:
    from timetrial.cli.loading import engines_asked

    found = {
        "study": study_name(model), "title": f"Where the time of a step goes: {model}", "models": [model],
        "engines": engines_asked(engines), "tasks": tasks.split(","), "data": data, "placements": [placement],
        "measure": ["time", "profile", *(["limits"] if limits else [])], "repeat": 1, "profile": "quick",
        "anchor": False,
    }  # fmt: skip
    if samples is not None:
        found["samples"] = int(samples) if samples.isdigit() else samples
    return found


def study_name(model: str) -> str:
    """`profile-profiling-cnn-stride-2`: what a folder may be called."""
    return f"profile-{re.sub(r'[^A-Za-z0-9._]+', '-', model).strip('-')}"[:LONGEST]


@app.command("show")
def show_profiles(
    study: Annotated[str, typer.Argument(metavar="STUDY", help=Side)],
    by: By = "layer",
    sort: Sort = "time",
    columns: Columns = None,
    filters: Filters = None,
    top: Top = None,
    published: Published = False,
    report: Report = None,
    pictures: Pictures = None,
    trace: TraceFile = None,
    csv: Csv = None,
    parquet: Parquet = None,
    strict: Strict = False,
    records: Records = DEFAULT_RECORDS,
    as_json: AsJson = False,
) -> None:
    """Show profiles that a study already has; several engines of the same work stand in one table."""
    with explained():
        from timetrial.cli.profile_shown import chosen, show

        wanted = Wanted(
            by, sort, columns, filters, top, published, report, pictures, trace, csv, parquet, strict, as_json
        )
        choice = wanted.choice
        show(wanted, choice, *chosen(study, records))


@app.command("compare")
def compare_profiles(
    base: Annotated[str, typer.Argument(metavar="BASE", help=Side)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="As BASE.")],
    top: Top = 20,
    force: Annotated[
        bool, typer.Option("--force", help="Compare also other machines and other tasks, under a banner.")
    ] = False,
    strict: Strict = False,
    records: Records = DEFAULT_RECORDS,
    as_json: AsJson = False,
) -> None:
    """Compare two profiles: what got faster or slower, appeared or vanished, and what that explains.

    Parts are matched by layer, phase and class, and of one engine by operation type too.
    """
    with explained():
        from timetrial.cli.profile_shown import compared_as_json, one, refused
        from timetrial.profiling.compare import PARTS, TYPES, compare, same_engine

        before, after = one(base, records), one(new, records)
        problems = refused(before, after)
        if problems and not force:
            raise BadRequest(f"not comparable: {'; '.join(problems)}; --force compares them all the same")
        views = (PARTS, TYPES) if same_engine(before.profile, after.profile) else (PARTS,)
        tables = [compare(before.profile, after.profile, by) for by in views]
        if as_json:
            print_json(compared_as_json(tables, problems))
        else:
            from timetrial.report.profiles import difference_table

            banner = f"Compared by force: {'; '.join(problems)}." if problems else ""
            console().print(difference_table(tables, top, banner))
        if strict and tables[0].problems:
            raise typer.Exit(FAILED)
