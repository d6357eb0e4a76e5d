"""Energy of a run, seen from outside: what the machine's domains took during its steady laps, and what while idle.

The sampler is a process of its own, one for the machine. It is told when the steady laps begin and end, and reads all
domains at that moment; before the worker starts and after it has ended it reads what the machine takes doing nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from timetrial.meters.energy_sources import Choice, Sources, find
from timetrial.meters.helper import Helper
from timetrial.meters.memory import elsewhere
from timetrial.meters.power_source import PowerSource, seconds_between_updates
from timetrial.records.energy import Domain, Energy
from timetrial.records.record import Laps

CHILD = Path(__file__).with_name("energy_child.py")
PATIENCE = 10.0
WINDOW_SECONDS, UPDATES = 5.0, 100  # what a window needs at least
IDLE_SECONDS = 5.0  # before the run, and after it
LOOK_SECONDS = 1.0  # at a counter, to learn how often it changes
FILLED = 0.95  # of a window are laps, at least: what lies between them takes energy too
LONGEST_WINDOW = 60.0  # however seldom a counter changes
_POWER_SECONDS = 0.1
_SPARE = 1.05
_FLAGS = ("-I", "-S")
BEFORE, DURING, AFTER = "before", "steady", "after"


class EnergyMeter:
    """What there is on this machine, looked at once, and samplers of it."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    @cached_property
    def sources(self) -> Sources:
        return find(self.choice)

    @cached_property
    def update_seconds(self) -> dict[str, float | None]:
        """By domain; of a power, how often it is sampled."""
        found = self.sources.found
        counters = seconds_between_updates([one for one in found if one.kind == "counter"], LOOK_SECONDS)
        return {**dict.fromkeys((one.domain for one in found), _POWER_SECONDS), **counters}

    @property
    def window(self) -> float:
        """Seconds that a run's steady laps have to last."""
        slowest = max((every for every in self.update_seconds.values() if every), default=0.0)
        return _SPARE * min(max(WINDOW_SECONDS, UPDATES * slowest), LONGEST_WINDOW)

    @property
    def more_seconds(self) -> float:
        """That a run of energy takes beyond the others, at most."""
        return self.window + 2 * IDLE_SECONDS

    def sampler(self, cores: Sequence[int]) -> EnergySampler:
        _ = self.update_seconds  # looked at before a run, and not when something has vanished in it
        return EnergySampler(self.choice, cores)

    def energy(self, seen: Readings | None, laps: Laps | None, device: str) -> Energy:
        """What the record of a run holds."""
        gone = "the sampler beside the run has died: see whether memory is short, and run it again"
        if seen is None or laps is None:
            return Energy(device=device, absent=self.sources.problems, reason="no steady laps" if seen else gone)
        window = seen.seconds(DURING)
        domains = tuple(_domain(one, seen, self.update_seconds.get(one.domain)) for one in self.sources.found)
        steps = laps.steps * len(laps.seconds)
        short = "; ".join(_short(window, sum(laps.seconds) * laps.steps, domains)) if window is not None else ""
        return Energy(
            device=device, seconds=window, steps=steps, domains=domains, absent=self.sources.problems, short=short
        )


@dataclass(frozen=True)
class Readings:
    """All marks of a sampler, by name: seconds, and of each domain joules so far, looks so far, wraps so far."""

    marks: Mapping[str, tuple[float, Mapping[str, Sequence[float]]]]
    broken: Mapping[str, str]

    def seconds(self, window: str) -> float | None:
        begin, end = self.marks.get(window), self.marks.get(_end(window))
        return None if begin is None or end is None else end[0] - begin[0]

    def gone_by(self, window: str, domain: str) -> tuple[float, int, int] | None:
        """Joules, looks and wraps."""
        begin, end = self.marks.get(window), self.marks.get(_end(window))
        if begin is None or end is None or domain not in begin[1] or domain not in end[1]:
            return None
        joules, looks, wraps = (last - first for first, last in zip(begin[1][domain], end[1][domain], strict=True))
        return joules, int(looks), int(wraps)

    def watts(self, window: str, domain: str) -> float | None:
        gone, seconds = self.gone_by(window, domain), self.seconds(window)
        return gone[0] / seconds if gone and seconds else None


