"""The machine as read from a made-up tree of /proc and /sys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from timetrial.meters.hardware import Gpu, Machine, TooFewCores, cores_for, fingerprint, inventory
from timetrial.meters.sysfiles import parse_list

NO_GPU_TOOL = "no-such-gpu-tool"
GIB = 2**30


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="utf-8")


def cpuinfo(cores: int, flags: str) -> str:
    block = "processor\t: {}\nvendor_id\t: GenuineIntel\nmodel name\t: Made-up CPU @ 2.00GHz\ncpu MHz\t\t: {}\nflags\t\t: {}\n"
    return "\n".join(block.format(index, 2000 + 100 * index, flags) for index in range(cores))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two sockets of two physical cores of two threads; the second threads are 4 to 7, as Linux counts them."""
    cpus = "sys/devices/system/cpu"
    put(
        tmp_path,
        {
            "proc/cpuinfo": cpuinfo(8, "fpu sse4_2 avx avx2 fma avx512f amx_tile"),
            "proc/meminfo": "MemTotal: 16252928 kB\nMemAvailable: 8126464 kB\nSwapTotal: 1024 kB\nSwapFree: 0 kB",
            "proc/self/status": "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7",
            "proc/self/cgroup": "0::/team/job",
            "proc/self/maps": "7f00 r-xp /usr/lib/libjemalloc.so.2",
            "proc/loadavg": "0.50 1.25 2.00 1/100 4242",
            "proc/sys/kernel/osrelease": "6.1.0-13-amd64",
            "proc/sys/kernel/hostname": "secret-name",
            "etc/os-release": 'NAME="Made-up"\nPRETTY_NAME="Made-up Linux 1"\n',
            "sys/class/dmi/id/sys_vendor": "Maker",
            "sys/class/dmi/id/product_name": "Server 1",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            f"{cpus}/online": "0-7",
            f"{cpus}/smt/active": "1",
            f"{cpus}/intel_pstate/no_turbo": "0",
            f"{cpus}/cpu0/cpufreq/scaling_governor": "performance",
            f"{cpus}/cpu0/cpufreq/scaling_driver": "intel_pstate",
        },
    )
    for index in range(8):
        place = f"{cpus}/cpu{index}/topology"
        # Core ids repeat in each socket, as they do on real machines.
        core, package = index % 2, (index % 4) // 2
        siblings = f"{index % 4},{index % 4 + 4}"
        put(
            tmp_path,
            {
                f"{place}/physical_package_id": str(package),
                f"{place}/core_id": str(core),
                f"{place}/thread_siblings_list": siblings,
            },
        )
    caches = (("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "60M"))
    for number, (level, kind, size) in enumerate(caches):
        place = f"{cpus}/cpu0/cache/index{number}"
        put(tmp_path, {f"{place}/level": level, f"{place}/type": kind, f"{place}/size": size})
    return tmp_path


def machine(root: Path) -> Machine:
    return inventory(root, NO_GPU_TOOL)


def test_cpu(root: Path) -> None:
    cpu = machine(root).cpu
    assert (cpu.model, cpu.vendor) == ("Made-up CPU @ 2.00GHz", "GenuineIntel")
    assert (cpu.sockets, cpu.physical_cores, cpu.logical_cores, cpu.smt) == (2, 4, 8, True)
    assert cpu.flags == ("sse4_2", "avx", "fma", "avx2", "avx512f", "amx_tile")
    assert (cpu.caches.l1d, cpu.caches.l2, cpu.caches.l3) == (48 * 1024, 2**21, 60 * 2**20)
    assert cpu.frequency.mhz == 2350.0
    assert (cpu.frequency.governor, cpu.frequency.driver, cpu.frequency.turbo) == ("performance", "intel_pstate", True)


def test_memory_software_and_load(root: Path) -> None:
    found = machine(root)
    assert (found.memory.total, found.memory.available) == (16252928 * 1024, 8126464 * 1024)
    assert (found.memory.swap_total, found.memory.swap_free) == (2**20, 0)
    assert (found.software.kernel, found.software.os) == ("6.1.0-13-amd64", "Made-up Linux 1")
    assert found.software.malloc == "jemalloc"
    assert found.software.clock_source == "tsc" and 0 < found.software.clock_resolution < 1e-3
    assert found.load == (0.5, 1.25, 2.0)
    assert found.gpus is None


def test_the_hosts_name_is_not_kept(root: Path) -> None:
    first = machine(root)
    assert first.host and "secret" not in repr(first)
    put(root, {"proc/sys/kernel/hostname": "other-name"})
    assert machine(root).host != first.host


def test_nothing_readable_is_none_and_never_invented(tmp_path: Path) -> None:
    found = machine(tmp_path)
    assert found.cpu.model is None and found.cpu.topology is None and found.cpu.allowed is None
    assert (found.cpu.sockets, found.cpu.physical_cores, found.cpu.logical_cores) == (None, None, None)
    assert found.cpu.smt is None and found.cpu.flags is None and found.cpu.frequency.turbo is None
    assert found.memory.total is None and found.load is None and found.host is None
    assert (found.limits.cgroup, found.limits.cpus, found.limits.memory) == (None, None, None)
    assert found.virtualisation.hypervisor is None and found.software.malloc is None
    assert len(fingerprint(found)) == 16


def test_cgroup_v2_takes_the_tightest_limit_on_the_way_up(root: Path) -> None:
    put(
        root,
        {
            "sys/fs/cgroup/team/cpu.max": "150000 100000",
            "sys/fs/cgroup/team/job/cpu.max": "max 100000",
            "sys/fs/cgroup/team/memory.max": "max",
            "sys/fs/cgroup/team/job/memory.max": str(GIB),
        },
    )
    limits = machine(root).limits
    assert (limits.cgroup, limits.cpus, limits.memory) == (2, 1.5, GIB)


def test_cgroup_v2_in_a_container_whose_path_is_the_hosts(root: Path) -> None:
    put(root, {"proc/self/cgroup": "0::/host/only/path", "sys/fs/cgroup/cpu.max": "200000 100000"})
    assert machine(root).limits.cpus == 2.0


def test_cgroup_v1_with_joint_controllers(root: Path) -> None:
    (root / "sys/fs/cgroup/cgroup.controllers").unlink()
    put(
        root,
        {
            "proc/self/cgroup": "4:memory:/job\n2:cpu,cpuacct:/job\n0::/",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    limits = machine(root).limits
    assert (limits.cgroup, limits.cpus, limits.memory) == (1, 0.5, None)


def test_virtualisation(root: Path) -> None:
    bare = machine(root).virtualisation
    assert (bare.hypervisor, bare.product, bare.container) == (False, "Maker Server 1", None)
    put(root, {"proc/cpuinfo": cpuinfo(8, "fpu hypervisor"), "proc/1/cgroup": "0::/kubepods/pod1"})
    virtual = machine(root).virtualisation
    assert (virtual.hypervisor, virtual.container) == (True, "kubepods")


def test_topology_falls_back_to_cpuinfo(tmp_path: Path) -> None:
    block = "processor : {}\nmodel name : M\nphysical id : 0\ncore id : {}\n"
    put(tmp_path, {"proc/cpuinfo": "\n".join(block.format(index, index // 2) for index in range(4))})
    cpu = machine(tmp_path).cpu
    assert (cpu.sockets, cpu.physical_cores, cpu.logical_cores, cpu.smt) == (1, 2, 4, True)


def test_cores_for_takes_physical_cores_first(root: Path) -> None:
    found = machine(root)
    assert cores_for(1, found) == (0,)
    assert cores_for(2, found) == (0, 1)
    assert cores_for(4, found) == (0, 1, 2, 3)
    assert cores_for(5, found) == (0, 1, 2, 3, 4)
    assert cores_for(8, found) == tuple(range(8))


def test_cores_for_keeps_to_the_allowed_ones(root: Path) -> None:
    put(root, {"proc/self/status": "Cpus_allowed_list:\t1,4-5,7"})
    found = machine(root)
    assert cores_for(2, found) == (1, 4)  # 1 and 5 share a core, 4 is alone in socket 0, 7 is in socket 1
    assert cores_for(3, found) == (1, 4, 7)
    assert cores_for(4, found) == (1, 4, 5, 7)
    with pytest.raises(TooFewCores, match="may use 4 cores"):
        cores_for(5, found)
    with pytest.raises(TooFewCores):
        cores_for(0, found)


def test_cores_for_without_a_known_topology(root: Path) -> None:
    found = machine(root)
    unknown = replace(found, cpu=replace(found.cpu, topology=None, allowed=(2, 3, 6)))
    assert len(set(cores_for(2, unknown))) == 2 and set(cores_for(3, unknown)) == {2, 3, 6}


def test_fingerprint_ignores_what_passes(root: Path) -> None:
    before = fingerprint(machine(root))
    put(
        root,
        {
            "proc/loadavg": "9 9 9 1/1 1",
            "proc/sys/kernel/osrelease": "6.1.7-other",
            "proc/sys/kernel/hostname": "other",
            "proc/meminfo": "MemTotal: 16252000 kB\nMemAvailable: 1 kB",
        },
    )
    assert fingerprint(machine(root)) == before


@pytest.mark.parametrize(
    "change",
    [
        {"proc/sys/kernel/osrelease": "6.2.0"},
        {"proc/meminfo": "MemTotal: 33554432 kB"},
        {"sys/devices/system/cpu/online": "0-3"},
        {".dockerenv": ""},
        {"sys/class/dmi/id/product_name": "Server 2"},
    ],
)
def test_fingerprint_sees_what_matters(root: Path, change: dict[str, str]) -> None:
    before = fingerprint(machine(root))
    put(root, change)
    assert fingerprint(machine(root)) != before


def gpu_tool(folder: Path, script: str) -> str:
    tool = folder / "gpu-tool"
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)
    return str(tool)


def test_gpus_are_parsed_and_part_of_the_fingerprint(root: Path) -> None:
    rows = "GPU One, 81559, 550.54.15\\nGPU Two, [N/A], [N/A]"
    found = inventory(root, gpu_tool(root, f"printf '{rows}\\n'"))
    assert found.gpus == (Gpu("GPU One", 81559 * 2**20, "550.54.15"), Gpu("GPU Two", None, None))
    assert fingerprint(found) != fingerprint(machine(root))


def test_a_failing_gpu_tool_is_not_no_gpu(root: Path) -> None:
    assert inventory(root, gpu_tool(root, "echo 'no driver'; exit 9")).gpus is None


def test_parse_list() -> None:
    assert parse_list("0-3,8,10-11") == (0, 1, 2, 3, 8, 10, 11)
    assert parse_list("") is None and parse_list("0-x") is None


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the real /proc")
def test_this_machine() -> None:
    found = inventory(nvidia_smi=NO_GPU_TOOL)
    assert found.cpu.allowed and found.memory.total and found.software.kernel
    assert cores_for(1, found)[0] in found.cpu.allowed
    assert fingerprint(found) == fingerprint(inventory(nvidia_smi=NO_GPU_TOOL))
