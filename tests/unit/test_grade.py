"""How fit a machine is for measuring: every point's colours, and the answer over all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from timetrial.meters.canary import Reading, Song
from timetrial.meters.contention import Difference
from timetrial.meters.grade import Colour, Grade, Point, Seen, examine, grade
from timetrial.meters.hardware import Limits, Machine, Memory, Software, Virtualisation
from timetrial.meters.processor import Caches, Core, Cpu, Frequency

GIB = 2**30
QUIET = Difference(1.0, stolen=0.0, others=0.02, throttled_periods=0, throttled=0.0, too_hot=0, swapped=0)


def songs(*seconds: float) -> tuple[Reading, ...]:
    return tuple(Reading((Song(0, value, value),)) for value in seconds)


STEADY = songs(*(1 + i / 1000 for i in range(10)))
CPU = Cpu(
    model="a processor", vendor="v", sockets=1, physical_cores=2, logical_cores=2, allowed=(0, 1),
    topology=(Core(0, 0, 0), Core(1, 0, 1)), smt=False, caches=Caches(None, None, None), flags=(),
    frequency=Frequency(3000.0, "performance", "acpi-cpufreq", False),
)  # fmt: skip
MACHINE = Machine(
    cpu=CPU,
    memory=Memory(16 * GIB, 12 * GIB, 4 * GIB, 4 * GIB),
    limits=Limits(2, None, None),
    virtualisation=Virtualisation(False, None, None),
    gpus=None,
    software=Software("6.1", "an os", "python", "glibc", "glibc", (), "tsc", 1e-9),
    load=(0.1, 0.1, 0.1),
    host="h",
)
IDEAL = Seen(MACHINE, QUIET, STEADY, was_too_hot=0)


def machine(**changes: Any) -> Seen:
    return replace(IDEAL, machine=replace(MACHINE, **changes))


def cpu(**changes: Any) -> Seen:
    return machine(cpu=replace(CPU, **changes))


def frequency(**changes: Any) -> Seen:
    return cpu(frequency=replace(CPU.frequency, **changes))


def look(**changes: Any) -> Seen:
    return replace(IDEAL, look=replace(QUIET, **changes))


def point(seen: Seen, name: str) -> Point:
    return next(point for point in grade(seen).points if point.name == name)


def test_a_machine_without_fault() -> None:
    found = grade(IDEAL)
    assert {one.colour for one in found.points} == {"green"}
    assert found.words() == "Machine: green for measuring."
    assert found.usable
    assert not any(one.remedy for one in found.points)


@pytest.mark.parametrize(
    ("seen", "name", "colour", "found"),
    [
        (look(others=0.3), "other programs", "amber", "0.30 cores"),
        (look(others=1.5), "other programs", "red", "1.50 cores"),
        (look(others=None), "other programs", "unknown", "load 0.10"),
        (machine(memory=Memory(4 * GIB, int(1.5 * GIB), 0, 0)), "free memory", "amber", "1.5 GiB"),
        (machine(limits=Limits(2, None, GIB // 2)), "free memory", "red", "0.5 GiB"),
        (machine(memory=Memory(None, None, None, None)), "free memory", "unknown", "not known"),
        (machine(memory=Memory(4 * GIB, 3 * GIB, GIB, GIB // 2)), "swap", "amber", "512 MiB in use"),
        (machine(memory=Memory(4 * GIB, 3 * GIB, 0, 0)), "swap", "green", "none"),
        (look(swapped=7), "swap", "red", "7 pages"),
        (frequency(governor="powersave"), "frequency scaling", "amber", "powersave"),
        (frequency(governor=None), "frequency scaling", "unknown", "not known"),
        (frequency(turbo=True), "turbo", "amber", "on"),
        (frequency(turbo=None), "turbo", "unknown", "not known"),
        (cpu(smt=True, topology=(Core(0, 0, 0), Core(1, 0, 0))), "threads of a core", "amber", "are 1 physical"),
        (cpu(smt=None), "threads of a core", "unknown", "not known"),
        (machine(limits=Limits(2, 1.5, None)), "quota of cores", "amber", "1.5 of 2"),
        (machine(limits=Limits(2, 2.0, None)), "quota of cores", "green", "2 of 2"),
        (look(throttled_periods=3), "quota of cores", "red", "3 times"),
        (machine(virtualisation=Virtualisation(True, "x", None)), "virtual machine", "amber", "0.0 % of the time"),
        (replace(look(stolen=0.05), machine=replace(MACHINE, virtualisation=Virtualisation(True, None, None))),
         "virtual machine", "red", "5.0 %"),
        (replace(IDEAL, was_too_hot=9), "heat", "amber", "9 times since"),
        (replace(look(too_hot=2), was_too_hot=9), "heat", "red", "2 times just now"),
        (replace(IDEAL, was_too_hot=None), "heat", "unknown", "not known"),
        (machine(software=replace(MACHINE.software, clock_source="hpet")), "clock", "amber", "hpet"),
        (machine(software=replace(MACHINE.software, clock_resolution=1e-4)), "clock", "amber", "1e-04"),
        (replace(IDEAL, readings=songs(*(1 + i / 250 for i in range(10)))), "canary, computing", "amber", "apart"),
        (replace(IDEAL, readings=songs(*(1 + i / 50 for i in range(10)))), "canary, copying", "red", "apart"),
        (replace(IDEAL, readings=songs(1.0)), "canary, computing", "unknown", "not measured"),
    ],
)  # fmt: skip
def test_every_point_has_its_colours(seen: Seen, name: str, colour: Colour, found: str) -> None:
    one = point(seen, name)
    assert one.colour == colour
    assert found in one.found
    assert bool(one.remedy) or colour in ("green", "unknown")
    assert grade(seen).usable


@pytest.mark.parametrize(
    "seen",
    [
        replace(IDEAL, readings=(None,)),
        machine(memory=Memory(GIB, 2**26, 0, 0)),
        machine(software=replace(MACHINE.software, clock_resolution=0.01)),
    ],
)
def test_where_nothing_can_be_measured(seen: Seen) -> None:
    assert not grade(seen).usable
    assert all(one.remedy for one in grade(seen).points if not one.usable)


def test_the_worst_comes_first_and_colours_the_whole() -> None:
    found = grade(replace(look(others=0.3, too_hot=1), was_too_hot=1))
    assert [one.colour for one in found.points[:3]] == ["red", "amber", "green"]
    assert found.words() == "Machine: red for measuring; 2 points to look at."


def test_what_is_not_known_is_no_fault() -> None:
    found = grade(frequency(governor=None))
    assert found.colour == "green"
    assert found.to_look_at == ()
    assert Grade(()).colour == "unknown"


def test_this_machine() -> None:
    from timetrial.meters.hardware import inventory

    here = inventory(nvidia_smi="no-such-tool")
    seen = examine(here, seconds=0.3)
    assert seen.readings and seen.readings[0] is not None
    assert len(grade(seen).points) >= 11
