"""`timetrial tune`: propose changes, try each beside the defaults, keep what is proved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timetrial.cli.shared import (
    DEFAULT_RECORDS,
    FAILED,
    AsJson,
    BadRequest,
    Records,
    console,
    explained,
    print_json,
    say,
)

if TYPE_CHECKING:
    from timetrial.meters.hardware import Machine
    from timetrial.profiling.profile import Profile
    from timetrial.records.record import Record
    from timetrial.spec.study import Study
    from timetrial.spec.trial import Task, Trial
    from timetrial.tuning.proposals import Proposal
    from timetrial.tuning.search import Tuned
    from timetrial.tuning.situation import Situation

EPOCHS = 2  # of the short training
SAMPLES = 4000  # at most
OPERATIONS = 5e11  # that it may take, so that it is short for large networks too
OWN = "own"  # as data: the model's own where it is here

Known = tuple[tuple[str, str], ...]


def tune(
    model: Annotated[str, typer.Option("--model", "-m", help="A model of the zoo; `timetrial models list`.")],
    engine: Annotated[str, typer.Option("--engine", "-e", help="The engine that is to be tuned.")],
    task: Annotated[str, typer.Option("--task", help="train, infer, or both with a comma.")] = "train,infer",
    data: Annotated[str, typer.Option("--data", help="A dataset; the model's own where it is here.")] = OWN,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Keeps the batch as it is.")] = None,
    placement: Annotated[
        str | None,
        typer.Option("--placement", "-p", help="Where it runs; further ones after a comma may be tried. All cores."),
    ] = None,
    feed: Annotated[str, typer.Option("--feed", help="resident, batch or loader: how batches come.")] = "resident",
    engines: Annotated[str, typer.Option("--engines", help="Other engines to consider, with commas.")] = "",
    variants: Annotated[bool, typer.Option("--variants", help="Try smaller networks of the family too.")] = False,
    budget: Annotated[str, typer.Option("--budget", help="Time for all of it, as 10m or 1h.")] = "10m",
    drop: Annotated[
        float, typer.Option("--accuracy-drop", min=0, help="Points of accuracy that a change may cost.")
    ] = 2.0,
    evidence: Annotated[
        str, typer.Option("--evidence", help="A study with profiles of this cell: rules that cannot help are left out.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be tried, and run nothing.")] = False,
    records: Records = DEFAULT_RECORDS,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Try what might make a workload faster, each change beside the framework's defaults, and keep what is proved.

    Outputs must still agree and a short training must learn as well. What was kept is combined and proved in fresh
    runs; a study to copy comes at the end. The same command goes on where it was.
    """
    with explained():
        from timetrial.cli.loading import data_ready
        from timetrial.meters.hardware import inventory
        from timetrial.tuning.rules import propose

        machine = inventory()
        study, others = _study(model, engine, task, data, batch, placement, feed, budget, machine)
        bases = _bases(study)
        rivals = tuple(filter(None, (name.strip() for name in engines.split(","))))
        _installed(study.engines[0], *rivals)
        data_ready(list(bases.values()))
        fixed = frozenset(filter(None, ("recipe.batch" if batch else "",)))
        known = _situation(bases, machine, fixed, others, rivals, variants, evidence, records)
        proposals, without = propose(known)
        without = (*without, *(("evidence", reason) for reason in known.unusable))
        if not any(one.tried for one in proposals):
            raise BadRequest("there is nothing to propose: " + "; ".join(f"{rule}: {why}" for rule, why in without))
        if dry_run:
            _plan(proposals, without, as_json)
            return
        tuned = _search(bases, proposals, study.budget or 0.0, drop, records, as_json)
        _present(tuned, proposals, without, as_json)
        if all(row.measured is None or not row.measured.ok for row in tuned.findings):
            say("none of the proposals could be measured; the table says why")
            raise typer.Exit(FAILED)


# --- the question -----------------------------------------------------------------------------------------------------


def _study(
    model: str, engine: str, task: str, data: str, batch: int | None, placement: str | None, feed: str, budget: str,
    machine: Machine,
) -> tuple[Study, list[str]]:  # fmt: skip
    """The framework's defaults as a study, and the other placements that may be tried."""
    from timetrial.spec.study import parse_study

    places = [word.strip() for word in placement.split(",")] if placement else _all_cores(machine)
    content = {
        "study": "tune", "models": [model], "engines": [engine], "tasks": [word.strip() for word in task.split(",")],
        "placements": places[:1], **_data(model, data), "budget": budget,
        "recipe": {"epochs": EPOCHS, **({"batch": batch} if batch else {})},
        "settings": {"allocator": "as-shipped", "feed": feed},
    }  # fmt: skip
    return parse_study(content, "command line"), places[1:]


