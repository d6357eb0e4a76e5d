"""Conditions under which a comparison fails: `slower > 3%`, `memory > 10%`, `failed`, `undecided`.

A gate fails only on what is shown: where the whole interval lies beyond the limit. What is undecided passes, unless
`undecided` is itself a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from timetrial.report.comparison import Line
from timetrial.stats.intervals import Ratio

NOT_THERE = ("missing", "unsupported", "skipped")  # could not be measured here; nothing broke
_FORM = re.compile(r"\s*([a-z]+)\s*(?:(>=|<=|>|<)\s*(\d+(?:\.\d+)?)\s*%)?\s*")


class BadCondition(ValueError):
    """Says what is allowed."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"--fail-if '{text}': {problem}; write slower, faster or memory with a limit ('slower > 3%', with >, >=, < "
            f"or <=), or one of {', '.join(_STATES)} alone"
        )


@dataclass(frozen=True)
class Condition:
    text: str
    word: str
    sign: str = ""
    limit: float = 1.0  # as a ratio: 3 % is 1.03

    def shown(self, line: Line) -> bool:
        """Whether the cell shows it, for certain."""
        if self.word in _STATES:
            return _STATES[self.word](line)
        found = _MEASURED[self.word](line)
        if found is None or found.low is None or found.high is None:
            return False
        if self.sign in ("<", "<="):
            return found.high < self.limit or (self.sign == "<=" and found.high == self.limit)
        beyond = found.low > self.limit or (self.sign == ">=" and found.low == self.limit)
        # Beyond the limit, but not beyond this session's noise, is not shown.
        return beyond and (self.word == "memory" or line.state == self.word)


@dataclass(frozen=True)
class Checked:
    condition: Condition
    lines: tuple[Line, ...]  # that show it
    undecided: int

    @property
    def passed(self) -> bool:
        return not self.lines


def parse(text: str) -> Condition:
    match = _FORM.fullmatch(text)
    if not match:
        raise BadCondition(text, "cannot be read")
    word, sign, percent = match.groups()
    if word in _STATES and not sign:
        return Condition(text.strip(), word)
    if word in _STATES:
        raise BadCondition(text, f"'{word}' has no limit")
    if word not in _MEASURED:
        raise BadCondition(text, f"there is no '{word}'")
    if not sign:
        raise BadCondition(text, f"'{word}' needs a limit")
    return Condition(text.strip(), word, sign, 1 + float(percent) / 100)


def check(lines: Sequence[Line], conditions: Sequence[Condition]) -> list[Checked]:
    undecided = sum(line.state == "undecided" for line in lines)
    return [Checked(one, tuple(line for line in lines if one.shown(line)), undecided) for one in conditions]


def _faster(line: Line) -> Ratio | None:
    return line.verdict.speedup if line.verdict else None


def _slower(line: Line) -> Ratio | None:
    found = _faster(line)
    if found is None or found.low is None or found.high is None:
        return None
    return Ratio(1 / found.value, 1 / found.high, 1 / found.low)


def _failed(line: Line) -> bool:
    """NEW broke, whatever BASE did."""
    return line.new is not None and line.new.kind not in ("ok", *NOT_THERE)


def _gone(line: Line) -> bool:
    """BASE has a time and NEW has none, for whatever reason."""
    return bool(line.base and line.base.seconds) and not (line.new and line.new.seconds)


_MEASURED: dict[str, Callable[[Line], Ratio | None]] = {
    "slower": _slower,
    "faster": _faster,
    "memory": lambda line: line.memory,
}
_STATES: dict[str, Callable[[Line], bool]] = {
    "failed": _failed,
    "gone": _gone,
    "undecided": lambda line: line.state == "undecided",
}
