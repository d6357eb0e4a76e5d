"""Who else wanted the machine while a run went on: two snapshots of the kernel's own counters, and their difference.

The snapshots are taken before the worker starts and after it has ended, so that they cost the run nothing. All is read
below a root. What cannot be read is None: not measured.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from timetrial.meters.sysfiles import SysFiles

RESOURCES = ("cpu", "memory", "io")
_CPUS = "sys/devices/system/cpu"
_GROUPS = "sys/fs/cgroup"


@dataclass(frozen=True)
class Ticks:
    """Seconds since the start of the machine, of one core or of all."""

    busy: float  # all but idle, waiting for a disk, and stolen
    stolen: float  # by the hypervisor, for somebody else
    total: float


@dataclass(frozen=True)
class Throttling:
    """By the control group's quota, of this group or any above it."""

    periods: int
    seconds: float


@dataclass(frozen=True)
class Snapshot:
    seconds: float  # of the clock
    own_seconds: float  # CPU time of this process and of its children that have ended
    machine: Ticks | None
    cores: Mapping[int, Ticks]
    stalls: Mapping[str, float]  # seconds in which something waited, by resource; the machine's
    group_stalls: Mapping[str, float]  # likewise of the own control group
    throttling: Throttling | None
    load: float | None  # of the last minute
    running: int | None  # processes that run or want to
    mhz: Mapping[int, float]  # now, by core
    too_hot: int | None  # how often a core was slowed down for its heat
    swapped: int | None  # pages brought in or out


@dataclass(frozen=True)
class Difference:
    """What happened between two snapshots. Shares are of the time between them."""

    seconds: float
    stolen: float | None = None  # share of the run's cores' time
    others: float | None = None  # cores that everybody else on the machine kept busy
    stalls: Mapping[str, float] = field(default_factory=dict)  # share of time in which something waited
    group_stalls: Mapping[str, float] = field(default_factory=dict)
    throttled_periods: int | None = None
    throttled: float | None = None  # share of time
    load: float | None = None  # before the run
    running: int | None = None  # before the run, this process not counted
    mhz_before: float | None = None  # mean over the run's cores
    mhz_after: float | None = None
    too_hot: int | None = None
    swapped: int | None = None


def snapshot(cores: Iterable[int] | None = None, root: Path = Path("/")) -> Snapshot:
    """`cores` are those of the run: steal and frequency are theirs. None: all cores."""
    files = SysFiles(root)
    machine, each = parse_stat(files.text("proc/stat") or "", os.sysconf("SC_CLK_TCK"))
    wanted = sorted(each if cores is None else set(cores))
    load, running = parse_load(files.text("proc/loadavg") or "")
    return Snapshot(
        seconds=time.monotonic(),
        own_seconds=_own_seconds(),
        machine=machine,
        cores={core: each[core] for core in wanted if core in each},
        stalls=_stalls(files, {name: f"proc/pressure/{name}" for name in RESOURCES}),
        group_stalls=_stalls(files, _group_pressure(files)),
        throttling=_throttling(files),
        load=load,
        running=running,
        mhz=_mhz(files, wanted),
        too_hot=_too_hot(files, wanted),
        swapped=parse_swapped(files.text("proc/vmstat") or ""),
    )


def difference(before: Snapshot, after: Snapshot) -> Difference:
    seconds = max(after.seconds - before.seconds, 1e-9)
    periods, throttled = _throttled(before.throttling, after.throttling)
    return Difference(
        seconds=seconds,
        stolen=_stolen(before.cores, after.cores),
        others=_others(before, after, seconds),
        stalls=_shares(before.stalls, after.stalls, seconds),
        group_stalls=_shares(before.group_stalls, after.group_stalls, seconds),
        throttled_periods=periods,
        throttled=None if throttled is None else throttled / seconds,
        load=before.load,
        running=None if before.running is None else max(before.running - 1, 0),
        mhz_before=_mean(before.mhz.values()),
        mhz_after=_mean(after.mhz.values()),
        too_hot=_growth(before.too_hot, after.too_hot),
        swapped=_growth(before.swapped, after.swapped),
    )


# --- from text --------------------------------------------------------------------------------------------------------


def parse_stat(text: str, per_second: int) -> tuple[Ticks | None, dict[int, Ticks]]:
    """The machine's line of /proc/stat, and those of its cores by number."""
    machine, cores = None, dict[int, Ticks]()
    for name, numbers in re.findall(r"^cpu(\d*)\s+([\d ]+)$", text, re.MULTILINE):
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are already in user and nice
        values = [int(number) / per_second for number in numbers.split()[:8]]
        values += [0.0] * (8 - len(values))
        busy = sum(values[:3]) + values[5] + values[6]
        ticks = Ticks(busy, values[7], sum(values))
        if name:
            cores[int(name)] = ticks
        else:
            machine = ticks
    return machine, cores


