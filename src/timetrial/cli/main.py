"""`timetrial`: the entry point."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from timetrial import __version__
from timetrial.cli import (
    compare,
    data,
    doctor,
    engines,
    models,
    plan,
    profile,
    quick,
    run,
    selftest,
    show,
    tune,
    verify,
)

# Idle threads of a linear-algebra library spin for a while after each call; beside an engine under test they must not.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

app = typer.Typer(
    name="timetrial",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure neural-network training and inference across frameworks: proved equal first, compared then.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"timetrial {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if debug:
        os.environ["TIMETRIAL_DEBUG"] = "1"


app.command()(quick.quick)
app.command()(plan.plan)
app.command()(run.run)
app.command()(show.show)
app.command()(compare.compare)
app.command()(tune.tune)
app.command()(verify.verify)
app.add_typer(profile.app, name="profile")
app.add_typer(models.app, name="models")
app.add_typer(engines.app, name="engines")
app.add_typer(data.app, name="data")
app.command()(doctor.doctor)
app.command()(selftest.selftest)


def run_app() -> None:
    app(prog_name="timetrial")
