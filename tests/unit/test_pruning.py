"""A larger cell is skipped after a smaller one ran out of memory or time, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_study import trials
from timetrial.records.record import Limit, Outcome
from timetrial.runner.pruning import skipped, smaller_that_failed
from timetrial.spec.trial import Trial

OOM, TIMEOUT = Outcome(kind="oom", reason="full"), Outcome(kind="timeout", reason="late")


def by_batch(*batches: int, **changes: Any) -> list[Trial]:
    return trials(vary={"recipe.batch": list(batches)}, **changes)


def test_a_larger_batch_is_skipped_after_a_smaller_ran_out_of_memory() -> None:
    small, middle, large = by_batch(32, 64, 128)
    failed = [(middle, OOM)]
    assert smaller_that_failed(large, failed) == (middle, OOM)
    assert smaller_that_failed(small, failed) is None
    assert smaller_that_failed(middle, failed) is None


@pytest.mark.parametrize("kind", ["crash", "wrong", "missing", "diverged", "unsupported", "invalid"])
def test_only_memory_and_time_are_monotone(kind: Any) -> None:
    small, large = by_batch(32, 64)
    assert smaller_that_failed(large, [(small, Outcome(kind=kind))]) is None


def test_another_engine_or_task_may_still_do_it() -> None:
    small, large = by_batch(32, 64)
    for change in ({"engine": "jax"}, {"task": "infer" if small.task == "train" else "train"}, {"dataset": "other"}):
        assert smaller_that_failed(large, [(small.model_copy(update=change), OOM)]) is None


def test_more_samples_a_step_may_be_done_in_less_time_altogether() -> None:
    """Training over all the data takes fewer steps with a larger batch, so time is not monotone along it."""
    small, large = by_batch(32, 64)
    assert smaller_that_failed(large, [(small, TIMEOUT)]) is None


def test_the_reason_names_the_smaller_cell_and_the_remedy() -> None:
    small, _ = by_batch(32, 64)
    outcome = skipped(small, OOM)
    assert outcome.kind == "skipped"
    assert small.model in outcome.reason and "batch 32" in outcome.reason and "ran out of memory" in outcome.reason


@pytest.mark.parametrize(
    ("smaller", "remedy"),
    [
        (
            TIMEOUT.model_copy(update={"limit": Limit(timeout=9)}),
            "raise limits: {timeout: …}, and both are tried again",
        ),
        (OOM.model_copy(update={"limit": Limit(memory=9)}), "raise limits: {memory: …}, and both are tried again"),
        (OOM, "where more memory has become free, --fresh tries both again"),
    ],
)
def test_the_remedy_is_one_that_does_something(smaller: Outcome, remedy: str) -> None:
    """No limit of the study stopped what the kernel killed, or the engine itself gave up."""
    assert skipped(by_batch(32)[0], smaller).remedy == remedy
