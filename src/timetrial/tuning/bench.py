"""Where tuning measures: each stage is a study that a campaign carries out, so that its runs are alone, in randomised
blocks, proved first, on record, and found again by the next start."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from timetrial.engines.locate import locate
from timetrial.records.record import Record
from timetrial.runner.campaign import Campaign, Clock
from timetrial.runner.gate import Gate
from timetrial.runner.process import Bounds
from timetrial.runner.work import digest
from timetrial.spec.study import Study
from timetrial.spec.trial import Trial
from timetrial.tuning.measured import Measured, measured

# Stages: the defaults alone, the proposals, steps of ladders, the proof.
FIRST, SEARCH, JOIN, PROOF = "first", "search", "join", "proof"
TRAINED = (SEARCH, PROOF)  # how the stages begin where a short training tells the accuracy
LEAST_TIMEOUT = 60.0  # of a run; no change may take more than a quarter of the budget for one
Told = Callable[[str, Record], None]


class Bench(Protocol):
    """What the search needs of the world."""

    def now(self) -> float: ...

    def expected(self, stage: str, trials: Sequence[Trial], processes: int, anchors: Collection[str] = ()) -> float:
        """Seconds that are still to be spent on it."""

    def measure(
        self, stage: str, trials: Sequence[Trial], processes: int, seconds: float, anchors: Collection[str] = ()
    ) -> Mapping[str, Measured]:
        """By the trials' ids. `anchors` are measured under a second name too."""

    def difference(self, trial: Trial, base: Trial) -> float | None:
        """Of the predictions of both, from the same weights for the same inputs, relative to those of the base."""


class Campaigns:
    """The bench on this machine. `told` hears of each record with the name of its stage."""

    def __init__(self, name: str, folder: Path, budget: float, told: Told, clock: Clock = time.monotonic) -> None:
        self.name, self.folder, self.budget, self.told = name, folder.absolute(), budget, told
        self._clock = clock
        self._known: list[tuple[Trial, Record]] = []
        self._gate: Gate | None = None

    def now(self) -> float:
        return self._clock()

    def expected(self, stage: str, trials: Sequence[Trial], processes: int, anchors: Collection[str] = ()) -> float:
        return self._campaign(stage, trials, processes, None, anchors).expected_seconds()

    def measure(
        self, stage: str, trials: Sequence[Trial], processes: int, seconds: float, anchors: Collection[str] = ()
    ) -> Mapping[str, Measured]:
        campaign = self._campaign(stage, trials, processes, seconds, anchors)
        by_id = {trial.id: trial for trial in trials}
        for record in campaign.go():
            self._known.append((by_id[record.trial], record))
            self.told(stage, record)
        return {trial.id: measured(trial, campaign.done.values()) for trial in trials}

    def difference(self, trial: Trial, base: Trial) -> float | None:
        if self._gate is None:
            from timetrial.meters.hardware import inventory

            self._gate = Gate(self.folder / ".work", inventory(), Bounds(timeout=LEAST_TIMEOUT))
        ours, theirs = (self._gate.output(one, locate(one.engine)) for one in (trial, base))
        return None if ours is None or theirs is None else difference(ours, theirs)

    def _campaign(
        self, stage: str, trials: Sequence[Trial], processes: int, seconds: float | None, anchors: Collection[str]
    ) -> Campaign:
        campaign = Campaign(
            self._study(stage, trials, processes, seconds), trials, self.folder, clock=self._clock, anchors=anchors
        )
        for trial, record in self._known:  # what other stages took tells how long this one will take
            if record.run not in campaign.done and record.outcome.ok:
                campaign.forecast.learn(trial, record)
        return campaign

    def _study(self, stage: str, trials: Sequence[Trial], processes: int, seconds: float | None) -> Study:
        engines = dict.fromkeys(trial.engine for trial in trials)
        return Study.model_validate(
            {
                "study": f"{self.name}-{stage}", "models": list(dict.fromkeys(trial.model for trial in trials)),
                "engines": list(engines), "profile": "quick", "measure": ["time"],
                "accuracy": stage.startswith(TRAINED),
                "repeat": processes, "anchor": False, "budget": seconds, "seed": trials[0].seed,
                "limits": {"timeout": max(self.budget / 4, LEAST_TIMEOUT)},
            }
        )  # fmt: skip


def difference(ours: Any, theirs: Any) -> float | None:
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    size = float(np.linalg.norm(theirs))
    if ours.shape != theirs.shape or not size:
        return None
    return float(np.linalg.norm(ours - theirs)) / size


def stage_name(bases: Sequence[Trial]) -> str:
    """The same question has the same name, so that its records are found again."""
    base = bases[0]
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{base.model}-{base.engine}").strip("-")[:36]
    return f"tune-{words}-{digest(sorted(trial.id for trial in bases))[:8]}"
