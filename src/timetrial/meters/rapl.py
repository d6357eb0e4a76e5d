"""Energy counters of processors, as Linux shows them: RAPL domains below /sys/class/powercap (Intel and AMD).

A package holds its parts (core, uncore) but not its memory (dram); psys is the whole platform, packages included.
"""

from __future__ import annotations

import re
from pathlib import Path

from timetrial.meters.power_source import PowerSource, Unreadable

_ZONE = re.compile(r"(intel-rapl|intel-rapl-mmio):\d+(:\d+)?")
_MICRO = 1e-6


def find(root: Path) -> tuple[list[PowerSource], list[str]]:
    """The domains, and why there are none or not all. The same package may be shown twice (registers and memory)."""
    base = root / "class" / "powercap"
    found: dict[str, PowerSource] = {}
    problems = []
    for zone in _zones(base):
        try:
            source = _source(base, zone)
            source.read()
        except Unreadable as error:
            problems.append(f"RAPL {zone}: {error}")
        else:
            found.setdefault(source.domain, source)
    if not found and not problems:
        problems.append(f"no RAPL domains under {base}")
    return list(found.values()), problems


def _zones(base: Path) -> list[str]:
    """Flat, as the kernel links them; those of the registers first."""
    try:
        names = [path.name for path in base.iterdir() if _ZONE.fullmatch(path.name)]
    except OSError:
        return []
    return sorted(names, key=lambda name: (name.partition(":")[0], [int(n) for n in name.split(":")[1:]]))


def _source(base: Path, zone: str) -> PowerSource:
    name = _text(base / zone / "name")
    parent = zone.rpartition(":")[0] if zone.count(":") > 1 else ""
    counter = base / zone / "energy_uj"
    return PowerSource(
        source="RAPL",
        domain=f"{_text(base / parent / 'name')}/{name}" if parent else name,
        device="cpu",
        kind="counter",
        read=lambda: _MICRO * _number(counter),
        wraps_at=_range(base / zone / "max_energy_range_uj"),
        inside=bool(parent) and name != "dram",
    )


def _range(path: Path) -> float | None:
    try:
        return _MICRO * _number(path)
    except Unreadable:
        return None


def _number(path: Path) -> int:
    text = _text(path)
    try:
        return int(text)
    except ValueError:
        raise Unreadable(f"{path} holds no number but {text[:20]!r}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except PermissionError:
        remedy = f"run as root, or give the right to read it: sudo chmod a+r {path}"
        raise Unreadable(f"{path} may not be read; {remedy}") from None
    except OSError as error:
        raise Unreadable(f"{path} cannot be read ({error.strerror})") from None
