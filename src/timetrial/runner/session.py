"""One start of a study: its name, its canary, and what was seen of the machine around each run.

A reading that differs from what the canary usually takes in this session flags the run beside it, if it differs by
more than the canary's readings mostly do: on a machine that is shared with others they scatter, and that is no drift.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from timetrial.meters.canary import Canary, Reading, drift, noise, typical
from timetrial.meters.contention import Difference, difference, snapshot
from timetrial.meters.limits import MachineLimits
from timetrial.meters.remarks import judge
from timetrial.records.record import Effort
from timetrial.records.store import Store, StoreError

AT_REST = 10  # songs at the beginning: what the canary does when nothing is wrong


@dataclass
class Look:
    """What was seen around one run."""

    before: Reading | None = None
    after: Reading | None = None
    contention: Difference | None = None
    flags: tuple[str, ...] = field(default=())

    def as_record(self, effort: Effort | None) -> dict[str, Any]:
        """The part of a record that is about the machine."""
        sung = {"before": self.before, "after": self.after}
        return {
            "flags": self.flags,
            "remarks": judge(self.contention, effort) if self.contention else (),
            "canary": {name: reading.as_record() for name, reading in sung.items() if reading},
            "contention": _known(self.contention),
        }


class Session:
    """`with session.look(cores, floor) as seen:` around a run; `seen` is complete when the block has ended."""

    def __init__(
        self, store: Store, study: str, machine: str, canary: Canary | None = None, cooldown: float = 0.0
    ) -> None:
        self.started = datetime.now(UTC)
        self.name = f"{self.started:%Y%m%dT%H%M%S}-{os.getpid()}"
        self._store, self._study, self._machine = store, study, machine
        self._canary = canary or Canary()
        self._rest: dict[tuple[int, ...], list[Reading]] = {}
        self._readings: list[Reading] = []
        self._flagged = 0
        self.cooldown = cooldown
        self.limits: MachineLimits | None = None
        self.energy: str | None = None  # why it is not measured, where it was asked for

    def __enter__(self) -> Session:
        self._canary.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._canary.close()
        # On a full disk this fails as well: what failed first says more.
        with suppress(*(() if error is None else (StoreError,))):
            self._store.keep_session(self._study, self.name, self._summary())

    @contextmanager
    def look(self, cores: Sequence[int], floor: float) -> Iterator[Look]:
        seen = Look(before=self._sing(cores))
        start = snapshot(cores)
        yield seen
        seen.contention = difference(start, snapshot(cores))
        seen.after = self._sing(cores)
        seen.flags = self._flags(seen, tuple(cores), floor)

    def _sing(self, cores: Sequence[int]) -> Reading | None:
        known = self._rest.setdefault(tuple(cores), [])
        while len(known) < AT_REST:
            sung = self._canary.sing(cores)
            if sung is None:
                return None
            known.append(sung)
        reading = self._canary.sing(cores)
        if reading is not None:
            self._readings.append(reading)
        return reading

    def _flags(self, seen: Look, cores: tuple[int, ...], floor: float) -> tuple[str, ...]:
        heard = [*self._rest.get(cores, []), *self._readings]
        usual, unrest = typical(heard), noise(heard)
        changes = {"before": drift(usual, seen.before), "after": drift(usual, seen.after)}
        flags = tuple(
            f"{when} the run, {remark}"
            for when, change in changes.items()
            if change is not None
            for remark in change.remarks(floor, unrest)
        )
        self._flagged += bool(flags)
        return flags

    def _summary(self) -> dict[str, Any]:
        return {
            "session": self.name,
            "study": self._study,
            "machine": self._machine,
            "started": self.started.isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "canary": [reading.as_record() for reading in self._readings],
            "at_rest": [reading.as_record() for rest in self._rest.values() for reading in rest],
            "flagged": self._flagged,
            "energy": self.energy,
            "cooldown": self.cooldown,
            "limits": asdict(self.limits) if self.limits else None,
        }


def _known(found: Difference | None) -> dict[str, Any]:
    return {} if found is None else {name: value for name, value in asdict(found).items() if value not in (None, {})}
