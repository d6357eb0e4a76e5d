"""What holds a step up, by measured evidence: every instant of a step goes to one kind, and the shares add up to one.

In this order, the first that fits:

    input       fetching a batch and bringing it over, as far as nothing else runs meanwhile
    optimiser   whatever the optimiser does
    dispatch    gaps between operations, the framework's own running about, and operations below `SHORT_NS`, unless
                their layer reaches `NEAR` of the limit all the same
    layout      copies and transposes
    compute     operations of layers whose lower limit, by the roofline, is arithmetic
    memory      those whose lower limit is bandwidth
    work        operations of layers, where no limits say which of the two
    other       operations that nothing is counted of, such as the loss

Below the gates of the profile there is no ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from timetrial.meters.limits import MachineLimits
from timetrial.profiling import times
from timetrial.profiling.profile import Profile
from timetrial.profiling.roofline import Point, Roof, points, roof

Kind = Literal[
    "compute", "memory", "work", "input", "dispatch", "communication", "optimiser", "layout", "other",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
Place: TypeAlias = tuple[str, str]  # layer and phase

SHORT_NS = 50_000  # below it, what a framework takes to start an operation is no longer small beside the operation
NEAR = 0.5  # of the limit, from which on an operation is held up by the machine rather than by how it is done
# From these shares of a step on a kind is named: what is done for it then pays. Other kinds are what a step is for.
NAMED: dict[Kind, float] = {"input": 0.10, "dispatch": 0.10, "optimiser": 0.05, "layout": 0.05}
NAMED_ELSE = 0.10
ONE_DEVICE = "one device has nobody to talk to"


@dataclass(frozen=True)
class Evidence:
    """Figures of a mean step under the profiler. None: not measured, or nothing of the kind."""

    seconds: float | None = None
    flops_rate: float | None = None
    bytes_rate: float | None = None
    intensity: float | None = None
    attained: float | None = None  # of the limit
    least: float | None = None  # seconds at the limit
    gap: float | None = None  # share of the step in which no operation ran
    short: float | None = None  # operations below SHORT_NS
    places: tuple[tuple[str, float], ...] = ()  # layers and phases with the largest shares of the step


@dataclass(frozen=True)
class Finding:
    kind: Kind
    share: float | None  # of the step; None: not measured
    evidence: Evidence
    note: str = ""  # why it is not measured, and the remedy where there is one

    @property
    def named(self) -> bool:
        return self.share is not None and self.share >= NAMED.get(self.kind, NAMED_ELSE)


@dataclass(frozen=True)
class Diagnosis:
    problems: tuple[str, ...]  # why there is no ranking; none where there is
    findings: tuple[Finding, ...]  # the largest share first, what was not measured last
    roof: Roof | None
    no_roof: str  # why there is none

    @property
    def first(self) -> Finding | None:
        return next((finding for finding in self.findings if finding.share is not None), None)

    def of(self, kind: Kind) -> Finding | None:
        return next((finding for finding in self.findings if finding.kind == kind), None)


def diagnose(profile: Profile, limits: MachineLimits | None = None) -> Diagnosis:
    """`limits` are those of the profile's own session."""
    found, why = roof(limits, profile.header)
    if profile.header.problems:
        return Diagnosis(profile.header.problems, (), found, why)
    known = {(point.layer, point.phase): point for point in points(profile)}
    of = kinds(profile, known, found)
    shares = _shares(profile, of)
    findings = [_finding(profile, of == kind, shares, kind, known, found) for kind in _asked(found)]
    findings += [Finding(kind, None, Evidence(), note) for kind, note in _not_measured(found, why).items()]
    ranked = sorted(findings, key=lambda one: (one.share is None, -(one.share or 0.0)))
    return Diagnosis((), tuple(ranked), found, why)


def _asked(found: Roof | None) -> tuple[Kind, ...]:
    always: tuple[Kind, ...] = ("input", "dispatch", "optimiser", "layout", "other")
    return ("compute", "memory", *always) if found else ("work", *always)


def _not_measured(found: Roof | None, why: str) -> dict[Kind, str]:
    notes: dict[Kind, str] = {} if found else {"compute": why, "memory": why}
    return notes | {"communication": ONE_DEVICE}


