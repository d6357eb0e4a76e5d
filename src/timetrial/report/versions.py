"""What newer versions brought: the rows of a group that are one engine in several versions, oldest first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.report import words
from timetrial.report.summary import Row
from timetrial.stats.verdicts import Verdict, verdict


@dataclass(frozen=True)
class History:
    """One engine in at least two versions that were measured."""

    engine: str
    rows: tuple[Row, ...]  # oldest first
    gain: Verdict  # of the newest over the oldest


def histories(rows: Sequence[Row], floor: float) -> list[History]:
    by_engine: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.step and row.version:
            by_engine[name_of(row)].append(row)
    found = []
    for engine, several in by_engine.items():
        several.sort(key=lambda row: _order(row.version))
        if len({row.version for row in several}) > 1:
            gain = verdict(several[-1].process_seconds, several[0].process_seconds, floor)
            found.append(History(engine, tuple(several), gain))
    return found


def name_of(row: Row) -> str:
    """Without the version that was asked for: `keras-jax@3.12.0 (fit)` is `keras-jax (fit)`."""
    return re.sub(r"@[^ ]+", "", row.engine)


def answer(history: History) -> str:
    """The newest against the oldest, as a speed-up."""
    old, new, gain = history.rows[0], history.rows[-1], history.gain
    times = f"{gain.speedup.value:.2f}x"
    if gain.speedup.low is not None and gain.speedup.high is not None:
        times += f" [{gain.speedup.low:.2f} to {gain.speedup.high:.2f}x]"
    said = {
        "faster": f"is {times} as fast as",
        "slower": f"is {times} as fast as",
        "same": f"is as fast ({times}) as",
        "undecided": f"is not told apart ({times}) from",
    }[gain.word]
    more = f"; {gain.more} more {'run' if gain.more == 1 else 'runs'} of each would decide" if gain.more else ""
    newest, oldest = (f"{row.version} ({words.timing(row.step)})" for row in (new, old))
    return f"{history.engine} {newest} {said} {oldest}{more}."


def _order(version: str) -> tuple[tuple[int, str], ...]:
    """Numbers as numbers: 2.10 is newer than 2.9."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[a-z]+", version))
