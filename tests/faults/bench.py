"""Puts the fake engines where the real ones are, with plans of milliseconds, and studies to try them with."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.faults import adapters
from timetrial.cli.loading import trials_of
from timetrial.engines import checks, locate, pins, registry
from timetrial.meters.canary import Canary
from timetrial.records.record import Record
from timetrial.runner import profiles, session
from timetrial.runner.campaign import Campaign
from timetrial.spec.study import Study, parse_study


class Mute(Canary):
    """Is never measured, so that a run takes no longer than its plan."""

    def __enter__(self) -> Canary:
        return self

    def sing(self, cores: Sequence[int]) -> None:
        return None


FILE = Path(__file__).with_name("adapters.py")
TINY = profiles.LapPlan(laps=3, lap_seconds=0.002, seconds=0.02, warmup_seconds=0.5, window=2, tolerance=0.5)

NETWORK = {
    "name": "tiny",
    "input": {"shape": [6, 6, 2]},
    "layers": [
        {"conv2d": {"filters": 3, "kernel": 3, "padding": "same"}},
        "tanh",
        "flatten",
        {"dense": {"units": 4, "activation": "softmax", "bias_init": {"uniform": {"low": -0.5, "high": 0.5}}}},
    ],
}
STUDY: dict[str, Any] = {
    "study": "faults",
    "networks": [NETWORK],
    "engines": ["honest"],
    "recipe": {"batch": 16, "optimiser": {"kind": "sgd", "rate": 0.05, "momentum": 0.9}},
    "samples": 64,
    "repeat": 1,
    "anchor": False,
    "profile": "quick",
    "limits": {"timeout": 20},
}


def fakes() -> dict[str, registry.Engine]:
    found = inspect.getmembers(adapters, lambda item: inspect.isclass(item) and issubclass(item, adapters.Honest))
    return {name.lower(): engine(name) for name, _ in found}


def engine(name: str, file: Path = FILE) -> registry.Engine:
    return registry.Engine(
        name=name.lower(), adapter=f"{file}:{name}", family=None, needs=("numpy",), distributions=("numpy",),
        summary="broken on purpose", check=checks.REFERENCE,
    )  # fmt: skip


def install(set_: Callable[[Any, str, Any], None], engines: Mapping[str, registry.Engine] | None = None) -> None:
    """`set_` is monkeypatch.setattr in a test and setattr in a process of its own."""
    together = MappingProxyType({**registry.ENGINES, **(fakes() if engines is None else engines)})
    for module in (registry, locate, pins):
        set_(module, "ENGINES", together)
    set_(session, "Canary", Mute)
    set_(profiles, "_PLANS", dict.fromkeys(profiles._PLANS, TINY))


def study(*engines: str, **changes: Any) -> Study:
    return parse_study({**STUDY, "engines": list(engines) or ["honest"], **changes}, "test")


def campaign(folder: Path, *engines: str, **changes: Any) -> Campaign:
    asked = study(*engines, **changes)
    return Campaign(asked, trials_of(asked), folder)


def run(folder: Path, *engines: str, **changes: Any) -> list[Record]:
    return list(campaign(folder, *engines, **changes).go())


def processes_with(text: str) -> list[int]:
    """Live processes that have `text` in their environment or command."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        for part in ("environ", "cmdline"):
            try:
                if text.encode() in Path("/proc", name, part).read_bytes():
                    found.append(int(name))
            except OSError:
                continue
    return sorted(set(found) - {os.getpid()})