def parse_pressure(text: str) -> float | None:
    """Seconds in which at least one task waited: `some … total=MICROSECONDS`."""
    found = re.search(r"^some .*\btotal=(\d+)", text, re.MULTILINE)
    return int(found.group(1)) / 1e6 if found else None


def parse_load(text: str) -> tuple[float | None, int | None]:
    """Load of the last minute, and how many processes run or want to: `0.87 0.63 0.28 2/104 5675`."""
    found = re.match(r"([\d.]+) \S+ \S+ (\d+)/\d+", text)
    return (float(found.group(1)), int(found.group(2))) if found else (None, None)


def parse_throttling(text: str) -> Throttling | None:
    """`cpu.stat` of a control group: version 2 counts microseconds, version 1 nanoseconds."""
    found = dict(re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE))
    if "nr_throttled" not in found:
        return None
    seconds = int(found.get("throttled_usec", 0)) / 1e6 + int(found.get("throttled_time", 0)) / 1e9
    return Throttling(int(found["nr_throttled"]), seconds)


def parse_swapped(text: str) -> int | None:
    found = re.findall(r"^pswp(?:in|out) (\d+)$", text, re.MULTILINE)
    return sum(map(int, found)) if found else None


# --- from files -------------------------------------------------------------------------------------------------------


def _own_seconds() -> float:
    """Children count from when they were waited for: the whole run does in the second snapshot."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _stalls(files: SysFiles, places: Mapping[str, str]) -> dict[str, float]:
    found = {name: parse_pressure(files.text(place) or "") for name, place in places.items()}
    return {name: value for name, value in found.items() if value is not None}


def _groups(files: SysFiles) -> dict[str, str]:
    """The own control group's path by controller; version 2 has one for all, under the empty name."""
    paths = {}
    for line in files.lines("proc/self/cgroup"):
        _, _, rest = line.partition(":")
        words, _, path = rest.partition(":")
        paths.update(dict.fromkeys(words.split(","), path))
    return paths


def _group_pressure(files: SysFiles) -> dict[str, str]:
    """Only version 2 keeps pressure by group; the machine's root group has none of its own."""
    path = _groups(files).get("", "/").strip("/")
    base = _GROUPS if files.exists(f"{_GROUPS}/cgroup.controllers") else f"{_GROUPS}/unified"
    return {name: f"{base}/{path}/{name}.pressure" for name in RESOURCES} if path else {}


def _throttling(files: SysFiles) -> Throttling | None:
    groups = _groups(files)
    if files.exists(f"{_GROUPS}/cgroup.controllers"):
        base, path = _GROUPS, groups.get("", "/")
    else:
        base, path = f"{_GROUPS}/cpu", groups.get("cpu", "/")
    found = [parse_throttling(text) for text in files.texts(files.upwards(base, path), "cpu.stat")]
    counted = [one for one in found if one is not None]
    if not counted:
        return None
    return Throttling(max(one.periods for one in counted), max(one.seconds for one in counted))


def _mhz(files: SysFiles, cores: Sequence[int]) -> dict[int, float]:
    """What the frequency driver says, else /proc/cpuinfo (on a virtual machine a constant)."""
    found = {core: files.number(f"{_CPUS}/cpu{core}/cpufreq/scaling_cur_freq") for core in cores}
    mhz = {core: kilohertz / 1000 for core, kilohertz in found.items() if kilohertz is not None}
    if mhz:
        return mhz
    text = files.text("proc/cpuinfo") or ""
    said = re.findall(r"^processor\s*:\s*(\d+)$(?:(?!^processor).)*?^cpu MHz\s*:\s*([\d.]+)$", text, re.M | re.S)
    return {int(core): float(rate) for core, rate in said if int(core) in cores}


def _too_hot(files: SysFiles, cores: Sequence[int]) -> int | None:
    names = ("core_throttle_count", "package_throttle_count")
    found = [files.number(f"{_CPUS}/cpu{core}/thermal_throttle/{name}") for core in cores for name in names]
    counted = [count for count in found if count is not None]
    return sum(counted) if counted else None


# --- differences ------------------------------------------------------------------------------------------------------


def _stolen(before: Mapping[int, Ticks], after: Mapping[int, Ticks]) -> float | None:
    both = [core for core in after if core in before]
    total = sum(after[core].total - before[core].total for core in both)
    stolen = sum(after[core].stolen - before[core].stolen for core in both)
    return max(stolen, 0.0) / total if total > 0 else None


def _others(before: Snapshot, after: Snapshot, seconds: float) -> float | None:
    """All that was busy, without this process and the children that ended meanwhile."""
    if before.machine is None or after.machine is None:
        return None
    busy = after.machine.busy - before.machine.busy
    return max(busy - (after.own_seconds - before.own_seconds), 0.0) / seconds


def _shares(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    return {name: max(after[name] - before[name], 0.0) / seconds for name in after if name in before}


def _throttled(before: Throttling | None, after: Throttling | None) -> tuple[int | None, float | None]:
    if before is None or after is None:
        return None, None
    return max(after.periods - before.periods, 0), max(after.seconds - before.seconds, 0.0)


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
