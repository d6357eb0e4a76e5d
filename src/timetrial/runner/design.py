"""Who runs next. Complete blocks first; then only the cells that would still say something. Pure.

A cell is measured once in each block that it takes part in. After the least number of complete blocks it is left out
of the next ones when it is known well enough, and the runs that are saved so go to the cells that are known worst.
What a block holds follows from the results of the blocks before it alone: a study that was stopped goes on as it would.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from timetrial.records.record import Role
from timetrial.stats.intervals import interval
from timetrial.stats.stopping import decided

LEAST = 3  # complete blocks before anything is looked at
WIDER = 5  # a cell whose comparisons are decided may be this much wider than the profile asks for
MOST = 2  # times the usual number: what one cell may get of the saved runs


@dataclass(frozen=True)
class Member:
    """A cell of the study, under the name it runs under. Cells of one group are compared with each other."""

    trial: str
    group: str
    role: Role = "cell"


@dataclass(frozen=True)
class Design:
    """`usual`: processes a cell, in the mean. `target`: half width at which an interval is narrow enough."""

    usual: int
    target: float
    adaptive: bool = True

    @property
    def least(self) -> int:
        return min(LEAST, self.usual) if self.adaptive else self.usual

    @property
    def most(self) -> int:
        return MOST * self.usual if self.adaptive and self.usual > LEAST else self.usual


Results = Mapping[Member, Sequence[float]]  # of the processes of the blocks before


def block(number: int, members: Sequence[Member], results: Results, design: Design, floor: float) -> list[Member]:
    """Who takes part in this block; nobody: the study is done. `members`: those that have not failed."""
    if number < design.least:
        return list(members)
    if number >= design.most:
        return []
    cells = [member for member in members if member.role == "cell"]
    going = unfinished(cells, results, design, floor)
    if number >= design.usual:
        saved = design.usual * len(cells) - sum(len(results.get(cell, ())) for cell in cells)
        going = sorted(going, key=lambda cell: width(results.get(cell, ())), reverse=True)[: max(saved, 0)]
    chosen = {cell.trial for cell in going}
    return [member for member in members if member.trial in chosen]  # the anchor's twin goes where the anchor goes


def order(members: Sequence[Member], seed: int, number: int) -> list[Member]:
    """Random within the block; two take turns as ABBA, which a steady drift cannot bend."""
    if len(members) == 2:
        first = list(members)
        random.Random(f"{seed}").shuffle(first)
        return first if number % 4 in (0, 3) else first[::-1]
    shuffled = list(members)
    random.Random(f"{seed}/{number}").shuffle(shuffled)
    return shuffled


def unfinished(cells: Sequence[Member], results: Results, design: Design, floor: float) -> list[Member]:
    """Those whose interval is too wide, and which their comparisons do not make good enough."""
    groups: dict[str, list[Member]] = {}
    for cell in cells:
        groups.setdefault(cell.group, []).append(cell)
    return [cell for group in groups.values() for cell in _unfinished(group, results, design, floor)]


def width(values: Sequence[float]) -> float:
    """Relative half width of the interval; with fewer than two processes there is none yet."""
    half = interval(values).half_width if len(values) > 1 else None
    return float("inf") if half is None else half


def _unfinished(group: Sequence[Member], results: Results, design: Design, floor: float) -> Iterable[Member]:
    widths = {cell: width(results.get(cell, ())) for cell in group}
    wide = [cell for cell in group if widths[cell] > design.target]
    if len(group) < 2 or not wide:
        return wide
    open_pairs = _undecided(group, results, design, floor)
    return [cell for cell in wide if cell in open_pairs or widths[cell] > WIDER * design.target]


def _undecided(group: Sequence[Member], results: Results, design: Design, floor: float) -> set[Member]:
    """Everyone in a comparison with the fastest that is still open; looking often is paid for in the confidence."""
    timed = [cell for cell in group if len(results.get(cell, ())) > 1]
    if len(timed) < len(group):
        return set(group)
    first = min(timed, key=lambda cell: interval(results[cell]).value)
    looks = design.most - design.least + 1
    others = (cell for cell in timed if cell != first)
    still = [cell for cell in others if decided(results[cell], results[first], floor, looks).word == "undecided"]
    return {first, *still} if still else set()
