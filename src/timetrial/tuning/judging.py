"""Kept, tied, rejected or undecided: what the runs say of each proposal, for training and for inference apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from timetrial.spec.trial import Task, Trial
from timetrial.stats.floor import Floor, floor
from timetrial.stats.stopping import guarded
from timetrial.stats.verdicts import Verdict, holm
from timetrial.tuning.measured import Measured
from timetrial.tuning.proposals import Proposal

POINTS = 2.0  # of accuracy after the short training: who loses more is rejected
ERROR = 0.1  # of the mean squared error, relative, where there is no accuracy
Word = Literal["kept", "tied", "rejected", "undecided", "not tried"]
Seen = Mapping[str, Measured]  # by trial


@dataclass(frozen=True)
class Candidate:
    """Proposals together on one task, and the trial that they make of the default."""

    proposals: tuple[Proposal, ...]
    task: Task
    trial: Trial

    @property
    def name(self) -> str:
        return " + ".join(proposal.name for proposal in self.proposals)


@dataclass(frozen=True)
class Finding:
    """What is known of a candidate. `because`: why it was rejected, or not tried."""

    candidate: Candidate
    word: Word
    because: str = ""
    verdict: Verdict | None = None  # against the default
    measured: Measured | None = None
    difference: float | None = None  # of its predictions from the default's

    @property
    def speedup(self) -> float:
        return self.verdict.speedup.value if self.verdict else 0.0


def floors(bases: Mapping[Task, Trial], seen: Seen) -> dict[Task, Floor]:
    """By how much the default differs from itself."""
    pairs = {task: seen[trial.id] for task, trial in bases.items() if trial.id in seen}
    return {task: floor(found.seconds, found.twin) for task, found in pairs.items()}


def judge(
    candidates: Sequence[Candidate], bases: Mapping[Task, Trial], seen: Seen, looks: int, points: float = POINTS
) -> list[Finding]:
    """All candidates of a task share one error; `looks` is how often the search may look at them."""
    found: list[Finding] = []
    for task, base in bases.items():
        mine = [candidate for candidate in candidates if candidate.task == task]
        default, least = seen[base.id], floors(bases, seen)[task].value
        times = {one: seen[one.trial.id] for one in mine if one.trial.id in seen and seen[one.trial.id].ok}
        verdicts = holm({one: _pair(times[one], default) for one in times}, least, guarded(looks))
        found += [_finding(one, seen.get(one.trial.id), default, verdicts.get(one), points) for one in mine]
    return found


def _pair(variant: Measured, default: Measured) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of the same blocks: later ones of the default tell nothing of a variant that had left by then."""
    count = min(len(variant.seconds), len(default.seconds))
    return variant.seconds[:count], default.seconds[:count]


def _finding(
    candidate: Candidate, run: Measured | None, default: Measured, verdict: Verdict | None, points: float
) -> Finding:
    if run is None or run.outcome.kind == "skipped":
        return Finding(candidate, "not tried", run.outcome.reason if run else "the budget did not reach it")
    if not run.outcome.ok or verdict is None:
        reason = f"{run.outcome.kind}: {run.outcome.reason}" if run.outcome.reason else run.outcome.kind
        return Finding(candidate, "rejected", reason, measured=run)
    if worse := worse_by(run, default, points):
        return Finding(candidate, "rejected", worse, verdict, run)
    words: dict[str, tuple[Word, str]] = {
        "faster": ("kept", ""),
        "same": ("tied", ""),
        "undecided": ("undecided", ""),
        "slower": ("rejected", f"slower: {1 / verdict.speedup.value:.2f}x the time"),
    }
    return Finding(candidate, *words[verdict.word], verdict, run)


def worse_by(run: Measured, default: Measured, points: float) -> str:
    """In words, where the short training with it comes out worse than with the default by more than is allowed."""
    if run.accuracy is not None and default.accuracy is not None:
        lost = 100 * (default.accuracy - run.accuracy)
        return f"accuracy falls by {lost:.1f} points, {points:g} are allowed" if lost > points else ""
    if run.error is not None and default.error:
        more = run.error / default.error - 1
        return f"the error grows by {more:.0%}, {ERROR:.0%} are allowed" if more > ERROR else ""
    return ""
