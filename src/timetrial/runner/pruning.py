"""What need not be tried: a larger cell after a smaller one ran out of memory or time. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from timetrial.records.record import Outcome
from timetrial.spec.trial import Trial


def smaller_that_failed(trial: Trial, failed: Iterable[tuple[Trial, Outcome]]) -> tuple[Trial, Outcome] | None:
    """A cell that is smaller along a monotone axis, equal in all else, and ran out of memory or time."""
    for other, outcome in failed:
        # With a larger batch, training takes fewer steps: of time, only the network's size says something.
        comparable = outcome.kind == "oom" or (outcome.kind == "timeout" and trial.recipe.batch == other.recipe.batch)
        if comparable and _is_larger(trial, other):
            return other, outcome
    return None


def skipped(smaller: Trial, outcome: Outcome) -> Outcome:
    words = "ran out of memory" if outcome.kind == "oom" else "did not finish in its time"
    name = f"{smaller.model}, batch {smaller.recipe.batch}"
    remedy = "where more memory has become free, --fresh tries both again"
    if outcome.limit:
        stopped = "memory" if outcome.limit.memory else "timeout"
        remedy = f"raise limits: {{{stopped}: …}}, and both are tried again"
    return Outcome(kind="skipped", reason=f"the smaller cell {name} already {words}", remedy=remedy)


def _is_larger(trial: Trial, other: Trial) -> bool:
    if _rest(trial) != _rest(other):
        return False
    mine, theirs = _sizes(trial), _sizes(other)
    return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))


def _rest(trial: Trial) -> tuple[object, ...]:
    """All that two sizes of one thing have in common; a family of networks differs in the numbers of its names."""
    recipe = trial.recipe.model_dump(mode="json", exclude={"batch"})
    return (
        re.sub(r"\d+", "#", trial.model), trial.engine, str(trial.placement), trial.task, trial.dataset,
        trial.settings, repr(recipe),
    )  # fmt: skip


def _sizes(trial: Trial) -> tuple[int, int, int]:
    network = trial.network
    return trial.recipe.batch, network.parameter_count(), network.multiply_adds
