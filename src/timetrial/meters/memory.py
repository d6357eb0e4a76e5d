"""Memory of a run as it is seen from outside: the resident sets of its process tree, sampled by another process.

The kernel's high-water mark, which the worker tells itself, is exact but knows one process only, and no sum over a
tree at one instant. The sampler sees the whole tree and misses what lasts less than an interval: both are kept, each
under the name of its method.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from timetrial.meters.helper import Helper

CHILD = Path(__file__).with_name("memory_child.py")
INTERVAL = 0.01
PATIENCE = 10.0
# No site-packages and no variables: the program needs the standard library alone and is ready in a few hundredths.
_FLAGS = ("-I", "-S")


# Of each figure of `figures`: how it was measured. More is not better, and none of them is another's part.
METHODS: Mapping[str, str] = MappingProxyType(
    {
        "resident_before_import": "resident set of the worker (VmRSS) before the engine is imported",
        "resident_before_build": "resident set of the worker (VmRSS) before the network is built",
        "resident_after_import": "kernel's high-water mark of the worker (VmHWM) after the engine's import",
        "resident_after_build": "kernel's high-water mark of the worker (VmHWM) after the network was built",
        "resident_after_steady": "kernel's high-water mark of the worker (VmHWM) after the steady laps",
        "tree_peak": "resident sets of the process tree, summed at one instant, sampled from another process",
        "allocator_live_peak": "most bytes given out at one time, by the engine's own allocator of the device",
        "allocator_reserved_peak": "most bytes held at one time, given out or not, by the engine's own allocator",
    }
)


@dataclass(frozen=True)
class Peak:
    """What was most at any one instant. Pages that several processes share count in each of them."""

    resident: int  # bytes, summed over the tree
    processes: int  # most at one instant
    samples: int
    longest_gap: float  # seconds between two samples; a peak shorter than this may have been missed
    seconds: float  # from the first sample to the last
    cpu_share: float  # of a core, that the sampler itself took
    interval: float = INTERVAL

    @property
    def method(self) -> str:
        return f"resident sets of the process tree, sampled every {1000 * self.interval:g} ms from another process"


class MemorySampler:
    """`with MemorySampler(cores) as sampler: …; sampler.follow(pid); …; peak = sampler.stop()`

    To be entered before the worker starts, so that the sampler's own start falls into no phase of it. `cores` are the
    run's: the sampler keeps off them where this process may use another. Whatever happens to it, the run goes on, and
    its peak is None: not measured.
    """

    def __init__(
        self, cores: Sequence[int] = (), interval: float = INTERVAL, child: Sequence[str | Path] = (CHILD,)
    ) -> None:
        self._interval = interval
        self._command = [*child, str(interval), ",".join(map(str, elsewhere(cores)))]
        self._helper: Helper | None = None
        self._following = False

    def __enter__(self) -> MemorySampler:
        try:
            self._helper = Helper(self._command, _FLAGS)
        except OSError:
            return self
        if self._helper.hear(PATIENCE) != "ready":
            self._close()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    @property
    def pid(self) -> int | None:
        return None if self._helper is None else self._helper.pid

    def follow(self, pid: int) -> None:
        """From now on, until `stop` or until the process has ended. What was followed before is forgotten."""
        self.stop()
        self._following = self._helper is not None and self._helper.tell({"follow": pid})

    def told(self, event: Mapping[str, Any]) -> None:
        """It follows the whole run, whatever the worker does."""

    def stop(self) -> Peak | None:
        if self._helper is None or not self._following:
            return None
        self._following = False
        found = self._helper.ask({"stop": True}, PATIENCE)
        if not isinstance(found, dict) or not found.get("samples"):
            return None
        return Peak(
            resident=int(found["resident"]),
            processes=int(found["processes"]),
            samples=int(found["samples"]),
            longest_gap=float(found["longest_gap"]),
            seconds=float(found["seconds"]),
            cpu_share=found["cpu_seconds"] / found["seconds"] if found["seconds"] else 0.0,
            interval=self._interval,
        )

    def _close(self) -> None:
        if self._helper is not None:
            self._helper.close()
            self._helper = None


def elsewhere(cores: Sequence[int]) -> list[int]:
    """The cores that this process may use and the run has not; none where there is no such core."""
    try:
        allowed = os.sched_getaffinity(0)
    except (AttributeError, OSError):
        return []
    return sorted(allowed - set(cores)) if cores else []


def figures(events: Iterable[Mapping[str, Any]], peak: Peak | None = None) -> dict[str, int]:
    """The bytes that a run told and that were sampled of it, by name; what was not measured is left out."""
    found: dict[str, Any] = {}
    for event in events:
        if event["event"] == "begin":
            found[f"resident_before_{event['phase']}"] = event.get("resident")
        elif event["event"] == "end":
            found[f"resident_after_{event['phase']}"] = event.get("resident_peak")
        elif event["event"] == "readback":
            found.update({f"allocator_{name}": value for name, value in (event.get("memory") or {}).items()})
    found["tree_peak"] = None if peak is None else peak.resident
    return {name: int(found[name]) for name in METHODS if found.get(name) is not None}
