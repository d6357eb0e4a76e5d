"""One step as bars: a lane for each thread and depth of nesting. What is narrower than a pixel is merged with its
neighbours and counted, so that a picture stays light and leaves nothing out unsaid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pandas as pd

from timetrial.profiling.profile import Profile
from timetrial.profiling.schema import PHASES, Frame

PIXEL = 1 / 1000  # of the step's width
WIDEST = 5  # pixels of a bar of several operations
ROUNDING = 1e-12
MOST_BARS = 1500  # beyond it a pixel is made wider


@dataclass(frozen=True)
class Bar:
    """Start and length in shares of the step; of several operations, what most of their time is."""

    start: float
    length: float
    name: str
    type: str
    layer: str
    phase: str
    of_class: str
    seconds: float
    bytes: int | None
    count: int = 1

    @property
    def end(self) -> float:
        return self.start + self.length


@dataclass(frozen=True)
class Lane:
    thread: str
    depth: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Timeline:
    step: int
    seconds: float
    lanes: tuple[Lane, ...]  # thread by thread, the busiest first
    operations: int
    merged: int  # of them, those that stand in a bar with others
    outside: int  # operations of the step that ran before or after it

    @property
    def phases(self) -> tuple[str, ...]:
        seen = {bar.phase for lane in self.lanes for bar in lane.bars}
        return tuple(phase for phase in PHASES if phase in seen)


def timeline(profile: Profile, most: int = MOST_BARS) -> Timeline:
    """The step whose time is the median of all traced ones."""
    steps = profile.steps.sort_values("duration_ns", kind="stable")
    middle = steps.iloc[(len(steps) - 1) // 2]
    first, length = int(middle["start_ns"]), int(middle["duration_ns"])
    found = profile.ops[profile.ops["step"] == middle["step"]]
    rows = _whole(found[(found["start_ns"] < first + length) & (found["start_ns"] + found["duration_ns"] > first)])
    lanes = [
        Lane(str(thread), depth, tuple(bars))
        for thread in _busiest(rows)
        for depth, bars in enumerate(_depths(_bars(rows[rows["thread"] == thread], first, length)))
    ]
    drawn = _light(lanes, most)
    merged = sum(bar.count for lane in drawn for bar in lane.bars if bar.count > 1)
    return Timeline(int(middle["step"]), length / 1e9, drawn, len(rows), merged, len(_whole(found)) - len(rows))


def _light(lanes: list[Lane], most: int) -> tuple[Lane, ...]:
    pixel = PIXEL
    while True:
        drawn = tuple(replace(lane, bars=tuple(_merged(lane.bars, pixel))) for lane in lanes)
        if pixel >= 1 or sum(len(lane.bars) for lane in drawn) <= most:
            return drawn
        pixel *= 2


def _whole(ops: Frame) -> Frame:
    """An operation that was split over layers is one again, with all its layers."""
    key = ["thread", "start_ns", "duration_ns", "name"]
    split = ops["share"] < 1
    if not split.any():
        return ops
    layers = ops[split].astype({"layer": object}).groupby(key, observed=True)["layer"].agg(lambda of: " + ".join(of))
    once = ops[split].drop_duplicates(key)
    joined = [layers[tuple(row)] for row in once[key].itertuples(index=False, name=None)]
    whole = ops[~split].astype({"layer": object})
    return pd.concat([whole, once.assign(layer=pd.Series(joined, index=once.index, dtype=object))]).sort_values(
        "start_ns"
    )


def _busiest(rows: Frame) -> list[str]:
    """Threads by how much of the step is theirs."""
    return list(rows.groupby("thread", observed=True)["wall_ns"].sum().sort_values(ascending=False).index)


def _bars(rows: Frame, first: int, length: int) -> list[Bar]:
    """What encloses others comes before them. The ends of the step cut off what reaches beyond it."""
    names = ("start_ns", "duration_ns", "name", "type", "layer", "phase", "class", "alloc_bytes")
    rows = rows.sort_values(["start_ns", "duration_ns"], ascending=[True, False], kind="stable")
    found = []
    for start, took, name, of_type, layer, phase, of_class, size in zip(
        *(rows[n].tolist() for n in names), strict=True
    ):
        begin, end = max((start - first) / length, 0.0), min((start + took - first) / length, 1.0)
        known = "" if pd.isna(layer) else str(layer)
        space = None if pd.isna(size) else int(size)
        found.append(
            Bar(begin, end - begin, str(name), str(of_type), known, str(phase), str(of_class), took / 1e9, space)
        )
    return found


def _depths(bars: list[Bar]) -> list[list[Bar]]:
    """Each in the first lane that is free when it starts: a nested one lies below what it is nested in."""
    lanes: list[list[Bar]] = []
    for bar in bars:
        free = (lane for lane in lanes if lane[-1].end <= bar.start + ROUNDING)
        lane = next(free, None)
        if lane is None:
            lanes.append([bar])
        else:
            lane.append(bar)
    return lanes


def _merged(bars: Iterable[Bar], pixel: float) -> Iterator[Bar]:
    """Narrow neighbours together, as far as a few pixels: a row of many small ones stays a row."""
    waiting: list[Bar] = []
    for bar in bars:
        narrow = bar.length < pixel
        near = waiting and bar.start - waiting[-1].end < pixel and bar.end - waiting[0].start < WIDEST * pixel
        if not (narrow and near):
            yield from _one(waiting)
            waiting = []
        if narrow:
            waiting.append(bar)
        else:
            yield bar
    yield from _one(waiting)


def _one(bars: list[Bar]) -> Iterator[Bar]:
    """Of several neighbours one bar, from the first's start to the last's end."""
    if len(bars) < 2:
        yield from bars
        return
    phase, of_class, layer = (_most(bars, part) for part in ("phase", "of_class", "layer"))
    known = [bar.bytes for bar in bars if bar.bytes is not None]
    yield Bar(
        bars[0].start,
        bars[-1].end - bars[0].start,
        "other",
        "",
        layer if all(bar.layer == layer for bar in bars) else "",
        phase,
        of_class,
        sum(bar.seconds for bar in bars),
        sum(known) if known else None,
        len(bars),
    )


def _most(bars: list[Bar], part: str) -> str:
    sums: dict[str, float] = {}
    for bar in bars:
        sums[getattr(bar, part)] = sums.get(getattr(bar, part), 0.0) + bar.seconds
    return max(sums, key=lambda name: sums[name])
