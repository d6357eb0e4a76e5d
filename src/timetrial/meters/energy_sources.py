"""Which energy this machine can tell: its counters, unless a study asks for a stand-in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from timetrial.meters import nvml, rapl, stand_ins
from timetrial.meters.power_source import PowerSource, Unreadable

REMEDY = (
    "measure on a machine whose kernel or driver shows them (a virtual machine mostly does not), or leave energy out"
)


@dataclass(frozen=True)
class Choice:
    """Where to look. In a container the machine's /sys may lie elsewhere: TIMETRIAL_SYSFS says where."""

    sysfs: str = field(default_factory=lambda: os.environ.get("TIMETRIAL_SYSFS", "/sys"))
    nvml: str = field(default_factory=lambda: os.environ.get("TIMETRIAL_NVML", nvml.LIBRARY))
    replay: str = ""  # a file; then nothing else is looked at
    model: tuple[float, float] | None = None  # watts at rest, and of a busy core; then nothing else is looked at

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Choice:
        return cls(**{**found, "model": tuple(found["model"]) if found["model"] else None})


@dataclass(frozen=True)
class Sources:
    found: tuple[PowerSource, ...] = ()
    problems: tuple[str, ...] = ()  # why there is none, or not all

    @property
    def words(self) -> str:
        """What a person is told once, where nothing can be measured."""
        if self.found:
            return ""
        remedy = "" if any("; " in problem for problem in self.problems) else f": {REMEDY}"
        return f"Energy: not measured ({'; '.join(self.problems)}){remedy}."

    @property
    def listed(self) -> str:
        """What there is, as a machine's other facts are told."""
        named = ", ".join(f"{one.domain} ({one.source})" for one in self.found if not one.inside)
        return named or f"not measured: {'; '.join(self.problems)}"


def find(choice: Choice) -> Sources:
    try:
        if choice.replay:
            return Sources(_once(stand_ins.replay(Path(choice.replay))))
        if choice.model:
            return Sources((stand_ins.modelled(*choice.model),))
    except Unreadable as error:
        return Sources(problems=(str(error),))
    processors, without = rapl.find(Path(choice.sysfs))
    gpus, lacking = nvml.find(choice.nvml)
    return Sources(_once([*processors, *gpus]), (*without, *lacking))


def _once(sources: list[PowerSource]) -> tuple[PowerSource, ...]:
    """The platform (psys) holds its packages: where these are told, it is shown and not added."""
    packages = any(one.domain.startswith("package") for one in sources)
    return tuple(replace(one, inside=True) if one.domain == "psys" and packages else one for one in sources)
