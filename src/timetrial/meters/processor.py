"""The processor: model, cores and their places, caches, instruction sets, frequency."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from timetrial.meters.sysfiles import SysFiles, parse_list

_CPUS = "sys/devices/system/cpu"
# Instruction sets that decide which kernels a framework picks (x86, then Arm).
_FLAGS = (
    *("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm", "sme"),
)
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Core:
    """A logical core and the physical core, unique within its socket, that it is a thread of."""

    index: int
    socket: int
    core: int


@dataclass(frozen=True)
class Caches:
    """Bytes of one cache of each level, as the first core sees them."""

    l1d: int | None
    l2: int | None
    l3: int | None


@dataclass(frozen=True)
class Frequency:
    mhz: float | None  # now, mean over the cores
    governor: str | None
    driver: str | None
    turbo: bool | None


@dataclass(frozen=True)
class Cpu:
    model: str | None
    vendor: str | None
    sockets: int | None
    physical_cores: int | None
    logical_cores: int | None
    allowed: tuple[int, ...] | None  # which this process may use
    topology: tuple[Core, ...] | None
    smt: bool | None  # whether physical cores run more than one thread
    caches: Caches
    flags: tuple[str, ...] | None
    frequency: Frequency


def read_cpu(files: SysFiles) -> Cpu:
    blocks = _blocks(files)
    first: Mapping[str, str] = blocks[0] if blocks else {}
    topology = _topology(files, blocks)
    online = parse_list(files.text(f"{_CPUS}/online"))
    logical = len(online) if online else len(blocks) or None
    flags = first.get("flags") or first.get("Features")
    return Cpu(
        model=first.get("model name") or files.text("proc/device-tree/model") or _arm_part(first),
        vendor=first.get("vendor_id") or first.get("CPU implementer"),
        sockets=len({core.socket for core in topology}) if topology else None,
        physical_cores=len({(core.socket, core.core) for core in topology}) if topology else None,
        logical_cores=logical,
        allowed=_allowed(files),
        topology=topology,
        smt=_smt(files, topology),
        caches=_caches(files, (online or (0,))[0]),
        flags=tuple(flag for flag in _FLAGS if flag in flags.split()) if flags else None,
        frequency=_frequency(files, blocks, (online or (0,))[0]),
    )


def _blocks(files: SysFiles) -> list[dict[str, str]]:
    """/proc/cpuinfo, one mapping a logical core."""
    blocks = []
    for block in re.split(r"\n\s*\n", files.text("proc/cpuinfo") or ""):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        if "processor" in fields:
            blocks.append(fields)
    return blocks


def _arm_part(first: Mapping[str, str]) -> str | None:
    part = first.get("CPU part")
    return f"implementer {first.get('CPU implementer')} part {part}" if part else None


def _topology(files: SysFiles, blocks: list[dict[str, str]]) -> tuple[Core, ...] | None:
    """Every online core's place, from /sys, else from /proc/cpuinfo; None where one of them has none."""
    online = parse_list(files.text(f"{_CPUS}/online"))
    if online is None:
        online = tuple(int(block["processor"]) for block in blocks if block["processor"].isdigit())
    named = {block["processor"]: block for block in blocks}
    cores = []
    for index in online:
        place = f"{_CPUS}/cpu{index}/topology"
        # Core ids may repeat from die to die; the lowest thread of a physical core is a name that does not.
        siblings = parse_list(files.text(f"{place}/thread_siblings_list"))
        socket = files.number(f"{place}/physical_package_id")
        core = siblings[0] if siblings else files.number(f"{place}/core_id")
        block = named.get(str(index), {})
        socket = _int(block.get("physical id")) if socket is None else socket
        core = _int(block.get("core id")) if core is None else core
        if socket is None or core is None:
            return None
        cores.append(Core(index, socket, core))
    return tuple(cores) or None


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _allowed(files: SysFiles) -> tuple[int, ...] | None:
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)$", files.text("proc/self/status") or "", re.MULTILINE)
    return parse_list(found.group(1)) if found else None


def _smt(files: SysFiles, topology: tuple[Core, ...] | None) -> bool | None:
    active = files.number(f"{_CPUS}/smt/active")
    if active is not None:
        return active == 1
    if topology is None:
        return None
    return len({(core.socket, core.core) for core in topology}) < len(topology)


def _caches(files: SysFiles, core: int) -> Caches:
    sizes: dict[tuple[int, str], int] = {}
    for number in range(8):
        place = f"{_CPUS}/cpu{core}/cache/index{number}"
        level, kind, size = files.number(f"{place}/level"), files.text(f"{place}/type"), files.text(f"{place}/size")
        if level is not None and kind and size and size[:-1].isdigit() and size[-1] in _UNITS:
            sizes[level, kind] = int(size[:-1]) * _UNITS[size[-1]]
    unified = [sizes.get((level, "Unified"), sizes.get((level, "Data"))) for level in (2, 3)]
    return Caches(sizes.get((1, "Data"), sizes.get((1, "Unified"))), *unified)


def _frequency(files: SysFiles, blocks: list[dict[str, str]], core: int) -> Frequency:
    place = f"{_CPUS}/cpu{core}/cpufreq"
    return Frequency(
        mhz=_mhz(files, blocks),
        governor=files.text(f"{place}/scaling_governor"),
        driver=files.text(f"{place}/scaling_driver"),
        turbo=_turbo(files),
    )


def _mhz(files: SysFiles, blocks: list[dict[str, str]]) -> float | None:
    said = [block["cpu MHz"] for block in blocks if re.fullmatch(r"\d+(\.\d+)?", block.get("cpu MHz", ""))]
    rates = [float(value) for value in said]
    if not rates:
        places = [f"{_CPUS}/cpu{block['processor']}/cpufreq/scaling_cur_freq" for block in blocks]
        rates = [kilohertz / 1000 for place in places if (kilohertz := files.number(place)) is not None]
    return round(sum(rates) / len(rates), 1) if rates else None


def _turbo(files: SysFiles) -> bool | None:
    """Intel's driver says whether turbo is off, the others whether boost is on."""
    off = files.number(f"{_CPUS}/intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    on = files.number(f"{_CPUS}/cpufreq/boost")
    return None if on is None else on == 1
