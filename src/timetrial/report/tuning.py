"""What tuning found, as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from timetrial.report import words
from timetrial.spec.trial import Task
from timetrial.stats.intervals import Ratio, interval
from timetrial.stats.verdicts import Verdict
from timetrial.tuning.judging import Finding
from timetrial.tuning.measured import Measured
from timetrial.tuning.proposals import Proposal
from timetrial.tuning.search import Tuned

DEFAULTS = "defaults of the framework"
TITLES = {"train": "training", "infer": "inference"}
_COLOURS = {"kept": "green", "tied": "cyan", "rejected": "red", "undecided": "yellow", "not tried": "dim"}


def table(tuned: Tuned) -> Table:
    """A row for each change, the defaults first."""
    found = Table(show_edge=False, pad_edge=False, header_style="bold")
    tasks = tuple(tuned.bases)
    heads = ("change", *(TITLES[task] for task in tasks), "output difference", "memory", "accuracy", "verdict")
    for head in heads:
        found.add_column(head, justify="left" if head in ("change", "verdict") else "right")
    first = tuned.defaults[tasks[0]]
    steps = [_step(tuned, task) for task in tasks]
    found.add_row(DEFAULTS, *steps, _forward(first), words.memory(first.memory), _accuracy(first), "")
    for rows in by_change(tuned.findings):
        found.add_row(*_row(rows, tasks))
    return found


def by_change(findings: Sequence[Finding]) -> list[list[Finding]]:
    """A change's findings of all tasks together, in the order in which they were first tried."""
    found: dict[str, list[Finding]] = {}
    for one in findings:
        found.setdefault(one.candidate.name, []).append(one)
    return list(found.values())


def _row(rows: Sequence[Finding], tasks: Sequence[Task]) -> list[str]:
    by_task = {row.candidate.task: row for row in rows}
    first = next(iter(by_task.values()))
    speeds = [speedup(by_task[task].verdict) if task in by_task else words.NOTHING for task in tasks]
    memory = next((row.measured.memory for row in rows if row.measured and row.measured.memory), None)
    accuracy = next((_accuracy(row.measured) for row in rows if row.measured), words.NOTHING)
    return [
        escape(first.candidate.name), *speeds, _difference(rows), words.memory(memory), accuracy, _verdicts(rows),
    ]  # fmt: skip


def _verdicts(rows: Sequence[Finding]) -> str:
    said = [_coloured(row) for row in rows]
    if len(set(said)) == 1:
        return said[0]
    return "; ".join(f"{row.candidate.task}: {text}" for row, text in zip(rows, said, strict=True))


def _coloured(row: Finding) -> str:
    return f"[{_COLOURS[row.word]}]{escape(verdict(row))}[/]"


def verdict(row: Finding) -> str:
    """`kept`, `rejected, slower: 1.3x the time`, `undecided, 4 more runs would decide`."""
    if row.word == "undecided" and row.verdict and row.verdict.more:
        return f"undecided, {row.verdict.more} more run{'s'[: row.verdict.more > 1]} would decide"
    return f"{row.word}, {row.because}" if row.because else row.word


def speedup(found: Verdict | None) -> str:
    return words.NOTHING if found is None else ratio(found.speedup)


def ratio(found: Ratio) -> str:
    """`1.95x [1.73, 2.56]`."""
    if found.low is None or found.high is None:
        return f"{found.value:.2f}x"
    return f"{found.value:.2f}x [{found.low:.2f}, {found.high:.2f}]"


def _step(tuned: Tuned, task: Task) -> str:
    batch = tuned.bases[task].recipe.batch
    return words.timing(interval([batch * seconds for seconds in tuned.defaults[task].seconds]))


def _difference(rows: Sequence[Finding]) -> str:
    """From the default's predictions; for what is another function there is none."""
    known = next((row.difference for row in rows if row.difference is not None), None)
    return words.NOTHING if known is None else error(known)


def error(size: float) -> str:
    return f"{size:.1e}" if size else "none"


def _forward(run: Measured) -> str:
    """Of the defaults themselves, from the float64 reference."""
    forward = run.equivalence.forward if run.equivalence else None
    return words.NOTHING if forward is None else f"{forward:.1e} (float64)"


def _accuracy(run: Measured | None) -> str:
    if run is None:
        return words.NOTHING
    return words.percent(run.accuracy) if run.accuracy is not None else f"mse {run.error:.3g}" if run.error else "-"


def notes(tuned: Tuned, shown: Sequence[Proposal], without: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Under the table: the noise, what the words mean, what was not proposed and not applied."""
    for task, least in tuned.floors.items():
        yield f"{TITLES[task].capitalize()}. {words.floor(least)}"
    yield (
        "Speed-up: time of the defaults over time with the change, by the sample, with its interval. Output "
        "difference: of the predictions, from the defaults' with the same weights and inputs."
    )
    for rule, reason in without:
        yield f"Not proposed, {rule}: {reason}."
    for one in shown:
        yield (
            f"Not applied, {one.name}: {one.predicted or 0:.1f}x fewer operations, and another function "
            "(--variants applies it)."
        )


def answers(tuned: Tuned) -> Iterator[str]:
    """Of each task: what was put together and what it proved to bring over the defaults."""
    for task in tuned.bases:
        found = tuned.proved.get(task)
        if found is None:
            kept = any(row.word == "kept" and row.candidate.task == task for row in tuned.findings)
            why = "the budget did not reach the proof" if kept else "nothing was kept"
            yield f"{TITLES[task].capitalize()}: {why}; the defaults stay."
            continue
        runs = len(found.measured.seconds) if found.measured else 0
        lead = f"{TITLES[task].capitalize()}: {found.candidate.name}: {speedup(found.verdict)} over the defaults"
        how = f"{_times(tuned, found)}in {runs} fresh interleaved processes of each"
        end = "proved" if found.word == "kept" else f"{verdict(found)}; the defaults stay"
        if found.word == "kept" and found.difference is not None:
            end += f", output difference {error(found.difference)}"
        yield f"{lead}, {how}: {end}."


def _times(tuned: Tuned, found: Finding) -> str:
    """Of a step with the combination and without, where both take a step over the same batch."""
    task, run = found.candidate.task, found.measured
    batch, default = tuned.bases[task].recipe.batch, tuned.proof_defaults[task]
    if run is None or not run.ok or found.candidate.trial.recipe.batch != batch:
        return ""
    now, before = (words.duration(batch * interval(one.seconds).value) for one in (run, default))
    return f"{now} a step instead of {before} "


def as_json(tuned: Tuned, shown: Sequence[Proposal], without: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        "defaults": tuned.defaults,
        "floors": tuned.floors,
        "changes": [_plain(row) for row in tuned.findings],
        "defaults_beside": tuned.proof_defaults,
        "combinations": {task: _plain(row) for task, row in tuned.proved.items()},
        "not_applied": shown,
        "not_proposed": dict(without),
        "seconds": tuned.seconds,
    }


def _plain(row: Finding) -> dict[str, Any]:
    return {
        "change": row.candidate.name,
        "task": row.candidate.task,
        "trial": row.candidate.trial.id,
        "changes": dict(change for one in row.candidate.proposals for change in one.changes),
        "verdict": row.word,
        "because": row.because,
        "speedup": row.verdict.speedup if row.verdict else None,
        "more": row.verdict.more if row.verdict else None,
        "output_difference": row.difference,
        "measured": row.measured,
    }
