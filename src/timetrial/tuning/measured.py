"""What the runs of one trial came to, as far as tuning asks: times by the sample, memory, accuracy, proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from timetrial.records.choice import counted
from timetrial.records.digest import MEMORY
from timetrial.records.record import TIMED, Equivalence, Outcome, Record
from timetrial.spec.trial import Trial
from timetrial.stats.intervals import process_value

NOT_RUN = Outcome(kind="skipped", reason="the budget did not reach it", remedy="give the same command again")


@dataclass(frozen=True)
class Measured:
    """`seconds` are of a sample, for each process in the order of the blocks; none where a run failed. `twin`: the same
    trial under its second name."""

    outcome: Outcome
    seconds: tuple[float, ...] = ()
    twin: tuple[float, ...] = ()
    memory: int | None = None  # bytes, peak
    accuracy: float | None = None  # after the short training
    error: float | None = None  # mean squared, of a regression
    equivalence: Equivalence | None = None

    @property
    def ok(self) -> bool:
        return self.outcome.ok and bool(self.seconds)


def measured(trial: Trial, records: Iterable[Record]) -> Measured:
    runs = sorted((r for r in counted(records) if r.trial == trial.id), key=lambda run: run.block)
    if not runs:
        return Measured(NOT_RUN)
    bad = next((run.outcome for run in runs if not run.outcome.ok and run.role in TIMED), None)
    trained = next((run.training for run in runs if run.training), None)
    return Measured(
        outcome=bad or runs[0].outcome,
        seconds=() if bad else _seconds(trial, runs, "cell"),
        twin=() if bad else _seconds(trial, runs, "twin"),
        memory=_memory(runs),
        accuracy=trained.accuracy if trained else None,
        error=trained.mse if trained else None,
        equivalence=next((run.equivalence for run in runs if run.equivalence), None),
    )


def _seconds(trial: Trial, runs: list[Record], role: str) -> tuple[float, ...]:
    return tuple(process_value(run.laps.seconds) / trial.recipe.batch for run in runs if run.laps and run.role == role)


def _memory(runs: list[Record]) -> int | None:
    found = ([run.memory[name] for run in runs if name in run.memory] for name, _ in MEMORY)
    return next((max(values) for values in found if values), None)
