"""What the machine did around each run of a campaign: canary and contention together, in their order.

    with Session() as session:
        session.settle(cores)
        with session.around(cores) as around:
            finished = run(…)
        around.drifted                      the machine changed: the run is to be repeated
        around.remarks(effort)              sentences for the report, each ending with the remedy
        around.as_record()                  plain values for the record

The canary sings outside of the two snapshots, so that it never counts as somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

from timetrial.meters.canary import Canary, Noise, Reading, drift, noise, typical
from timetrial.meters.contention import Difference, difference, snapshot
from timetrial.meters.remarks import judge
from timetrial.records.record import Effort

SETTLING_SONGS = 9


@dataclass
class Around:
    """Filled in when the run is over; a run that was interrupted has neither a second reading nor a contention."""

    before: Reading | None = None
    after: Reading | None = None
    usual: Reading | None = None  # the median of the session's readings up to this run
    contention: Difference | None = None
    drifted: tuple[str, ...] = field(default=())

    def remarks(self, effort: Effort | None = None) -> tuple[str, ...]:
        return self.drifted + (judge(self.contention, effort) if self.contention else ())

    def as_record(self) -> dict[str, Any]:
        return {
            "canary_before": self.before.as_record() if self.before else None,
            "canary_after": self.after.as_record() if self.after else None,
            "canary_usual": self.usual.as_record() if self.usual else None,
            "contention": asdict(self.contention) if self.contention else None,
            "drifted": list(self.drifted),
        }


class Session:
    """One for a campaign. `floor` is the session's noise floor (of a cell against its twin), once it is known."""

    def __init__(self, canary: Canary | None = None, floor: float = 0.0) -> None:
        self.canary = canary or Canary()
        self.floor = floor
        self.noise: Noise | None = None
        self._readings: list[Reading | None] = []

    def __enter__(self) -> Session:
        self.canary.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.canary.close()

    def settle(self, cores: Sequence[int]) -> Noise | None:
        """A few songs before the first run: how far they lie apart here while nothing else is done. About a second."""
        readings = [self.canary.sing(cores) for _ in range(SETTLING_SONGS)]
        self._readings += readings
        self.noise = noise(readings)
        return self.noise

    @contextmanager
    def around(self, cores: Sequence[int]) -> Iterator[Around]:
        found = Around(before=self.canary.sing(cores))
        before = snapshot(cores)
        yield found
        found.contention = difference(before, snapshot(cores))
        found.after = self.canary.sing(cores)
        found.usual = typical(self._readings)
        found.drifted = self._drifted(found)
        self._readings += [found.before, found.after]

    def _drifted(self, found: Around) -> tuple[str, ...]:
        """Over the run, else against what the machine usually does: a slow drift shows in no single run."""
        pairs = ((found.before, found.after), (found.usual, found.after), (found.usual, found.before))
        for reference, reading in pairs:
            changed = drift(reference, reading)
            if changed is not None and (remarks := changed.remarks(self.floor, self.noise)):
                return remarks
        return ()
