"""How much is measured: `quick` to look, `normal` to work with, `publish` to print."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from timetrial.spec.study import Study
from timetrial.spec.trial import Trial


@dataclass(frozen=True)
class LapPlan:
    laps: int
    lap_seconds: float
    seconds: float  # of steady laps; or fewer, where the median is known to `precision` before
    warmup_seconds: float  # cap
    precision: float = 0.0  # relative half width of the interval of a process's median
    least_seconds: float = 0.0  # of steady laps, however well the median is known
    window: int = 10
    tolerance: float = 0.05
    warmup_steps: int = 3


_PLANS = {
    "quick": LapPlan(laps=10, lap_seconds=0.1, seconds=1.0, warmup_seconds=5.0),
    "normal": LapPlan(laps=10, lap_seconds=0.1, seconds=10.0, warmup_seconds=30.0, precision=0.005, least_seconds=3.0),
    "publish": LapPlan(
        laps=10, lap_seconds=0.1, seconds=60.0, warmup_seconds=30.0, precision=0.0025, least_seconds=5.0
    ),
}
_PROCESSES = {"quick": 3, "normal": 5, "publish": 10}
_TARGETS = {"quick": 0.05, "normal": 0.01, "publish": 0.005}  # half width of a cell's interval
_REPEATS = {"quick": 0, "normal": 2, "publish": 2}  # of a run during which the machine was not steady
ENERGY_BLOCKS = 3  # in which every cell has a run of energy too
ENERGY_LAPS = 20  # at most, in a window
_MEASURES = {"quick": ("time",), "normal": ("time", "memory"), "publish": ("time", "memory", "limits")}
EPOCH_WINDOW = 2  # an epoch is many steps: where two and two agree, an engine is warm
FIT_LAPS = 5  # a `fit` call has a start and an end of its own, so its laps are longer


def processes(study: Study) -> int:
    return study.repeat or _PROCESSES[study.profile]


def is_adaptive(study: Study) -> bool:
    """A number of processes that is asked for is kept to."""
    return study.stopping == "adaptive" and study.repeat is None


def target(study: Study) -> float:
    return _TARGETS[study.profile]


def repeats(study: Study) -> int:
    return _REPEATS[study.profile]


def measures(study: Study) -> tuple[str, ...]:
    """`quick` has the kernel's mark of memory, which costs nothing; a run of its own shows more."""
    return study.measure or _MEASURES[study.profile]


def lap_plan(study: Study, trial: Trial) -> dict[str, Any]:
    plan = asdict(_PLANS[study.profile])
    if study.stopping == "fixed":
        plan["precision"] = 0.0
    if trial.settings.loop == "fit":
        plan["lap_seconds"] *= FIT_LAPS
    if trial.settings.lap == "epoch":
        plan["window"] = EPOCH_WINDOW
    return plan


def memory_plan(study: Study, trial: Trial) -> dict[str, Any]:
    """A peak needs no long laps."""
    plan = lap_plan(study, trial)
    return {**plan, "seconds": min(plan["seconds"], 1.0), "precision": 0.0}


def energy_plan(study: Study, trial: Trial, window: float) -> dict[str, Any]:
    """Laps until the window is long enough for the energy counters, however well the time is known. They are long:
    what lies between two of them is in the window as well."""
    plan = lap_plan(study, trial)
    longer = max(plan["lap_seconds"], window / ENERGY_LAPS)
    return {**plan, "lap_seconds": longer, "seconds": window, "least_seconds": window, "precision": 0.0}
