"""The machine: what it is, what of it this process may use, and whether two times were measured on equal ones.

All is read from /proc and /sys below a root, so that a test can show another machine. What cannot be read is None.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from timetrial.meters.processor import Core, Cpu, read_cpu
from timetrial.meters.sysfiles import SysFiles

N = TypeVar("N", int, float)

_MEMORY_SETTINGS = re.compile(r"MALLOC_|GLIBC_TUNABLES$|LD_PRELOAD$")
_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")
_CONTAINERS = ("docker", "kubepods", "containerd", "libpod", "lxc")
_UNLIMITED = 2**60  # cgroup v1 writes "no limit" as the largest multiple of a page
_GPU_QUERY = ("--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits")


class TooFewCores(ValueError):
    """More threads are asked for than this process may use cores."""


@dataclass(frozen=True)
class Memory:
    total: int | None  # bytes, all of them
    available: int | None
    swap_total: int | None
    swap_free: int | None


@dataclass(frozen=True)
class Limits:
    """What the control group grants. None: no limit, or none that can be read."""

    cgroup: int | None  # version
    cpus: float | None  # quota in whole cores
    memory: int | None  # bytes


@dataclass(frozen=True)
class Virtualisation:
    hypervisor: bool | None  # the processor's own flag
    product: str | None  # vendor and product as the firmware names them
    container: str | None  # None: no sign of one


@dataclass(frozen=True)
class Gpu:
    name: str
    memory: int | None  # bytes
    driver: str | None


@dataclass(frozen=True)
class Software:
    kernel: str | None
    os: str | None
    python: str
    libc: str | None
    malloc: str | None
    malloc_settings: tuple[tuple[str, str], ...]
    clock_source: str | None
    clock_resolution: float  # seconds, of the clock that times laps


@dataclass(frozen=True)
class Machine:
    cpu: Cpu
    memory: Memory
    limits: Limits
    virtualisation: Virtualisation
    gpus: tuple[Gpu, ...] | None  # None: no tool to ask
    software: Software
    load: tuple[float, float, float] | None
    host: str | None  # a hash, not the name


def inventory(root: Path = Path("/"), nvidia_smi: str = "nvidia-smi") -> Machine:
    """Read the machine. Takes a few milliseconds, and what the GPU's tool takes."""
    files = SysFiles(root)
    return Machine(
        cpu=read_cpu(files),
        memory=_memory(files),
        limits=_limits(files),
        virtualisation=_virtualisation(files),
        gpus=_gpus(nvidia_smi),
        software=_software(files),
        load=_load(files),
        host=_host(files),
    )


def fingerprint(machine: Machine) -> str:
    """A hash of what must be equal for times to be comparable. Memory is rounded up to even GiB: the kernel keeps back
    a little that changes from version to version, so what is seen lies somewhat below what is built in."""
    cpu, memory, kernel = machine.cpu, machine.memory.total, machine.software.kernel
    virtual = machine.virtualisation
    equal = {
        "cpu": cpu.model,
        "cores": [cpu.sockets, cpu.physical_cores, cpu.logical_cores],
        "memory_gib": None if memory is None else 2 * math.ceil(memory / 2**31),
        "gpus": None if machine.gpus is None else [[gpu.name, gpu.memory] for gpu in machine.gpus],
        "kernel": None if kernel is None else ".".join(kernel.split(".")[:2]),
        "virtualisation": [virtual.hypervisor, virtual.product, virtual.container],
    }
    return hashlib.sha256(json.dumps(equal, sort_keys=True).encode()).hexdigest()[:16]


def cores_for(threads: int, machine: Machine) -> tuple[int, ...]:
    """Which logical cores to give to so many threads: each a physical core of its own as long as there are any, and
    only then the second threads of cores already taken. One socket is filled before the next."""
    allowed = machine.cpu.allowed
    if allowed is None:
        raise TooFewCores("the cores this process may use cannot be read on this system; leave the thread count open")
    if not 1 <= threads <= len(allowed):
        raise TooFewCores(
            f"{threads} threads are asked for, but this process may use {len(allowed)} cores; "
            f"ask for 1 to {len(allowed)}"
        )
    known = {core.index: core for core in machine.cpu.topology or ()}
    # A core whose place is unknown counts as a socket and a physical core of its own.
    cores = [known.get(index, Core(index, -1, -1 - index)) for index in allowed]
    order = sorted((_rank(core, cores), core.socket, core.core, core.index) for core in cores)
    return tuple(sorted(index for _, _, _, index in order[:threads]))


def _rank(core: Core, cores: Sequence[Core]) -> int:
    """How many allowed threads of the same physical core come before this one."""
    place = (core.socket, core.core)
    return sum((other.socket, other.core) == place and other.index < core.index for other in cores)