def _end(window: str) -> str:
    return f"{window} end"


def _domain(source: PowerSource, seen: Readings, update_seconds: float | None) -> Domain:
    what: dict[str, Any] = {
        "domain": source.domain, "device": source.device, "source": source.source, "kind": source.kind,
        "inside": source.inside,
    }  # fmt: skip
    gone, window = seen.gone_by(DURING, source.domain), seen.seconds(DURING)
    if source.domain in seen.broken:
        return Domain(**what, reason=seen.broken[source.domain])
    if gone is None or not window:
        return Domain(**what, reason="it was not read at both ends of the steady laps")
    joules, looks, wraps = gone
    if joules <= 0:
        return Domain(**what, reason="it did not move during the steady laps")
    before, after = seen.watts(BEFORE, source.domain), seen.watts(AFTER, source.domain)
    idle = None if before is None or after is None else (before, after)
    updates = looks if source.kind == "power" else int(window / update_seconds) if update_seconds else None
    return Domain(**what, joules=joules, idle_watts=idle, updates=updates, wraps=wraps)


def _short(window: float, busy: float, domains: Sequence[Domain]) -> Iterator[str]:
    if window < WINDOW_SECONDS:
        yield f"window too short: {window:.2g} s where {WINDOW_SECONDS:g} s are needed"
    if busy < FILLED * window:
        yield f"the laps fill only {100 * busy / window:.0f} % of the window: leave a core free for timetrial itself"
    for one in domains:
        if one.joules is not None and (one.updates is None or one.updates < UPDATES):
            known = "an unknown number of" if one.updates is None else str(one.updates)
            yield f"window too short: {known} updates of {one.domain} where {UPDATES} are needed"


class EnergySampler:
    """`with meter.sampler(cores) as sampler: …; run(…, told=sampler.told); …; readings = sampler.stop()`

    Whatever happens to it, the run goes on, and its readings are None: not measured.
    """

    def __init__(self, choice: Choice, cores: Sequence[int] = (), child: Sequence[str | Path] = (CHILD,)) -> None:
        self._command = [*child, json.dumps(choice.as_json()), ",".join(map(str, elsewhere(cores)))]
        self._helper: Helper | None = None
        self._ended = False

    def __enter__(self) -> EnergySampler:
        try:
            self._helper = Helper(self._command, _FLAGS)
        except OSError:
            return self
        if self._helper.hear(PATIENCE) == "ready":
            self._rest(BEFORE)
        else:
            self._close()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    @property
    def pid(self) -> int | None:
        return None if self._helper is None else self._helper.pid

    def follow(self, pid: int) -> None:
        """The domains are the machine's, not a process's."""

    def told(self, event: Mapping[str, Any]) -> None:
        """An event of the worker: the steady laps begin or end at this moment."""
        if event.get("phase") == DURING and event["event"] in ("begin", "end"):
            self._ended = event["event"] == "end"
            self._mark(_end(DURING) if self._ended else DURING)

    def stop(self) -> Readings | None:
        if self._helper is None:
            return None
        if self._ended:
            self._rest(AFTER)
        found = self._helper.ask({"stop": True}, PATIENCE)
        if not isinstance(found, dict):
            return None
        marks = {mark["name"]: (mark["time"], mark["values"]) for mark in found["marks"]}
        return Readings(marks, found["broken"])

    def _rest(self, name: str) -> None:
        """What the machine takes while nothing runs on it."""
        self._mark(name)
        time.sleep(IDLE_SECONDS)
        self._mark(_end(name))

    def _mark(self, name: str) -> None:
        if self._helper is not None:
            self._helper.tell({"mark": name})

    def _close(self) -> None:
        if self._helper is not None:
            self._helper.close()
            self._helper = None
