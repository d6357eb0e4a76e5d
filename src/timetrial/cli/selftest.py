"""`timetrial selftest`: how small a difference this machine can show, now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.shared import (
    DEFAULT_RECORDS,
    FAILED,
    AsJson,
    BadRequest,
    Failed,
    Records,
    explained,
    print_json,
    say,
)

if TYPE_CHECKING:
    from timetrial.records.record import Record

CANDIDATES = ("torch", "jax", "tensorflow")  # the first that is installed
MODEL = "quick/mlp"
MOST = 1000  # processes; the budget ends it


def selftest(
    budget: Annotated[str, typer.Option("--budget", help="Time for the test, as 90s or 5m.")] = "2m",
    engine: Annotated[str | None, typer.Option("--engine", "-e", help="The engine to do it with.")] = None,
    records: Records = DEFAULT_RECORDS,
    as_json: AsJson = False,
) -> None:
    """Measure one cell under two names on this machine now: what is seen between them is noise.

    Says the smallest difference that a study could show here in one, five and twenty minutes, with the evidence.
    """
    with explained():
        from timetrial.report.selftest import selftest as judge
        from timetrial.report.selftest import sentences

        name = engine or _installed()
        made = _measure(name, budget, records)
        found = judge(made)
        if found is None:
            raise _nothing(made, budget)
        if as_json:
            print_json({"engine": name, "model": MODEL, "passed": found.passed, **_fields(found)})
        else:
            print("\n".join(sentences(found)))
        if not found.passed:
            raise typer.Exit(FAILED)


def _installed() -> str:
    from timetrial.engines.locate import locate

    for name in CANDIDATES:
        if locate(name).interpreter is not None:
            return name
    raise BadRequest(f"none of {', '.join(CANDIDATES)} is installed; add one: timetrial engines add {CANDIDATES[0]}")


def _measure(engine: str, budget: str, records: Path) -> list[Record]:
    from timetrial.cli.loading import trials_of
    from timetrial.runner.campaign import Campaign
    from timetrial.spec.study import parse_study

    asked = {"study": "selftest", "models": [MODEL], "engines": [engine], "profile": "quick", "repeat": MOST}
    study = parse_study({**asked, "budget": budget, "stopping": "fixed"}, "selftest")
    made: list[Record] = []
    for record in Campaign(study, trials_of(study), records, fresh=True).go():
        made.append(record)
        if len(made) % 10 == 0:
            say(f"{len(made)} processes measured")
    return made


def _nothing(made: list[Record], budget: str) -> Exception:
    failed = next((record.outcome for record in made if not record.outcome.ok), None)
    if failed is not None:
        return Failed(f"the cell could not be measured: {failed.kind}, {failed.reason}; {failed.remedy}")
    return BadRequest(f"{budget} is too short for two processes of each; give it more with --budget")


def _fields(found: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(found)  # type: ignore[call-overload, no-any-return]
