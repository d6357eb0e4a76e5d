"""`timetrial verify`: the equivalence gate on its own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.shared import FAILED, AsJson, console, explained, print_json

if TYPE_CHECKING:
    from timetrial.engines.locate import Located
    from timetrial.runner.gate import Gate, Judged
    from timetrial.spec.trial import Trial

STAGES = ("activation", "output", "loss", "gradient", "step")


def verify(
    model: Annotated[str, typer.Option("--model", "-m", help="A model of the zoo; `timetrial models list`.")],
    engines: Annotated[
        list[str] | None, typer.Option("--engines", "-e", help="An engine, several times; or `all` (installed ones).")
    ] = None,
    precision: Annotated[str, typer.Option("--precision", help="float32, float64 or bfloat16.")] = "float32",
    placement: Annotated[str, typer.Option("--placement", "-p", help="cpu, cpu:THREADS or cuda:INDEX.")] = "cpu",
    loop: Annotated[str, typer.Option("--loop", help="step or fit.")] = "step",
    seed: Annotated[int, typer.Option("--seed", min=0)] = 1,
    layers: Annotated[bool, typer.Option("--layers", help="Show every array that was compared.")] = False,
    as_json: AsJson = False,
) -> None:
    """Prove that engines compute the same function: outputs of every layer, loss, gradients, five optimiser steps.

    Each is compared with a float64 reference from the same weights on the same batches.
    """
    with explained():
        from timetrial.cli.loading import trials_of
        from timetrial.engines.locate import locate
        from timetrial.meters.hardware import inventory
        from timetrial.runner.gate import Gate
        from timetrial.runner.process import Bounds
        from timetrial.spec.study import parse_study

        content = {
            "study": "verify", "models": [model], "engines": _chosen(engines), "placements": [placement],
            "recipe": {"precision": precision}, "settings": {"loop": loop}, "seed": seed,
        }  # fmt: skip
        trials = trials_of(parse_study(content, "command line"))
        results = []
        with tempfile.TemporaryDirectory(prefix="timetrial-verify-") as folder:
            gate = Gate(Path(folder), inventory(), Bounds(timeout=900))
            for trial in trials:
                located = locate(trial.engine)
                results.append((trial, located, _judge(gate, trial, located)))
        if as_json:
            print_json([_as_dict(*result) for result in results])
        else:
            _show(results, layers)
        if not all(judged.outcome.kind in _fine(engines) for _, _, judged in results):
            raise typer.Exit(FAILED)


def _fine(asked: list[str] | None) -> tuple[str, ...]:
    """Among all engines one that has no such layer is no failure; one that was named is."""
    return ("ok", "unsupported") if not asked or asked == ["all"] else ("ok",)


def _chosen(engines: list[str] | None) -> list[str]:
    from timetrial.engines.locate import installed

    if engines and engines != ["all"]:
        return [name for given in engines for name in given.split(",")]
    found = [located.name for located in installed() if located.interpreter and located.engine.ranked]
    if not found:
        from timetrial.cli.shared import Failed

        raise Failed("no engine is installed; `timetrial engines add torch tensorflow jax` installs those of today")
    return found


def _judge(gate: Gate, trial: Trial, located: Located) -> Judged:
    from timetrial.records.record import Outcome
    from timetrial.runner.gate import Judged

    if located.interpreter is None:
        return Judged(Outcome(kind="missing", reason=located.problem or "", remedy=located.remedy or ""))
    return gate.judge(trial, located)


def _show(results: list[tuple[Trial, Located, Judged]], layers: bool) -> None:
    from rich.table import Table

    network = results[0][0].network
    out = console()
    out.print(
        f"{results[0][0].model}: {network.parameter_count(trainable_only=True):,} parameters; worst errors relative "
        "to a float64 reference, same weights, same batches"
    )
    table = Table(show_edge=False, pad_edge=False)
    for name in ("engine", "version", "verdict", "forward", "gradients", "after 5 steps", "remark"):
        table.add_column(name)
    for trial, located, judged in results:
        table.add_row(trial.engine, located.version, *_cells(judged))
    out.print(table)
    if layers:
        for trial, _, judged in results:
            _show_checks(trial, judged)


def _cells(judged: Judged) -> list[str]:
    verdict = {"ok": "[green]same function[/]", "wrong": "[bold red]WRONG[/]"}
    word = verdict.get(judged.outcome.kind, f"[yellow]{judged.outcome.kind}[/]")
    if judged.proof is None:
        return [word, "-", "-", "-", f"{judged.outcome.reason} {judged.outcome.remedy}".strip()]
    proof = judged.proof
    forward = max(proof.worst("activation"), proof.worst("output"))
    numbers = [f"{value:.1e}" for value in (forward, proof.worst("gradient"), proof.worst("step"))]
    remark = judged.outcome.reason or "; ".join(judged.differences)
    return [word, *numbers, remark]


def _show_checks(trial: Trial, judged: Judged) -> None:
    from rich.table import Table

    if judged.proof is None:
        return
    table = Table(title=trial.engine, title_justify="left", show_edge=False, pad_edge=False)
    for name in ("stage", "array", "error", "allowed", ""):
        table.add_column(name)
    for check in judged.proof.checks:
        mark = check.note or ("" if check.passed else "FAILS")
        table.add_row(check.stage, check.name, f"{check.error:.1e}", f"{check.tolerance:.1e}", mark)
    console().print(table)


def _as_dict(trial: Trial, located: Located, judged: Judged) -> dict[str, object]:
    return {
        "engine": trial.engine,
        "version": located.version,
        "outcome": judged.outcome,
        "summary": judged.summary(),
        "checks": judged.proof.checks if judged.proof else [],
        "differences": judged.differences,
    }
