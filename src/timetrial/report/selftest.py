"""What an A/A study says of a machine: how far one cell seems to lie from itself, and what could be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from timetrial.records.choice import counted, floor_of
from timetrial.records.record import Record
from timetrial.report import words
from timetrial.stats.floor import Floor
from timetrial.stats.intervals import process_value
from timetrial.stats.power import smallest_effect
from timetrial.stats.verdicts import Verdict, verdict

MINUTES = (1, 5, 20)
WANTED = 0.8  # how likely a difference must be seen to be called detectable


@dataclass(frozen=True)
class Outlook:
    """What two cells like this one would have to differ by to be told apart. None: no time for two processes."""

    minutes: int
    processes: int  # of each
    difference: float | None


@dataclass(frozen=True)
class Selftest:
    processes: int  # of each name
    seconds_each: float  # of one run, start and end included
    step: float
    spread: float  # between processes, relative
    floor: Floor
    verdict: Verdict
    outlook: tuple[Outlook, ...]
    flagged: int
    remarks: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """One thing under two names was not called two things."""
        return self.verdict.word in ("same", "undecided")


def selftest(records: Sequence[Record]) -> Selftest | None:
    """None where the study did not get so far that each name has two processes."""
    good = [record for record in counted(records) if record.outcome.ok and record.laps]
    times = {
        role: [process_value(record.laps.seconds) for record in good if record.role == role and record.laps]
        for role in ("cell", "twin")
    }
    if min(map(len, times.values())) < 2:
        return None
    logs = [np.log(values) for values in times.values()]
    spread = math.sqrt(sum(float(np.var(values, ddof=1)) for values in logs) / 2)
    seconds = median(record.wall_seconds or 0.0 for record in good)
    floor = floor_of(good)
    return Selftest(
        processes=min(map(len, times.values())),
        seconds_each=seconds,
        step=median([value for values in times.values() for value in values]),
        spread=spread,
        floor=floor,
        verdict=verdict(times["cell"], times["twin"]),
        outlook=tuple(_outlook(minutes, seconds, spread, floor.value) for minutes in MINUTES),
        flagged=sum(bool(record.flags) for record in good),
        remarks=tuple(dict.fromkeys(remark for record in good for remark in record.remarks)),
    )


def _outlook(minutes: int, seconds: float, spread: float, floor: float) -> Outlook:
    processes = int(60 * minutes / (2 * seconds))
    return Outlook(minutes, processes, smallest_effect(spread, processes, WANTED, floor) if processes > 1 else None)


def sentences(found: Selftest) -> list[str]:
    """The answer first."""
    twins = found.floor.twins
    assert twins is not None and twins.low is not None and twins.high is not None
    seen = words.figures(100 * abs(twins.value - 1), 2)
    bounds = f"{_signed(twins.low - 1)} to {_signed(twins.high - 1)}"
    first = (
        f"One cell against itself, {found.processes} processes under each name: they differ by {seen} % "
        f"(95 % interval {bounds})."
    )
    if not found.passed:
        first += " That is called a difference, and there is none: nothing measured on this machine now can be trusted."
    told = [_told(one) for one in found.outlook]
    last = f"Processes scatter by {words.figures(100 * found.spread, 2)} % around {words.duration(found.step)} a step"
    if found.flagged:
        last += f"; during {found.flagged} of {2 * found.processes} runs the machine was not steady"
    return [first, *told, last + ".", *found.remarks]


def _told(one: Outlook) -> str:
    time = f"{one.minutes} minute{'' if one.minutes == 1 else 's'}"
    if one.difference is None:
        return f"In {time} there is no time for two processes of each, so nothing can be told apart."
    return (
        f"In {time} ({one.processes} processes of each) two such cells are told apart four times of five "
        f"if they differ by {words.figures(100 * one.difference, 2)} %."
    )


def _signed(share: float) -> str:
    return f"{'-' if share < 0 else '+'}{words.figures(100 * abs(share), 2)} %"