def kinds(profile: Profile, known: dict[Place, Point], found: Roof | None) -> NDArray[np.object_]:
    """A kind for each operation."""
    ops = profile.ops
    phase, of_class = ops["phase"].astype(object), ops["class"].astype(object)
    places = list(zip(ops["layer"].astype(object), phase, strict=True))
    bound = {place: point.bound(found) if found else "work" for place, point in known.items()}
    near = {place for place, point in known.items() if found and (point.attained(found) or 0.0) >= NEAR}
    short = short_ones(profile) & ~np.array([place in near for place in places], dtype=bool)
    rules = (
        (phase.isin(("input", "transfer")) | (of_class == "queue"), "input"),
        (phase == "optimiser", "optimiser"),
        (phase.isin(("runtime", "wait", "compile")) | (of_class == "dispatch"), "dispatch"),
        (short, "dispatch"),
        (of_class == "layout", "layout"),
    )
    rest = np.array([bound.get(place, "other") for place in places], dtype=object)
    chosen: NDArray[np.object_] = np.select(
        [np.asarray(fits, bool) for fits, _ in rules], [name for _, name in rules], rest
    )
    return chosen


def short_ones(profile: Profile) -> NDArray[np.bool_]:
    """By what an operation does itself: what is nested in it counts on its own."""
    found: NDArray[np.bool_] = (profile.ops["self_ns"] / profile.ops["share"] < SHORT_NS).to_numpy(bool)
    return found


def _shares(profile: Profile, of: NDArray[np.object_]) -> NDArray[np.float64]:
    """Of the step, for each operation; with the gaps they add up to one. What runs beside the fetching of a batch has
    those instants to itself: fetching holds up nobody then."""
    ops = profile.ops
    wall = ops["wall_ns"].to_numpy(float).copy()
    start = ops["start_ns"].to_numpy(np.int64)
    end = start + ops["duration_ns"].to_numpy(np.int64)
    inputs = of == "input"
    total = float(times.union(start, end))
    if inputs.any():
        others = float(times.union(start[~inputs], end[~inputs]))
        wall[~inputs] *= _over(others, wall[~inputs].sum())
        wall[inputs] *= _over(total - others, wall[inputs].sum())
    shares: NDArray[np.float64] = wall * _over(min(profile.header.coverage, 1.0), wall.sum())
    return shares


def _over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _finding(
    profile: Profile, mine: NDArray[np.bool_], shares: NDArray[np.float64], kind: Kind,
    known: dict[Place, Point], found: Roof | None,
) -> Finding:  # fmt: skip
    gap = max(1.0 - profile.header.coverage, 0.0) if kind == "dispatch" else None
    share = float(shares[mine].sum()) + (gap or 0.0)
    short = short_ones(profile) & mine
    seconds = share * float(profile.steps["duration_ns"].mean()) / 1e9
    rates = _rates(profile, mine, seconds, known, found) if kind in ("compute", "memory", "work") else {}
    evidence = Evidence(
        seconds=seconds,
        gap=gap,
        short=float(profile.ops["share"].to_numpy(float)[short].sum()) / max(profile.header.steps, 1),
        places=_places(profile, mine, shares),
        **rates,
    )
    return Finding(kind, share, evidence)


def _rates(
    profile: Profile, mine: NDArray[np.bool_], seconds: float, known: dict[Place, Point], found: Roof | None
) -> dict[str, float]:
    """Layer by layer: one that arithmetic limits does not make up for one that memory does."""
    if not seconds:
        return {}
    steps = max(profile.header.steps, 1)
    sums = profile.ops[mine].groupby(["layer", "phase"], observed=True)[["flops", "bytes"]].sum() / steps
    sums.loc[[place in known and known[place].merged for place in sums.index], "bytes"] = 0.0
    flops, moved = float(sums["flops"].sum()), float(sums["bytes"].sum())
    rates = {"flops_rate": flops / seconds, "bytes_rate": moved / seconds, "intensity": _over(flops, moved)}
    if found is None:
        return rates
    least = float(np.maximum(sums["flops"] / found.product.rate, sums["bytes"] / found.sweep.rate).sum())
    return rates | {"least": least, "attained": least / seconds}


def _places(
    profile: Profile, mine: NDArray[np.bool_], shares: NDArray[np.float64], most: int = 3
) -> tuple[tuple[str, float], ...]:
    """`conv2 backward` and its share; the type where there is no layer."""
    ops = profile.ops[mine]
    columns = (ops[name].astype(object) for name in ("layer", "phase", "type"))
    named = [
        f"{layer} {phase}" if isinstance(layer, str) else kind for layer, phase, kind in zip(*columns, strict=True)
    ]
    sums = pd.Series(shares[mine]).groupby(pd.Series(named, dtype=object)).sum().sort_values(ascending=False)
    return tuple((str(name), float(share)) for name, share in sums.head(most).items() if share > 0)


def together(findings: Sequence[Finding]) -> float:
    """All measured shares: the whole step."""
    return sum(finding.share for finding in findings if finding.share is not None)
