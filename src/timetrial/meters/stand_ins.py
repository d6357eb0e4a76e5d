"""Energy where nothing counts it: a file that is played again, or a model of the processor's power.

Both are used only where a study asks for them, and whatever comes of them carries their name.
"""

from __future__ import annotations

import csv
import os
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from timetrial.meters.power_source import PowerSource, Unreadable

COLUMNS = ["time", "domain", "joules"]
_MODES = 8  # of a line of /proc/stat; what comes after them is counted in them already
_WAITING = (3, 4)  # idle, and idle while a disk works
Clock = Callable[[], float]


def replay(path: Path, clock: Clock = time.monotonic) -> list[PowerSource]:
    """A CSV file with the columns time (seconds), domain and joules (so far). Its time begins with the first read."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for line, row in _rows(path):
        try:
            seconds, joules = float(row["time"]), float(row["joules"])
        except (TypeError, ValueError):
            raise Unreadable(f"{path}, line {line}: time and joules must be numbers") from None
        curve = curves.setdefault(row["domain"], [])
        if curve and seconds <= curve[-1][0]:
            raise Unreadable(f"{path}, line {line}: the times of a domain must rise")
        curve.append((seconds, joules))
    started: list[float] = []
    return [_played(path, domain, curve, started, clock) for domain, curve in curves.items()]


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            names, rows = reader.fieldnames, list(enumerate(reader, 2))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{path} cannot be replayed ({error})") from None
    if names != COLUMNS or not rows:
        raise Unreadable(f"{path} cannot be replayed: it should begin with the line {','.join(COLUMNS)}, and go on")
    return rows


def _played(
    path: Path, domain: str, curve: list[tuple[float, float]], started: list[float], clock: Clock
) -> PowerSource:
    times = [seconds for seconds, _ in curve]

    def read() -> float:
        now = clock()
        started[:] = started or [now]
        at = times[0] + now - started[0]
        after = bisect_right(times, at)
        if after == len(times):
            raise Unreadable(f"{path} ends after {times[-1] - times[0]:g} s of {domain}; play a longer one")
        (t0, e0), (t1, e1) = curve[after - 1], curve[after]
        return e0 + (e1 - e0) * (at - t0) / (t1 - t0)

    return PowerSource("replay", domain, domain if domain.startswith("cuda:") else "cpu", "counter", read)


def modelled(idle: float, core: float, stat: Path = Path("/proc/stat"), clock: Clock = time.monotonic) -> PowerSource:
    """`idle` watts, and `core` watts more for each core that is busy, whoever keeps it so."""
    start = clock()
    return PowerSource("model", "cpu", "cpu", "counter", lambda: idle * (clock() - start) + core * _busy(stat))


def _busy(stat: Path) -> float:
    """Seconds of all cores together since the machine was started."""
    try:
        with open(stat, encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1 : 1 + _MODES]]
    except (OSError, ValueError):
        raise Unreadable(f"{stat} does not tell how busy the machine is") from None
    return sum(value for i, value in enumerate(ticks) if i not in _WAITING) / os.sysconf("SC_CLK_TCK")
