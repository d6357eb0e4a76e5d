"""How long a run will take, from what the runs so far took. Pure; it gets better as a study goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median

from timetrial.records.record import Record
from timetrial.runner.profiles import lap_plan
from timetrial.spec.network import Network
from timetrial.spec.operations import operations
from timetrial.spec.study import Study
from timetrial.spec.trial import Trial

START_SECONDS = 5.0  # import, build and warm-up, as long as nothing is known
EPOCH = 500  # steps of an epoch whose number of samples no study says
RATE = 5e9  # operations a second and thread, as long as nothing is known


@lru_cache(maxsize=4096)
def _operations(network: Network, batch: int) -> tuple[int, int]:
    counted = operations(network, batch)
    return counted.train, counted.infer


def work(trial: Trial) -> int:
    """Operations of one step."""
    train, infer = _operations(trial.network, trial.recipe.batch)
    return train if trial.task == "train" else infer


@dataclass
class Forecast:
    """Learns from records; `seconds` says how long a run of a trial will take."""

    study: Study
    _walls: dict[str, list[float]] = field(default_factory=dict)  # by trial
    _starts: dict[str, list[float]] = field(default_factory=dict)  # by engine: what is not steady laps
    _rates: dict[str, list[float]] = field(default_factory=dict)  # by engine and threads

    def learn(self, trial: Trial, record: Record) -> None:
        steady = record.phases.get("steady")
        if record.wall_seconds is None or steady is None or record.laps is None:
            return
        trained = sum(record.phases.get(name, 0.0) for name in ("train", "predict", "evaluate", "save"))
        self._walls.setdefault(trial.id, []).append(record.wall_seconds - trained)
        self._starts.setdefault(trial.engine, []).append(record.wall_seconds - steady - trained)
        self._rates.setdefault(_where(trial), []).append(work(trial) / median(record.laps.seconds))

    def seconds(self, trial: Trial) -> float:
        if known := self._walls.get(trial.id):
            return median(known) + self.study.cooldown
        start = _nearest(self._starts, trial.engine) or START_SECONDS
        rate = _nearest(self._rates, _where(trial)) or RATE * trial.placement.threads
        step = work(trial) / rate * _turn(trial)
        plan = lap_plan(self.study, trial)
        warmup = min((plan["warmup_steps"] + 2 * plan["window"]) * step, plan["warmup_seconds"])
        steady = plan["least_seconds"] if plan["precision"] else plan["seconds"]
        return float(self.study.cooldown + start + warmup + max(steady, plan["laps"] * max(plan["lap_seconds"], step)))


def _turn(trial: Trial) -> float:
    """Steps that are timed at one go, at the least."""
    if trial.settings.lap == "steps":
        return 1
    return max(trial.samples / trial.recipe.batch, 1) if isinstance(trial.samples, int) else EPOCH


def _where(trial: Trial) -> str:
    return f"{trial.engine} on {trial.placement}, {trial.task}"


def _nearest(known: dict[str, list[float]], name: str) -> float | None:
    """Of this one, else of all."""
    values = known.get(name) or [value for values in known.values() for value in values]
    return median(values) if values else None
