"""A profile as events of Chrome's trace format: a process a profile, a track a thread.

Viewers take only nested spans on one track. Spans that overlap without nesting, as asynchronous work does, therefore
go to further tracks of the same thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from timetrial.profiling.profile import Profile
from timetrial.profiling.schema import Frame

STEPS_TRACK = 0
ASKED = "memory asked for in this step"
Event = dict[str, Any]


@dataclass(frozen=True)
class Track:
    number: int
    name: str
    rows: Sequence[int]  # of the table of spans, in the order of time


def events(profile: Profile, label: str, process: int) -> Iterator[Event]:
    """Names first, then steps, then operations track by track, then a counter of memory where it is known."""
    spans = occurrences(profile.ops)
    laid = tracks(spans)
    header = profile.header
    title = f"{label}: {header.model}, {header.task}, batch {header.batch}, {header.placement}"
    yield _meta(process, "process_name", name=title)
    yield _meta(process, "process_sort_index", sort_index=process)
    for number, name in ((STEPS_TRACK, "steps"), *((track.number, track.name) for track in laid)):
        yield _meta(process, "thread_name", number, name=name)
        yield _meta(process, "thread_sort_index", number, sort_index=number)
    for step in profile.steps.sort_values("start_ns").itertuples():
        yield _span(process, STEPS_TRACK, f"step {step.step}", "step", step.start_ns, step.duration_ns, {})
    rows = spans.to_dict("records")
    for track in laid:
        for index in track.rows:
            yield _operation(process, track.number, rows[index])
    yield from _memory(process, spans)


def occurrences(ops: Frame) -> Frame:
    """One row an occurrence: an operation that was split over layers is one span again, with all its layers."""
    plain = ops.astype({name: object for name in ops if isinstance(ops[name].dtype, pd.CategoricalDtype)})
    plain = plain.assign(layers=[[layer] if isinstance(layer, str) else [] for layer in plain["layer"]])
    cut = plain["share"] < 1
    keys = ["thread", "start_ns", "duration_ns", "name", "step"]
    joined = plain[cut].groupby(keys, sort=False, dropna=False)
    sums = dict.fromkeys(("layers", "self_ns", "wall_ns", "flops", "bytes"), "sum")
    first = dict.fromkeys(("type", "phase", "class", "attribution", "alloc_bytes"), "first")
    again = [joined.agg({**sums, **first}).reset_index()] if cut.any() else []
    found = pd.concat([plain[~cut], *again], ignore_index=True) if again else plain
    order = ["start_ns", "duration_ns"]
    return found.sort_values(order, ascending=[True, False], kind="stable").reset_index(drop=True)


def tracks(spans: Frame) -> list[Track]:
    """For each thread as many tracks as it takes for all spans of a track to be nested or apart."""
    found = list[Track]()
    names = spans["thread"].fillna("thread")
    starts, ends = spans["start_ns"].tolist(), (spans["start_ns"] + spans["duration_ns"]).tolist()
    for thread in sorted(names.unique(), key=str):
        lanes = _lanes([int(row) for row in spans.index[names == thread]], starts, ends)
        for number, rows in enumerate(lanes):
            name = str(thread) + (f" (overlapping {number})" if number else "")
            found.append(Track(len(found) + STEPS_TRACK + 1, name, rows))
    return found


def _lanes(rows: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> list[list[int]]:
    """`rows` by their start, of those that start together the longest first; each goes where it fits first."""
    lanes = list[list[int]]()
    open_ = list[list[int]]()  # of each lane, the ends of the spans that still run, the innermost last
    for row in rows:
        for lane, running in zip(lanes, open_, strict=True):
            while running and running[-1] <= starts[row]:
                running.pop()
            if not running or ends[row] <= running[-1]:
                lane.append(row)
                running.append(ends[row])
                break
        else:
            lanes.append([row])
            open_.append([ends[row]])
    return lanes


def _operation(process: int, track: int, row: dict[str, Any]) -> Event:
    """What is not known is left out."""
    told = {
        "type": row["type"],
        "layer": ", ".join(row["layers"]) or None,
        "phase": row["phase"],
        "class": row["class"],
        "attributed": row["attribution"],
        "self, µs": _micro(row["self_ns"]),
        "share of the wall, µs": _micro(row["wall_ns"]),
        "operations": row["flops"] or None,
        "bytes": row["bytes"] or None,
        "asked for, bytes": row["alloc_bytes"],
    }
    known = {name: value for name, value in told.items() if not pd.isna(value)}
    name = row["name"] if isinstance(row["name"], str) else str(row["type"])
    return _span(process, track, name, str(row["phase"]), row["start_ns"], row["duration_ns"], known)


def _memory(process: int, spans: Frame) -> Iterator[Event]:
    """What operations asked for, summed up from the beginning of each step; what was given back is not known."""
    asked = spans[spans["alloc_bytes"].notna()]
    so_far, current = 0, None
    for step, start, size in zip(asked["step"], asked["start_ns"], asked["alloc_bytes"], strict=True):
        so_far = int(size) + (so_far if step == current else 0)
        current = step
        yield {"ph": "C", "pid": process, "name": ASKED, "ts": _micro(start), "args": {"bytes": so_far}}


def _span(process: int, track: int, name: str, category: str, start: int, length: int, told: Event) -> Event:
    return {
        "ph": "X", "pid": process, "tid": track, "name": name, "cat": category, "ts": _micro(start),
        "dur": _micro(length), "args": told,
    }  # fmt: skip


def _meta(process: int, what: str, track: int = STEPS_TRACK, **args: Any) -> Event:
    return {"ph": "M", "pid": process, "tid": track, "name": what, "args": args}


def _micro(nanoseconds: float) -> float:
    return round(float(nanoseconds) / 1000, 3)
