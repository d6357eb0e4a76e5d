"""A bench that measures nothing: a trial takes what it is told to, and a run some of a clock of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timetrial.meters.hardware import Machine, inventory
from timetrial.records.record import Equivalence, Outcome
from timetrial.spec.network import Network
from timetrial.spec.trial import Settings, Task, Trial
from timetrial.tuning.measured import NOT_RUN, Measured
from timetrial.tuning.proposals import Proposal

NETWORK = Network.model_validate(
    {"name": "made", "input": {"shape": [8, 8, 1]}, "layers": [{"conv2d": {"filters": 4, "kernel": 3}}, "flatten", {"dense": {"units": 4, "activation": "softmax"}}]}
)  # fmt: skip
STEP = 0.010


def base(task: Task = "train", engine: str = "torch", **changes: Any) -> Trial:
    values: dict[str, Any] = {
        "model": "made", "network": NETWORK, "recipe": {"batch": 16}, "dataset": "synthetic", "task": task, "engine": engine,
        "placement": "cpu", "settings": Settings(allocator="as-shipped"), **changes,
    }  # fmt: skip
    return Trial.model_validate(values)


def bases(*tasks: Task, **changes: Any) -> dict[Task, Trial]:
    return {task: base(task, **changes) for task in tasks or ("train", "infer")}


def proposal(name: str, tasks: tuple[Task, ...] = ("train", "infer"), joins: bool = True, **settings: Any) -> Proposal:
    changes = tuple((key.replace("__", "."), value) for key, value in settings.items())
    return Proposal("made", name, "made", changes, tasks, joins=joins)


LAST = proposal("last", settings__layout="channels_last")
HALF = proposal("half", recipe__precision="bfloat16")
FUSED = proposal("fused", settings__update="fused")
FOREACH = proposal("foreach", settings__update="foreach")
COMPILED = proposal("compiled", settings__compile="compiled")


def has(trial: Trial, *proposals: Proposal) -> bool:
    """Whether the trial has all changes of these."""
    told = {
        **{f"settings.{k}": v for k, v in trial.settings},
        **{f"recipe.{k}": v for k, v in trial.recipe},
        "engine": trial.engine,
    }
    return all(told[path] == value for one in proposals for path, value in one.changes)


@dataclass
class Told:
    """`takes`: seconds of a step, over those of the default. `ends`: how a run ends where it does not end well."""

    takes: Callable[[Trial], float]
    ends: Callable[[Trial], Outcome | None] = lambda trial: None
    learns: Callable[[Trial], float] = lambda trial: 0.8
    noise: float = 0.002
    run: float = 5.0  # seconds that a run takes
    clock: float = 0.0
    made: list[tuple[str, Trial, int]] = field(default_factory=list)
    kept: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def now(self) -> float:
        return self.clock

    def expected(self, stage: str, trials: Sequence[Trial], processes: int, anchors: Collection[str] = ()) -> float:
        missing = [processes - len(self.kept.get((stage, trial.id, "cell"), ())) for trial in trials]
        twins = [processes - len(self.kept.get((stage, trial, "twin"), ())) for trial in anchors]
        return self.run * sum(max(count, 0) for count in [*missing, *twins])

    def measure(
        self, stage: str, trials: Sequence[Trial], processes: int, seconds: float, anchors: Collection[str] = ()
    ) -> Mapping[str, Measured]:
        end = self.clock + seconds
        for number in range(processes):
            for trial in trials:
                if self.clock + self.run <= end and self.ends(trial) is None:
                    self._run(stage, trial, number, "cell")
                    if trial.id in anchors:
                        self._run(stage, trial, number, "twin")
        return {trial.id: self._measured(stage, trial) for trial in trials}

    def _run(self, stage: str, trial: Trial, number: int, role: str) -> None:
        times = self.kept.setdefault((stage, trial.id, role), [])
        if len(times) <= number:
            times.append(STEP / 16 * self.takes(trial) * self.random.lognormvariate(0, self.noise))
            self.made.append((stage, trial, number))
            self.clock += self.run

    def _measured(self, stage: str, trial: Trial) -> Measured:
        if (end := self.ends(trial)) is not None:
            return Measured(end)
        times, twin = (tuple(self.kept.get((stage, trial.id, role), ())) for role in ("cell", "twin"))
        if not times:
            return Measured(NOT_RUN)
        accuracy = self.learns(trial) if trial.task == "train" and stage.startswith(("search", "proof")) else None
        proof = Equivalence(passed=True, forward=1e-7, gradient=1e-6, steps=1e-5)
        return Measured(Outcome(kind="ok"), times, twin, 300 * 2**20, accuracy, None, proof)

    def difference(self, trial: Trial, base: Trial) -> float | None:
        return 2.7e-3 if trial.recipe.precision == "bfloat16" else 3e-7


def machine(*flags: str, libc: str = "glibc 2.36") -> Machine:
    from dataclasses import replace

    real = inventory()
    return replace(real, cpu=replace(real.cpu, flags=flags), software=replace(real.software, libc=libc))
