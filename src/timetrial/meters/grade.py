"""How fit this machine is for measuring, point by point: green, amber, red, each with what to do about it.

`examine` looks at the machine for about three seconds; `grade` is a pure function of what it saw.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from timetrial.meters.canary import Canary, Reading, noise
from timetrial.meters.contention import Difference, difference, snapshot
from timetrial.meters.hardware import Machine

Colour = Literal["green", "amber", "red", "unknown"]
_ORDER: tuple[Colour, ...] = ("red", "amber", "unknown", "green")  # worst first

SING_SECONDS = 2.5
STEADY, UNSTEADY = 0.02, 0.05  # spread of the canary's songs
LITTLE, TOO_LITTLE = 2 * 2**30, 2**30  # bytes of free memory
NO_MEMORY = 2**28  # less than an engine's import takes
POOR_CLOCK, NO_CLOCK = 1e-6, 1e-3  # seconds
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")


@dataclass(frozen=True)
class Point:
    name: str
    colour: Colour
    found: str
    remedy: str = ""
    usable: bool = True  # False: nothing can be measured here


@dataclass(frozen=True)
class Grade:
    points: tuple[Point, ...]  # worst first

    @property
    def colour(self) -> Colour:
        known = [point.colour for point in self.points if point.colour != "unknown"]
        return min(known, key=_ORDER.index, default="unknown")

    @property
    def usable(self) -> bool:
        return all(point.usable for point in self.points)

    @property
    def to_look_at(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.colour in ("red", "amber"))

    def words(self) -> str:
        count = len(self.to_look_at)
        if not count:
            return f"Machine: {self.colour} for measuring."
        return f"Machine: {self.colour} for measuring; {count} {'point' if count == 1 else 'points'} to look at."


@dataclass(frozen=True)
class Seen:
    """What the points are graded by."""

    machine: Machine
    look: Difference  # while the canary sang
    readings: tuple[Reading | None, ...]
    was_too_hot: int | None  # times since the machine was started


def examine(machine: Machine, seconds: float = SING_SECONDS, root: Path = Path("/")) -> Seen:
    """The canary sings on one core, the one that a run of one thread would have, for so many seconds."""
    cores = (machine.cpu.allowed or (0,))[:1]
    before = snapshot(machine.cpu.allowed, root)
    with Canary() as canary:
        readings = [canary.sing(cores)]  # waits for the program's start too
        end = time.monotonic() + seconds
        while readings[-1] is not None and time.monotonic() < end:
            readings.append(canary.sing(cores))
    # Only now has the canary been waited for: what it took is this process's, not others'.
    after = snapshot(machine.cpu.allowed, root)
    return Seen(machine, difference(before, after), tuple(readings), after.too_hot)


def grade(seen: Seen) -> Grade:
    points = [point for look in _LOOKS for point in look(seen)]
    return Grade(tuple(sorted(points, key=lambda point: _ORDER.index(point.colour))))


# --- points -----------------------------------------------------------------------------------------------------------


def _others(seen: Seen) -> list[Point]:
    load = "" if seen.machine.load is None else f"load {seen.machine.load[0]:.2f}"
    cores = seen.look.others
    if cores is None:
        return [Point("other programs", "unknown", load or "not known")]
    colour: Colour = "green" if cores <= 0.1 else "amber" if cores <= 0.5 else "red"
    found = f"{cores:.2f} cores busy with other programs" + (f", {load}" if load else "")
    return [_point("other programs", colour, found, "end them, or wait until they are done (top shows which)")]


def _memory(seen: Seen) -> list[Point]:
    memory, limit = seen.machine.memory, seen.machine.limits.memory
    sizes = [size for size in (memory.available, limit) if size is not None]
    if not sizes:
        return [Point("free memory", "unknown", "not known")]
    free = min(sizes)
    colour: Colour = "green" if free >= LITTLE else "amber" if free >= TOO_LITTLE else "red"
    remedy = "end what uses memory, raise the container's limit, or keep to small networks and batches"
    return [_point("free memory", colour, f"{free / 2**30:.1f} GiB", remedy, usable=free >= NO_MEMORY)]


def _swap(seen: Seen) -> list[Point]:
    memory = seen.machine.memory
    if memory.swap_total is None or memory.swap_free is None:
        return [Point("swap", "unknown", "not known")]
    used = memory.swap_total - memory.swap_free
    colour: Colour = "red" if seen.look.swapped else "amber" if used > 0.05 * memory.swap_total else "green"
    found = f"{seen.look.swapped} pages moved just now" if seen.look.swapped else f"{used / 2**20:.0f} MiB in use"
    found = found if memory.swap_total else "none"
    return [_point("swap", colour, found, "end what uses memory, then empty it: swapoff -a && swapon -a")]


def _governor(seen: Seen) -> list[Point]:
    frequency = seen.machine.cpu.frequency
    if frequency.governor is None:
        where = "the host decides" if seen.machine.virtualisation.hypervisor else "not known"
        return [Point("frequency scaling", "unknown", where)]
    good = frequency.governor == "performance"
    found = f"governor {frequency.governor}" + (f", driver {frequency.driver}" if frequency.driver else "")
    remedy = "cpupower frequency-set --governor performance"
    return [_point("frequency scaling", "green" if good else "amber", found, remedy)]


def _turbo(seen: Seen) -> list[Point]:
    on = seen.machine.cpu.frequency.turbo
    if on is None:
        where = "the host decides" if seen.machine.virtualisation.hypervisor else "not known"
        return [Point("turbo", "unknown", where)]
    remedy = "for differences of a few per cent switch it off: the clock depends on heat and on the other cores"
    return [_point("turbo", "amber" if on else "green", "on" if on else "off", remedy)]


def _siblings(seen: Seen) -> list[Point]:
    cpu = seen.machine.cpu
    if cpu.smt is None or cpu.allowed is None:
        return [Point("threads of a core", "unknown", "not known")]
    if not cpu.smt:
        return [Point("threads of a core", "green", "one")]
    places = {core.index: (core.socket, core.core) for core in cpu.topology or ()}
    own = len({places.get(index, (-1, index)) for index in cpu.allowed})
    found = f"two or more: {len(cpu.allowed)} cores for this process are {own} physical ones"
    remedy = f"give a run at most {own} threads (each then has a physical core), and leave the siblings idle"
    return [_point("threads of a core", "amber", found, remedy)]


def _quota(seen: Seen) -> list[Point]:
    quota, allowed = seen.machine.limits.cpus, len(seen.machine.cpu.allowed or ())
    if seen.look.throttled_periods:
        found = f"stopped {seen.look.throttled_periods} times while the canary sang"
        return [_point("quota of cores", "red", found, "raise the container's quota, or run outside of it")]
    if quota is None:
        return [Point("quota of cores", "green", "none")]
    enough = quota >= allowed
    remedy = f"give a run at most {int(quota)} threads, or pin the container to whole cores (cpuset) instead"
    return [_point("quota of cores", "green" if enough else "amber", f"{quota:g} of {allowed} cores", remedy)]


def _hypervisor(seen: Seen) -> list[Point]:
    virtual, stolen = seen.machine.virtualisation, seen.look.stolen
    if virtual.hypervisor is None:
        return [Point("virtual machine", "unknown", "not known")]
    if not virtual.hypervisor:
        return [Point("virtual machine", "green", "no")]
    share = "stolen time not known" if stolen is None else f"{100 * stolen:.1f} % of the time stolen"
    colour: Colour = "red" if stolen is not None and stolen > 0.01 else "amber"
    remedy = "its neighbours can take time and bandwidth: for figures to be published take hardware of your own"
    return [_point("virtual machine", colour, f"yes, {share}", remedy)]


def _heat(seen: Seen) -> list[Point]:
    if seen.was_too_hot is None:
        return [Point("heat", "unknown", "not known")]
    remedy = "cool the machine better, switch turbo off, or leave pauses between runs"
    if seen.look.too_hot:
        return [_point("heat", "red", f"slowed down {seen.look.too_hot} times just now", remedy)]
    found = f"slowed down {seen.was_too_hot} times since its start"
    return [_point("heat", "amber" if seen.was_too_hot else "green", found, remedy)]


def _clock(seen: Seen) -> list[Point]:
    source, resolution = seen.machine.software.clock_source, seen.machine.software.clock_resolution
    slow = source in SLOW_CLOCKS or resolution > POOR_CLOCK
    colour: Colour = "amber" if slow else "green"
    found = f"{source or 'source not known'}, resolution {resolution:.0e} s"
    remedy = "choose a faster one (clocksource=tsc at boot): reading this one takes a part of a short step"
    return [_point("clock", colour, found, remedy, usable=resolution <= NO_CLOCK)]


def _canary(seen: Seen) -> list[Point]:
    spread = noise(seen.readings)
    names = ("canary, computing", "canary, copying")
    if spread is None:
        remedy = "try again; if it stays so, NumPy cannot be started here: install timetrial again"
        heard = any(reading is not None for reading in seen.readings)
        return [Point(names[0], "unknown" if heard else "red", "not measured", remedy, usable=heard)]
    remedy = "find what disturbs it (other programs, frequency, neighbours); smaller differences are lost in it"
    return [
        _point(name, _by_spread(value), f"songs lie {100 * value:.1f} % apart", remedy)
        for name, value in zip(names, (spread.compute, spread.copy), strict=True)
    ]


def _by_spread(value: float) -> Colour:
    return "green" if value < STEADY else "amber" if value < UNSTEADY else "red"


def _point(name: str, colour: Colour, found: str, remedy: str, usable: bool = True) -> Point:
    """What is green needs no remedy."""
    return Point(name, colour, found, "" if colour == "green" and usable else remedy, usable)


_LOOKS: Sequence[Callable[[Seen], list[Point]]] = (
    _others, _memory, _swap, _governor, _turbo, _siblings, _quota, _hypervisor, _heat, _clock, _canary,
)  # fmt: skip
