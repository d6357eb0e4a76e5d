"""Two profiles against each other: which parts of a step got faster or slower, appeared or vanished.

The differences of all parts add up to the difference of the operations' time. They are of one process each: what they
say of causes is measured, but no verdict; verdicts are `timetrial compare`'s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from timetrial.profiling.profile import Header, Profile
from timetrial.profiling.views import Key, grouped
from timetrial.stats.verdicts import LEAST_FLOOR

State = Literal["slower", "faster", "appeared", "vanished", "about the same"]
STATES: tuple[State, ...] = get_args(State)
PARTS = ("layer", "phase", "class")
TYPES = ("type",)  # only where both sides have the same engine's names
# What both are of: where these differ, so does the work, and with it more than what was changed on purpose.
_WORK = ("task", "batch", "precision", "dataset")
_CONDITIONS = ("model", "engine", "version", "placement")


@dataclass(frozen=True)
class Change:
    """Seconds of a mean step before and after; None where that side has no such part."""

    key: Key
    base: float | None
    new: float | None
    state: State

    @property
    def delta(self) -> float:
        return (self.new or 0.0) - (self.base or 0.0)


@dataclass(frozen=True)
class Difference:
    base: Header
    new: Header
    heads: tuple[str, ...]  # of the keys
    changes: tuple[Change, ...]  # the largest first

    @property
    def operations(self) -> float:
        """Seconds a step, by the sum of all changes."""
        return math.fsum(change.delta for change in self.changes)

    @property
    def steps(self) -> float:
        """Seconds a step, as measured without the profiler."""
        return self.new.step_seconds - self.base.step_seconds

    @property
    def explained(self) -> float | None:
        """Share of the steps' difference that is found in the operations; None where there is hardly one."""
        if abs(self.steps) < LEAST_FLOOR * self.base.step_seconds:
            return None
        return self.operations / self.steps

    @property
    def problems(self) -> tuple[str, ...]:
        """Why nothing can be concluded; none where both sides are evidence enough."""
        sides = (("BASE", self.base), ("NEW", self.new))
        return tuple(f"{side}: {problem}" for side, header in sides for problem in header.problems)

    @property
    def counts(self) -> dict[State, int]:
        found = Counter(change.state for change in self.changes)
        return {state: found[state] for state in STATES if found[state]}

    @property
    def differs(self) -> tuple[tuple[str, str, str], ...]:
        """In what the two differ besides their times."""
        pairs = [(name, getattr(self.base, name), getattr(self.new, name)) for name in (*_CONDITIONS, *_WORK)]
        settings = dict.fromkeys([*self.base.settings, *self.new.settings])
        pairs += [(name, self.base.settings.get(name), self.new.settings.get(name)) for name in settings]
        return tuple((name, str(ours), str(theirs)) for name, ours, theirs in pairs if ours != theirs)

    @property
    def other_work(self) -> tuple[str, ...]:
        """What of the work itself differs: then a faster part may just have less to do."""
        return tuple(name for name, _, _ in self.differs if name in _WORK)


def compare(base: Profile, new: Profile, by: Sequence[str] = PARTS) -> Difference:
    before, after = _times(base, by), _times(new, by)
    least = LEAST_FLOOR * max(math.fsum(before.values()), math.fsum(after.values()))
    changes = [_change(key, before.get(key), after.get(key), least) for key in {**before, **after}]
    return Difference(base.header, new.header, tuple(by), tuple(sorted(changes, key=lambda one: -abs(one.delta))))


def same_engine(base: Profile, new: Profile) -> bool:
    """Of any version: then operations have the same names on both sides."""
    return base.header.engine.partition("@")[0] == new.header.engine.partition("@")[0]


def _times(profile: Profile, by: Sequence[str]) -> dict[Key, float]:
    return {key: math.fsum(part.wall for part in parts) for key, parts in grouped(profile, by).items()}


def _change(key: Key, base: float | None, new: float | None, least: float) -> Change:
    """A part whose time changes by less than one percent of a step is about the same."""
    delta = (new or 0.0) - (base or 0.0)
    state: State = "slower" if delta > 0 else "faster"
    if abs(delta) < least or delta == 0:
        state = "about the same"
    if base is None or new is None:
        state = "appeared" if base is None else "vanished"
    return Change(key, base, new, state)


def shortened(found: Difference, top: int | None) -> tuple[Sequence[Change], Change | None, Change]:
    """The largest changes, what the others add up to, and what all do."""
    shown, others = found.changes[:top], found.changes[len(found.changes[:top]) :]
    width = len(found.heads)
    rest = _summed(others, f"{len(others)} other{'s' if len(others) > 1 else ''}", width) if others else None
    return shown, rest, _summed(found.changes, "all", width)


def _summed(changes: Sequence[Change], name: str, width: int) -> Change:
    base = math.fsum(change.base or 0.0 for change in changes)
    new = math.fsum(change.new or 0.0 for change in changes)
    return _change((name, *[""] * (width - 1)), base, new, 0.0)