def _all_cores(machine: Machine) -> list[str]:
    """As a framework takes them by itself; fewer are worth a try."""
    count = len(machine.cpu.allowed or ()) or os.cpu_count() or 1
    return [f"cpu:{threads}" for threads in dict.fromkeys((count, max(count // 2, 1), 1))]


def _data(model: str, data: str) -> dict[str, Any]:
    """The model's own dataset in the form that it was published with, where it is here; else random samples."""
    from timetrial import zoo
    from timetrial.data.registry import find, is_here

    if data != OWN:
        return {"data": data}
    found = zoo.find(model)
    if not found.dataset or not is_here(find(found.dataset)):
        return {"data": "synthetic"}
    return {"data": found.dataset, **({"preprocessing": ["published"]} if found.preprocessing else {})}


def _bases(study: Study) -> dict[Task, Trial]:
    """With as many samples as the short training may have."""
    from timetrial.cli.loading import trials_of
    from timetrial.spec.operations import operations
    from timetrial.tuning.proposals import replaced

    found: dict[Task, Trial] = {}
    for trial in trials_of(study):
        most = OPERATIONS / EPOCHS / max(operations(trial.network).train, 1)
        samples = min(SAMPLES, max(int(most), 8 * trial.recipe.batch))
        found[trial.task] = replaced(trial, samples=samples)
    return found


def _installed(*engines: str) -> None:
    from timetrial.engines.locate import locate

    for name in engines:
        located = locate(name)
        if located.interpreter is None:
            raise BadRequest(f"{located.problem or name}; {located.remedy}")


def _situation(
    bases: dict[Task, Trial], machine: Machine, fixed: frozenset[str], others: list[str], rivals: tuple[str, ...],
    variants: bool, evidence: str, records: Path,
) -> Situation:  # fmt: skip
    from timetrial.spec.placement import Placement
    from timetrial.tuning.situation import Situation

    places = tuple(map(Placement.parse, others))
    return Situation(bases, machine, fixed, places, rivals, variants, _profiles(bases, evidence, records))


def _profiles(bases: Mapping[Task, Trial], evidence: str, records: Path) -> dict[Task, Profile]:
    if not evidence:
        return {}
    from timetrial.profiling.profile import load
    from timetrial.records.store import Store

    found: dict[Task, Profile] = {}
    for record in Store(records).records(evidence):
        for task, base in bases.items():
            cell = record.cell
            if record.profile and (cell["engine"], cell["model"], cell["task"]) == (base.engine, base.model, task):
                found[task] = load(records / evidence, record)
    if not found:
        raise BadRequest(f"study '{evidence}' in {records} has no profile of this model on this engine")
    return found


# --- the search -------------------------------------------------------------------------------------------------------


def _search(
    bases: Mapping[Task, Trial], proposals: tuple[Proposal, ...], budget: float, drop: float, records: Path, quiet: bool
) -> Tuned:
    from timetrial.tuning.bench import Campaigns, stage_name
    from timetrial.tuning.proposals import changed
    from timetrial.tuning.search import Question, Search

    names = {base.id: "defaults" for base in bases.values()}
    for one in proposals:
        for task in one.tasks:
            if one.tried and task in bases:
                names[changed(bases[task], one).id] = one.name

    def told(stage: str, record: Record) -> None:
        from timetrial.cli.running import line

        elapsed = bench.now() - started
        say(f"[{elapsed:.0f} s of {budget:.0f}] {names.get(record.trial, 'combination')}: {line(record)}")

    bench = Campaigns(stage_name(list(bases.values())), records, budget, told)
    started = bench.now()
    return Search(Question(bases, proposals, budget, drop), bench, say).go()


def _plan(proposals: tuple[Proposal, ...], without: Known, as_json: bool) -> None:
    if as_json:
        print_json({"proposals": proposals, "not_proposed": dict(without)})
        return
    for one in proposals:
        gain = f", {one.predicted:.1f}x fewer operations" if one.predicted else ""
        print(f"{one.rule}: {one.name} ({', '.join(one.tasks)}{gain}): {one.why}{'' if one.tried else ' [--variants]'}")
    for rule, reason in without:
        print(f"not proposed, {rule}: {reason}")


def _present(tuned: Tuned, proposals: tuple[Proposal, ...], without: Known, as_json: bool) -> None:
    from timetrial.report import tuning
    from timetrial.tuning.snippet import ready

    shown = [one for one in proposals if not one.tried]
    snippets = ready(tuned.ready)
    if as_json:
        print_json({**tuning.as_json(tuned, shown, without), "studies": snippets})
        return
    out = console()
    base = next(iter(tuned.bases.values()))
    what = f"{base.model} on {base.engine}, batch {base.recipe.batch}, {base.placement}, {base.dataset}"
    out.print(what, style="bold", markup=False)
    out.print(tuning.table(tuned))
    for line in tuning.notes(tuned, shown, without):
        out.print(line, style="dim", markup=False)
    out.print()
    for line in tuning.answers(tuned):
        out.print(line, markup=False)
    for text in snippets:
        out.print()
        out.print(text.rstrip(), markup=False, soft_wrap=True)