def _memory(files: SysFiles) -> Memory:
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", files.text("proc/meminfo") or "", re.MULTILINE))
    names = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    return Memory(*(int(found[name]) * 1024 if name in found else None for name in names))


def _limits(files: SysFiles) -> Limits:
    base = "sys/fs/cgroup"
    paths = {words[1]: words[2] for line in files.lines("proc/self/cgroup") if len(words := line.split(":", 2)) == 3}
    if files.text(f"{base}/cgroup.controllers") is not None:
        folders = files.upwards(base, paths.get("", "/"))
        quotas = [_quota(*text.split()) for text in files.texts(folders, "cpu.max") if len(text.split()) == 2]
        return Limits(2, _least(quotas), _least(_bytes(text) for text in files.texts(folders, "memory.max")))
    if not files.exists(f"{base}/cpu") and not files.exists(f"{base}/memory"):
        return Limits(None, None, None)
    by_controller = {word: path for words, path in paths.items() for word in words.split(",")}
    cpu = files.upwards(f"{base}/cpu", by_controller.get("cpu", "/"))
    memory = files.upwards(f"{base}/memory", by_controller.get("memory", "/"))
    pairs = [(files.text(f"{at}/cpu.cfs_quota_us"), files.text(f"{at}/cpu.cfs_period_us")) for at in cpu]
    quotas = [_quota(quota, period) for quota, period in pairs if quota and period]
    return Limits(1, _least(quotas), _least(_bytes(text) for text in files.texts(memory, "memory.limit_in_bytes")))


def _least(limits: Iterable[N | None]) -> N | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _quota(quota: str, period: str) -> float | None:
    """Microseconds of CPU time a period, in whole cores; `max` and -1 are no limit."""
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def _bytes(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else None


def _virtualisation(files: SysFiles) -> Virtualisation:
    flags = re.search(r"^flags\s*:(.*)$", files.text("proc/cpuinfo") or "", re.MULTILINE)
    names = (files.text("sys/class/dmi/id/sys_vendor"), files.text("sys/class/dmi/id/product_name"))
    product = " ".join(name for name in names if name) or files.text("sys/hypervisor/type")
    return Virtualisation(
        hypervisor="hypervisor" in flags.group(1).split() if flags else None,
        product=product,
        container=_container(files),
    )


def _container(files: SysFiles) -> str | None:
    if files.exists(".dockerenv"):
        return "docker"
    if files.exists("run/.containerenv"):
        return "podman"
    named = files.text("run/systemd/container")
    if named:
        return named
    groups = files.text("proc/1/cgroup") or ""
    return next((word for word in _CONTAINERS if word in groups), None)


def _gpus(program: str) -> tuple[Gpu, ...] | None:
    found = shutil.which(program)
    if found is None:
        return None
    try:
        done = subprocess.run([found, *_GPU_QUERY], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    rows = [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines()]
    return tuple(_gpu(*row) for row in rows if len(row) == 3)


def _gpu(name: str, mebibytes: str, driver: str) -> Gpu:
    known = driver and not driver.startswith("[")
    return Gpu(name, int(mebibytes) * 2**20 if mebibytes.isdigit() else None, driver if known else None)


def _software(files: SysFiles) -> Software:
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', files.text("etc/os-release") or "", re.MULTILINE)
    libc = " ".join(platform.libc_ver()).strip() or None
    settings = sorted((name, value) for name, value in os.environ.items() if _MEMORY_SETTINGS.match(name))
    return Software(
        kernel=files.text("proc/sys/kernel/osrelease"),
        os=system.group(1) if system else None,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        libc=libc,
        malloc=_malloc(files, libc),
        malloc_settings=tuple(settings),
        clock_source=files.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_resolution=time.get_clock_info("perf_counter").resolution,
    )


def _malloc(files: SysFiles, libc: str | None) -> str | None:
    """Who serves `malloc` in this process: a library loaded in its place, or the C library's own."""
    mapped = files.text("proc/self/maps")
    if mapped is None:
        return None
    other = next((name for name in _ALLOCATORS if f"lib{name}" in mapped), None)
    return other or libc


def _load(files: SysFiles) -> tuple[float, float, float] | None:
    words = (files.text("proc/loadavg") or "").split()
    return (float(words[0]), float(words[1]), float(words[2])) if len(words) >= 3 else None


def _host(files: SysFiles) -> str | None:
    name = files.text("proc/sys/kernel/hostname")
    return None if not name else hashlib.sha256(f"timetrial {name}".encode()).hexdigest()[:12]
