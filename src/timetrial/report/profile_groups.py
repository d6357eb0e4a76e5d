"""Profiles of the same work side by side: what a group is, what each of its profiles is called, and what is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from timetrial.meters.limits import MachineLimits
from timetrial.profiling.bottlenecks import Diagnosis, diagnose
from timetrial.profiling.profile import Profile
from timetrial.profiling.roofline import Point, own, points
from timetrial.profiling.schema import PHASES


@dataclass(frozen=True)
class Seen:
    """One profile and what follows from it."""

    name: str
    profile: Profile
    took: Mapping[tuple[str | None, str], float]  # seconds of a step by layer (or none) and phase, the longest first
    points: tuple[Point, ...]
    diagnosis: Diagnosis

    def point(self, layer: str | None, phase: str) -> Point | None:
        return next((point for point in self.points if (point.layer, point.phase) == (layer, phase)), None)


@dataclass(frozen=True)
class Work:
    """All profiles of the same network, task, batch, data, precision and placement."""

    title: str
    profiles: tuple[Seen, ...]

    @property
    def rows(self) -> tuple[tuple[str | None, str], ...]:
        """Layer by layer in the order of the network, phase by phase; then what no layer owns, the longest first."""
        known = [(point.layer, point.phase) for seen in self.profiles for point in seen.points]
        met = [key for seen in self.profiles for key in seen.took]
        layers = list(dict.fromkeys(layer for layer, _ in (*known, *met) if layer is not None))
        places = {layer: i for i, layer in enumerate(layers)}
        pairs: dict[tuple[str | None, str], None] = dict.fromkeys([*known, *met])
        owned = sorted(
            (key for key in pairs if key[0] is not None), key=lambda key: (places[str(key[0])], PHASES.index(key[1]))
        )
        return (*owned, *(key for key in pairs if key[0] is None))


def works(profiles: Sequence[Profile], limits: Mapping[str, MachineLimits] | None = None) -> list[Work]:
    groups: dict[str, list[Profile]] = {}
    for profile in profiles:
        groups.setdefault(_title(profile), []).append(profile)
    return [Work(title, tuple(_seen(found, limits))) for title, found in groups.items()]


def _title(profile: Profile) -> str:
    head = profile.header
    parts = (head.model, head.task, f"batch {head.batch}", head.placement, head.precision, head.dataset)
    return ", ".join(part for part in parts if part)


def _seen(profiles: Sequence[Profile], limits: Mapping[str, MachineLimits] | None) -> list[Seen]:
    return [
        Seen(name, one, _took(one), points(one), diagnose(one, own(limits, one.header)))
        for name, one in zip(_names(profiles), profiles, strict=True)
    ]


def _took(profile: Profile) -> dict[tuple[str | None, str], float]:
    table = profile.per_step("layer", "phase")
    columns = (table[name].tolist() for name in ("layer", "phase", "wall_ns"))
    return {
        (layer if isinstance(layer, str) else None, str(phase)): wall / 1e9
        for layer, phase, wall in zip(*columns, strict=True)
    }


def _names(profiles: Sequence[Profile]) -> list[str]:
    """The engine; with its version, or its run, where that alone does not tell them apart."""
    heads = [profile.header for profile in profiles]
    plain = [head.engine for head in heads]
    versioned = [f"{head.engine} {head.version}" for head in heads]
    numbered = [f"{head.engine} {head.version} ({head.run})" for head in heads]
    for names in (plain, versioned, numbered):
        if max(Counter(names).values(), default=1) == 1:
            return names
    return [f"{name} {i}" for i, name in enumerate(numbered, 1)]
