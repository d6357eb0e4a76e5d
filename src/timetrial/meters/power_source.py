"""One domain of one device whose energy can be read: a counter of joules, or a power in watts.

A counter says exactly what went by since it was read last, however long ago that is; a power has to be read often, and
what it did between two readings is not seen. Standard library only: the sampler is a program that starts at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "power"]
WORST_WATTS = 1000.0  # of one domain: a counter that wraps has to be read before so much power fills it


class Unreadable(Exception):
    """A domain that cannot be read: why, and the remedy where there is one."""


@dataclass(frozen=True)
class PowerSource:
    source: str  # who tells it: RAPL, NVML, a replay, a model
    domain: str  # package-0, package-0/dram, cuda:0
    device: str  # cpu, cuda:0: as placements name it
    kind: Kind
    read: Callable[[], float]  # joules since some time, or watts now; raises Unreadable
    wraps_at: float | None = None  # joules at which a counter begins again
    inside: bool = False  # part of another domain: shown, and not added to it

    @property
    def seconds_to_wrap(self) -> float | None:
        return self.wraps_at / WORST_WATTS if self.wraps_at else None


class Tally:
    """Joules of one source since the first look at it."""

    def __init__(self, source: PowerSource, clock: Callable[[], float] = time.monotonic) -> None:
        self.source, self._clock = source, clock
        self.joules, self.looks, self.wraps = 0.0, 0, 0
        self.broken = ""  # from then on nothing is known, and is not guessed
        self._value, self._at = 0.0, 0.0

    def look(self) -> None:
        if self.broken:
            return
        try:
            value = self.source.read()
        except Unreadable as error:
            self.broken = str(error)
            return
        now = self._clock()
        if self.looks:
            self.joules += self._gone_by(value, now - self._at)
        self._value, self._at = value, now
        self.looks += 1

    def _gone_by(self, value: float, seconds: float) -> float:
        if self.source.kind == "power":
            return (self._value + value) / 2 * seconds
        time_to_wrap = self.source.seconds_to_wrap
        if time_to_wrap is not None and seconds > time_to_wrap:
            self.broken = f"not read for {seconds:.3g} s: its counter may have begun again more than once meanwhile"
            return 0.0
        if value >= self._value:
            return value - self._value
        if self.source.wraps_at is None:
            self.broken = "its counter ran backwards, and nothing says where it begins again"
            return 0.0
        self.wraps += 1
        return value - self._value + self.source.wraps_at


class Pace:
    """How often a counter is brought up to date, from looking at it very often for a while."""

    def __init__(self, source: PowerSource) -> None:
        self._source, self._value = source, source.read()
        self._first = self._last = 0.0
        self._changes = 0

    def look(self, now: float) -> None:
        value = self._source.read()
        if value != self._value:
            self._value, self._last = value, now
            self._first = self._first if self._changes else now
            self._changes += 1

    @property
    def seconds(self) -> float | None:
        """Between two updates; None where it did not change twice."""
        return (self._last - self._first) / (self._changes - 1) if self._changes > 1 else None


def seconds_between_updates(
    sources: Sequence[PowerSource],
    look_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, float | None]:
    """Of counters, by domain; None where that cannot be seen."""
    found: dict[str, float | None] = dict.fromkeys(source.domain for source in sources)
    paces: dict[str, Pace] = {}
    for source in sources:
        with suppress(Unreadable):
            paces[source.domain] = Pace(source)
    end = clock() + look_seconds
    while paces and clock() < end:
        sleep(0.001)
        for domain, pace in list(paces.items()):
            try:
                pace.look(clock())
            except Unreadable:
                del paces[domain]
    return {**found, **{domain: pace.seconds for domain, pace in paces.items()}}
