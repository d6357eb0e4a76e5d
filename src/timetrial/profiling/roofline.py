"""Of each layer and phase: what it computes and moves, how long it took, and how near that is to what the machine can.

What is computed and moved is counted from the network alone (`cost`): the same for every engine. The limits are what
some library on this very machine was seen to reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from timetrial.meters.limits import Attempt, MachineLimits
from timetrial.profiling import cost
from timetrial.profiling.profile import Header, Profile
from timetrial.profiling.schema import Frame
from timetrial.spec.placement import Placement

REMEDY = "use measure: [time, profile, limits], or timetrial profile --limits"


@dataclass(frozen=True)
class Roof:
    """The best matrix product and the best sweep over memory, with the same threads."""

    product: Attempt
    sweep: Attempt

    @property
    def ridge(self) -> float:
        """Operations for each byte, from which on arithmetic is the lower limit of the two."""
        return self.product.rate / self.sweep.rate

    def at(self, intensity: float) -> float:
        """Operations a second that are possible at most."""
        return min(self.product.rate, intensity * self.sweep.rate)


@dataclass(frozen=True)
class Point:
    """One layer in one phase of a mean step."""

    layer: str
    phase: str
    flops: float
    bytes: float
    seconds: float | None  # None: no operation of its own was seen
    merged: bool = False  # done within operations of a layer that multiplies: it moves nothing of its own

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def rate(self) -> float | None:
        """Operations a second."""
        return self.flops / self.seconds if self.seconds else None

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second, of those that have to be moved at least."""
        return self.bytes / self.seconds if self.seconds and not self.merged else None

    def bound(self, roof: Roof) -> str:
        return "compute" if self.intensity >= roof.ridge else "memory"

    def least(self, roof: Roof) -> float:
        """Seconds that it would take at the limit."""
        return max(self.flops / roof.product.rate, self.bytes / roof.sweep.rate)

    def attained(self, roof: Roof) -> float | None:
        """Of the limit; above one where caches serve what is counted as moved, or fewer operations do."""
        return self.least(roof) / self.seconds if self.seconds and not self.merged else None


def points(profile: Profile) -> tuple[Point, ...]:
    """In the order of the network, forward before backward. What no layer owns has no point."""
    work = profile.workload
    known = cost.static(work.network, work.recipe.batch, work.task, work.recipe.precision)
    table = profile.per_step("layer", "phase")
    took = {
        (layer, phase): wall / 1e9
        for layer, phase, wall in zip(table["layer"], table["phase"], table["wall_ns"], strict=True)
    }
    within = merged(profile.ops)
    return tuple(
        Point(layer, phase, of.flops, of.bytes, took.get((layer, phase)) or None, (layer, phase) in within)
        for (layer, phase), of in known.items()
    )


def merged(ops: Frame) -> set[tuple[str, str]]:
    """Layers and phases most of whose time is a share of operations that another layer's multiply-adds are in, such as
    an activation's in a convolution: what they would read and write alone, they do not."""
    split = ops[(ops["share"] < 1) & ops["layer"].notna()]
    if split.empty:
        return set()
    most = split.groupby(["thread", "start_ns", "duration_ns", "name"], observed=True)["flops"].transform("max")
    within = split.index[(split["flops"] == 0) & (most > 0)]
    table = ops.assign(within=ops["wall_ns"].where(ops.index.isin(within), 0.0))
    sums = table.groupby(["layer", "phase"], observed=True)[["wall_ns", "within"]].sum()
    return set(sums.index[sums["within"] > sums["wall_ns"] / 2])


def roof(limits: MachineLimits | None, header: Header) -> tuple[Roof | None, str]:
    """For these threads and this precision; or why there is none."""
    if limits is None:
        return None, f"without the machine's limits; {REMEDY}"
    if header.threads is None:
        return None, "its threads were not limited, so no limit is like it; use settings: {threads: limited}"
    device = Placement.parse(header.placement).device
    where = f"{device} with {header.threads} thread{'' if header.threads == 1 else 's'}"
    product = limits.best(header.precision, header.threads, device)
    if product is None:
        return None, f"no matrix product in {header.precision} was measured on {where}{_why(limits)}"
    sweeps = [limits.bandwidth(header.threads, kind) for kind in ("add", "copy")] if device == "cpu" else []
    sweep = max((one for one in sweeps if one), key=lambda one: one.rate, default=None)
    if sweep is None:
        return None, f"no memory bandwidth was measured on {where}{_why(limits)}"
    return Roof(product, sweep), ""


def own(limits: Mapping[str, MachineLimits] | None, header: Header) -> MachineLimits | None:
    """Of the session that the profile was made in: another one's limits may be another machine's."""
    known = limits or {}
    return known.get(header.session) or known.get(header.run)


def _why(limits: MachineLimits) -> str:
    return f" ({'; '.join(limits.missing)})" if limits.missing else ""
