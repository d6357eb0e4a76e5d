"""One run that is to be made: its trial, its block, the name its record will have, and what is told about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from timetrial.records.choice import AGAIN
from timetrial.records.record import Record, Role
from timetrial.runner.process import Event
from timetrial.runner.work import digest
from timetrial.spec.study import Study
from timetrial.spec.trial import Trial

_MARKS: dict[Role, str] = {"cell": "", "twin": "t", "memory": "m", "energy": "e", "profile": "p"}


@dataclass(frozen=True)
class Step:
    trial: Trial
    block: int
    run: str
    role: Role = "cell"
    attempt: int = 0  # of those made because the machine was not steady

    def again(self) -> Step:
        name = self.run.partition(AGAIN)[0]
        return replace(self, attempt=self.attempt + 1, run=f"{name}{AGAIN}{self.attempt + 1}")


@dataclass(frozen=True)
class Notice:
    """What a campaign tells while it goes on: `begin`, `proved`, `event`, `end`."""

    kind: str
    step: Step
    record: Record | None = None
    event: Event | None = None


Listener = Callable[[Notice], None]


def step(study: Study, trial: Trial, block: int, role: Role = "cell") -> Step:
    other: list[str] = [study.stopping] if study.stopping != "adaptive" else []
    if role == "energy":  # what was measured of a stand-in is no measurement of the machine
        other.append(study.energy.model_dump_json())
    plan = digest(study.profile, study.accuracy, *other)
    return Step(trial, block, f"{trial.id}-{plan[:6]}-{block:02d}{_MARKS[role]}", role)
