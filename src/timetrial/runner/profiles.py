"""How much is measured: `quick` to look, `normal` to work with, `publish` to print."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from timetrial.spec.study import Profile, Study
from timetrial.spec.trial import Trial


@dataclass(frozen=True)
class LapPlan:
    laps: int
    lap_seconds: float
    seconds: float  # of steady laps, at least
    warmup_seconds: float  # cap
    window: int = 10
    tolerance: float = 0.05
    warmup_steps: int = 3


_PLANS = {
    "quick": LapPlan(laps=10, lap_seconds=0.1, seconds=1.0, warmup_seconds=5.0),
    "normal": LapPlan(laps=10, lap_seconds=0.1, seconds=10.0, warmup_seconds=30.0),
    "publish": LapPlan(laps=10, lap_seconds=0.1, seconds=60.0, warmup_seconds=30.0),
}
_PROCESSES = {"quick": 3, "normal": 5, "publish": 10}
FIT_LAPS = 5  # a `fit` call has a start and an end of its own, so its laps are longer


def processes(study: Study) -> int:
    return study.repeat or _PROCESSES[study.profile]


def lap_plan(profile: Profile, trial: Trial) -> dict[str, Any]:
    plan = asdict(_PLANS[profile])
    if trial.settings.loop == "fit":
        plan["lap_seconds"] *= FIT_LAPS
    return plan


def expected_seconds(profile: Profile) -> float:
    """Of one run before anything is known: import and build, warm-up, laps."""
    return 5.0 + 1.0 + _PLANS[profile].seconds
