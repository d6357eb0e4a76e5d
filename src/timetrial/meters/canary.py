"""The machine's canary: a small computation and a copy, always the same, timed before and after each run.

If the machine itself has become slower between two runs, their engines cannot be compared, however narrow the
intervals are. The canary is a program that stays for the whole campaign and sleeps between its songs.

It sings on the cores that the run has, one after the other and never at once: a step waits for the slowest of its
threads, so one core that is slow makes the run slow, and a song on the first alone would not see it. A song takes a
tenth of a second; of many cores, four are taken, spread evenly, the first and the last among them.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from timetrial.meters.helper import Helper

CHILD = Path(__file__).with_name("canary_child.py")
MOST_CORES = 4
PATIENCE = 20.0  # seconds; a song takes 0.1 s, the start of the program more on a busy machine
LEAST_DRIFT = 0.02


@dataclass(frozen=True)
class Song:
    """Seconds on one core."""

    core: int
    compute_seconds: float
    copy_seconds: float


@dataclass(frozen=True)
class Reading:
    """One song of the canary. Its seconds are those of the slowest core."""

    songs: tuple[Song, ...]

    @property
    def compute_seconds(self) -> float:
        return max(song.compute_seconds for song in self.songs)

    @property
    def copy_seconds(self) -> float:
        return max(song.copy_seconds for song in self.songs)

    def as_record(self) -> dict[str, Any]:
        return {
            "compute_seconds": self.compute_seconds,
            "copy_seconds": self.copy_seconds,
            "cores": [song.core for song in self.songs],
        }


@dataclass(frozen=True)
class Drift:
    """How much more time the same work took: 0.03 is 3 % slower, -0.03 is 3 % faster."""

    compute: float
    copy: float

    def remarks(self, floor: float = 0.0, noise: Noise | None = None) -> tuple[str, ...]:
        """A sentence for each part that changed by more than 2 %, than the session's own floor, and than the canary
        itself varies while nothing changes. None: the machine stayed what it was."""
        noise = noise or Noise(0.0, 0.0)
        parts = (("computes", self.compute, noise.compute), ("copies memory", self.copy, noise.copy))
        return tuple(
            _changed(what, change) for what, change, usual in parts if abs(change) > max(LEAST_DRIFT, floor, usual)
        )


@dataclass(frozen=True)
class Noise:
    """How far songs lie apart on a machine that is left alone, from the tenth to the ninetieth percentile, over their
    median."""

    compute: float
    copy: float


class Canary:
    """`with Canary() as canary: reading = canary.sing(cores)`. What cannot be measured is None, never an exception."""

    def __init__(self, child: Sequence[str | Path] = (CHILD,), patience: float = PATIENCE) -> None:
        self._child, self._patience = child, patience
        self._helper: Helper | None = None
        self._silent = False  # died twice over one song: it is not asked again

    def __enter__(self) -> Canary:
        self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._helper is not None:
            self._helper.close()
            self._helper = None

    def sing(self, cores: Sequence[int]) -> Reading | None:
        asked = spread(cores)
        if not asked or self._silent:
            return None
        for _ in range(2):
            if self._helper is None:
                self._start()
            if self._helper is not None:
                answer = self._helper.ask(asked, self._patience)
                if answer is not None:
                    return _reading(answer)
            self.close()
        self._silent = True
        return None

    @property
    def pid(self) -> int | None:
        return None if self._helper is None else self._helper.pid

    def _start(self) -> None:
        try:
            self._helper = Helper(self._child)
        except OSError:
            self._helper = None


def spread(cores: Sequence[int]) -> list[int]:
    """At most four of them, evenly, with the first and the last."""
    if len(cores) <= MOST_CORES:
        return list(cores)
    return [cores[round(i * (len(cores) - 1) / (MOST_CORES - 1))] for i in range(MOST_CORES)]


def drift(reference: Reading | None, reading: Reading | None) -> Drift | None:
    """Core by core where both sang on the same ones, and the worst of them; None where either was not measured."""
    if reference is None or reading is None:
        return None
    before = {song.core: song for song in reference.songs}
    pairs = [(before[song.core], song) for song in reading.songs if song.core in before]
    if not pairs:
        return None
    return Drift(
        compute=max((b.compute_seconds / a.compute_seconds - 1 for a, b in pairs), key=abs),
        copy=max((b.copy_seconds / a.copy_seconds - 1 for a, b in pairs), key=abs),
    )


def typical(readings: Sequence[Reading | None]) -> Reading | None:
    """The median of several readings, core by core: what this machine usually does."""
    by_core: dict[int, list[Song]] = {}
    for reading in readings:
        for song in reading.songs if reading else ():
            by_core.setdefault(song.core, []).append(song)
    songs = tuple(
        Song(
            core,
            statistics.median(song.compute_seconds for song in songs),
            statistics.median(song.copy_seconds for song in songs),
        )
        for core, songs in sorted(by_core.items())
    )
    return Reading(songs) if songs else None


def noise(readings: Sequence[Reading | None]) -> Noise | None:
    """Of songs on the same cores, one after the other; None of fewer than five."""
    heard = [reading for reading in readings if reading is not None]
    if len(heard) < 5:
        return None
    return Noise(_apart([one.compute_seconds for one in heard]), _apart([one.copy_seconds for one in heard]))


def _apart(values: Sequence[float]) -> float:
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return (tenths[-1] - tenths[0]) / statistics.median(values)


def _changed(what: str, change: float) -> str:
    return (
        f"the machine {what} {100 * abs(change):.1f} % {'more slowly' if change > 0 else 'faster'} than usual: "
        "let it come to rest, leave it alone, and repeat the run"
    )


def _reading(answer: Sequence[Mapping[str, Any]]) -> Reading | None:
    try:
        songs = tuple(Song(one["core"], one["compute"], one["copy"]) for one in answer)
    except (TypeError, KeyError):
        return None
    return Reading(songs) if songs else None  # no song: a core that this process may not use
