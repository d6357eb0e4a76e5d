"""`timetrial engines`: which there are, adding, removing, checking."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.shared import FAILED, AsJson, console, explained, print_json, say

if TYPE_CHECKING:
    from timetrial.engines.environments import Environment
    from timetrial.engines.locate import Located

app = typer.Typer(help="The frameworks that can be measured on this machine.", no_args_is_help=True)
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="For example torch, originals or torch@2.9.1.")]


@app.command("list")
def list_engines(as_json: AsJson = False) -> None:
    """List every engine: version, where it is, and how to get what is missing."""
    with explained():
        from rich.table import Table

        from timetrial.engines.locate import installed

        found = installed()
        if as_json:
            print_json([_as_dict(located) for located in found])
            return
        table = Table(show_edge=False, pad_edge=False)
        for column in ("engine", "version", "found", "what it is", "remark"):
            table.add_column(column)
        for located in found:
            table.add_row(located.name, located.version or "-", located.kind, located.engine.summary, _remark(located))
        console().print(table)


def _remark(located: Located) -> str:
    """What is not there at all needs no more than the way to get it."""
    absent = located.kind == "missing" and not located.broken
    return " → ".join(part for part in (None if absent else located.problem, located.remedy) if part)


def _as_dict(located: Located) -> dict[str, object]:
    return {
        "engine": located.name,
        "version": located.version,
        "found": located.kind,
        "interpreter": str(located.interpreter) if located.interpreter else None,
        "versions": located.versions,
        "problem": located.problem,
        "remedy": located.remedy,
    }


@app.command()
def add(
    names: Names,
    python: Annotated[Path | None, typer.Option("--python", help="Interpreter to make the environment with.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Make it anew, even if it is good.")] = False,
    if_possible: Annotated[
        bool, typer.Option("--if-possible", help="Skip, and say so, where this machine lacks what it takes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the environment of engines from pinned packages, under the user's data folder.

    An environment serves a family: `torch` brings keras-torch with it, `originals` is Theano, TensorFlow 1 and Keras 2
    in CPython 3.6. `torch@2.9.1` makes another beside it.
    """
    with explained():
        from timetrial.engines.environments import add as make
        from timetrial.engines.environments import lacking
        from timetrial.engines.target import target

        for name in names:
            target(name)
        answers: list[dict[str, object]] = []
        for name in names:
            if if_possible and (reason := lacking(name, python)):
                say(f"{name}: SKIPPED; {reason}")
                answers.append({"name": name, "skipped": reason})
                continue
            environment = make(name, say, python, again)
            answers.append(_made(name, environment))
            if not as_json:
                print(f"{environment.name}: {', '.join(environment.serves)} in {environment.folder}")
            for problem, remedy in environment.broken.values():
                say(f"{problem} → {remedy}")
        if as_json:
            print_json(answers)


def _made(name: str, environment: Environment) -> dict[str, object]:
    broken = {engine: {"problem": why, "remedy": what} for engine, (why, what) in environment.broken.items()}
    return {
        "name": name,
        "environment": environment.name,
        "folder": environment.folder,
        "interpreter": environment.interpreter,
        "python": environment.python,
        "versions": environment.versions,
        "serves": environment.serves,
        "broken": broken,
        "skipped": None,
    }


@app.command()
def remove(names: Names, as_json: AsJson = False) -> None:
    """Remove the environments of engines."""
    with explained():
        from timetrial.engines.environments import remove as discard

        answers = [{"name": name, "removed": discard(name, say)} for name in names]
        if as_json:
            print_json(answers)


@app.command("doctor")
def check_engines(
    names: Annotated[list[str] | None, typer.Argument(help="Engines to check; all installed ones by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let each engine do a small real training step, and say what is wrong with those that cannot."""
    with explained():
        from timetrial.engines.doctor import check
        from timetrial.engines.locate import installed, locate

        chosen = [locate(name) for name in names] if names else [e for e in installed() if e.interpreter or e.broken]
        results = [check(located) for located in chosen]
        if as_json:
            print_json(results)
        else:
            for health in results:
                state = f"works, {health.seconds:.1f} s" if health.ok and health.seconds else "BROKEN"
                remark = " → ".join(part for part in (health.problem, health.remedy) if part)
                print(f"{health.name}: {state}{': ' + remark if remark else ''}")
        if not all(health.ok for health in results):
            raise typer.Exit(FAILED)
