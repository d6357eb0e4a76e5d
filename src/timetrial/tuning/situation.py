"""What is known before anything is tried: the workload, the engine, the machine, what was asked for, and evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from timetrial.engines.registry import parse
from timetrial.meters.hardware import Machine
from timetrial.profiling.profile import Profile
from timetrial.spec.network import Network
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Task, Trial


@dataclass(frozen=True)
class Situation:
    """`bases` are the framework's defaults, a trial for each task. `fixed`: what the person decided (`recipe.batch`,
    `placement`), which no rule touches."""

    bases: Mapping[Task, Trial]
    machine: Machine
    fixed: frozenset[str] = frozenset()
    placements: tuple[Placement, ...] = ()  # others that may be tried
    rivals: tuple[str, ...] = ()  # engines to consider
    variants: bool = False  # whether other networks may be tried
    profiles: Mapping[Task, Profile] = field(default_factory=dict)

    @property
    def base(self) -> Trial:
        return next(iter(self.bases.values()))

    @property
    def engine(self) -> str:
        """Without a version."""
        return parse(self.base.engine).engine.name

    @property
    def network(self) -> Network:
        return self.base.network

    @property
    def convolves(self) -> bool:
        return any(node.op == "conv2d" for node in self.network.nodes)

    @property
    def on_cpu(self) -> bool:
        return self.base.placement.device == "cpu"

    def share(self, column: str, *names: str) -> float | None:
        """Of a step's time, by the profiles that prove something: the largest over the tasks. None: no evidence."""
        found = [_share(profile, column, names) for profile in self.profiles.values() if profile.header.enough]
        return max(found, default=None)

    @property
    def unusable(self) -> tuple[str, ...]:
        """Profiles that were given and prove nothing, with why."""
        return tuple(
            f"the profile of {task} is not used: {'; '.join(profile.header.problems)}"
            for task, profile in self.profiles.items()
            if not profile.header.enough
        )


def _share(profile: Profile, column: str, names: tuple[str, ...]) -> float:
    table = profile.per_step(column)
    total = float(table["wall_ns"].sum())
    return float(table.loc[table[column].isin(names), "wall_ns"].sum()) / total if total else 0.0
