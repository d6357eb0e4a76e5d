"""From how many steps on a slow start has paid for itself. Time after n steps is `start + n * step`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Course:
    """Seconds until the first step is done, and seconds of each step after it."""

    start: float
    step: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.step) and self.start >= 0 and self.step > 0):
            raise ValueError(f"a course needs a start of at least 0 s and steps above 0 s, not {self}")

    def after(self, steps: int) -> float:
        return self.start + steps * self.step


def break_even(first: Course, second: Course) -> int | None:
    """The least number of steps from which the second is ahead and stays so. None: it never is, or not for good."""
    if second.step > first.step:
        return None
    later = second.start - first.start
    if later < 0:
        return 0
    gain = first.step - second.step
    if gain == 0 or not math.isfinite(later / gain):
        return None
    steps = math.floor(later / gain)
    # The quotient is rounded, so the whole number beside it is tried.
    return next((n for n in range(max(steps - 1, 0), steps + 3) if second.after(n) < first.after(n)), steps + 1)


def leaders(courses: Mapping[str, Course]) -> list[tuple[int, str]]:
    """Who is ahead, and from how many steps on: the lower edge of all lines, from left to right."""
    if not courses:
        return []
    # On equal starts the quicker step leads from the first step on.
    name = min(courses, key=lambda name: (courses[name].start, courses[name].step))
    found = [(0, name)]
    while later := _overtakers(courses, found[-1][1]):
        found.append(min(later, key=lambda crossing: (crossing[0], courses[crossing[1]].step)))
    return found


def _overtakers(courses: Mapping[str, Course], leader: str) -> list[tuple[int, str]]:
    ahead = courses[leader]
    crossings = ((break_even(ahead, other), name) for name, other in courses.items() if other.step < ahead.step)
    return [(steps, name) for steps, name in crossings if steps is not None]
