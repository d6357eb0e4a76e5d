"""The energy sampler itself, a program of its own: one for the machine, whatever runs on it.

python energy_child.py CHOICE CORE,CORE,…     lines in: {"mark": NAME}, {"stop": true}; a line out: all marks

A mark reads everything at once. Between marks a power is read every tenth of a second, and a counter only as often
as it must be in order not to begin again unseen.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from timetrial.meters.energy_sources import Choice, find
from timetrial.meters.memory_child import Lines
from timetrial.meters.power_source import PowerSource, Tally

POWER_SECONDS = 0.1


def interval(source: PowerSource) -> float | None:
    """Between two looks; None: only when it is asked for."""
    if source.kind == "power":
        return POWER_SECONDS
    return None if source.seconds_to_wrap is None else source.seconds_to_wrap / 3


class Watch:
    """Looks at each source when it is due, and at all of them at a mark."""

    def __init__(self, sources: tuple[PowerSource, ...]) -> None:
        self.tallies = [Tally(source) for source in sources]
        self.marks: list[dict[str, Any]] = []
        self._due: dict[str, float] = {}
        self._look(self.tallies)

    def wait(self) -> float | None:
        """Seconds until the next look is due."""
        return max(min(self._due.values()) - time.monotonic(), 0.0) if self._due else None

    def look(self) -> None:
        now = time.monotonic()
        self._look([tally for tally in self.tallies if self._due.get(tally.source.domain, now + 1) <= now])

    def mark(self, name: str) -> None:
        start = time.monotonic()
        self._look(self.tallies)
        values = {tally.source.domain: [tally.joules, tally.looks, tally.wraps] for tally in self.tallies}
        self.marks.append({"name": name, "time": (start + time.monotonic()) / 2, "values": values})

    def answer(self) -> dict[str, Any]:
        broken = {tally.source.domain: tally.broken for tally in self.tallies if tally.broken}
        return {"marks": self.marks, "broken": broken}

    def _look(self, tallies: list[Tally]) -> None:
        for tally in tallies:
            tally.look()
            if every := interval(tally.source):
                self._due[tally.source.domain] = time.monotonic() + every


def main(choice: Choice, cores: set[int]) -> None:
    if cores:
        os.sched_setaffinity(0, cores)
    lines, watch = Lines(), Watch(find(choice).found)
    print(json.dumps("ready"), flush=True)
    while (line := lines.wait(watch.wait())) != b"":
        if line is None:
            watch.look()
            continue
        asked = json.loads(line)
        if "mark" in asked:
            watch.mark(asked["mark"])
        else:
            print(json.dumps(watch.answer()), flush=True)


if __name__ == "__main__":
    main(Choice.from_json(json.loads(sys.argv[1])), {int(word) for word in sys.argv[2].split(",") if word})
