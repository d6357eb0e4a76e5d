"""When a slow start has paid for itself, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from timetrial.report import words
from timetrial.report.phases import courses
from timetrial.report.summary import Row
from timetrial.stats.breakeven import Course, break_even, leaders
from timetrial.stats.verdicts import verdict


def crossings(rows: Sequence[Row]) -> list[str]:
    """Who leads from how many steps on, then when the quickest a step overtakes each of the others."""
    lines = courses(rows)
    if len(lines) < 2:
        return []
    by_engine = {row.engine: row for row in rows if row.engine in lines}
    return [_lead(lines, by_engine), *_overtaking(lines, by_engine)]


def _lead(lines: Mapping[str, Course], rows: Mapping[str, Row]) -> str:
    found = leaders(lines)
    (_, first), later = found[0], found[1:]
    if not later:
        return f"{first} starts first and stays ahead, however many steps are made."
    text = f"{first} is ahead for fewer than {_steps(later[0][0])}"
    before = first
    for steps, engine in later:
        sure = _told_apart(rows[engine], rows[before])
        doubt = "" if sure else f", not certainly: a step of {before} takes about as long"
        text += f"; from {_steps(steps)} on ({words.duration(lines[engine].after(steps))}) it is {engine}{doubt}"
        before = engine
    return text + "."


def _overtaking(lines: Mapping[str, Course], rows: Mapping[str, Row]) -> list[str]:
    quickest = min(lines, key=lambda engine: lines[engine].step)
    sure, unsure = [], []
    for engine, line in lines.items():
        steps = break_even(line, lines[quickest])
        if engine == quickest or steps is None:
            continue
        if not _told_apart(rows[engine], rows[quickest]):
            unsure.append(engine)
        else:
            sure.append(f"{engine} from {_steps(steps)} on" if steps else f"{engine} from the start")
    said = [f"{quickest}, the quickest a step, is ahead of {'; of '.join(sure)}."] if sure else []
    if unsure:
        names = " or ".join(unsure)
        said.append(f"A step of {names} is not told apart from one of {quickest}: no number of steps is given.")
    return said


def _told_apart(row: Row, other: Row) -> bool:
    return verdict(row.process_seconds, other.process_seconds).word in ("faster", "slower")


def _steps(number: int) -> str:
    return f"{number:,} step{'' if number == 1 else 's'}"
