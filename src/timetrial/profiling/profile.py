"""One profile: the table of operations of some steps, and whether it proves anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from timetrial.profiling import cost, readers_of, times
from timetrial.profiling.classes import class_of
from timetrial.profiling.schema import Frame, Raw, TraceError
from timetrial.profiling.workload import Workload, read_workload
from timetrial.records.profiled import Profiled
from timetrial.records.record import Record
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Settings

# Below these a profile proves nothing: no verdict is drawn from it.
LEAST_COVERAGE, LEAST_ATTRIBUTED, MOST_OVERHEAD = 0.90, 0.90, 1.10


@dataclass(frozen=True)
class Header:
    """What a profile is of, and how far it can be trusted."""

    engine: str
    version: str
    model: str
    task: str
    batch: int
    placement: str
    precision: str
    dataset: str
    run: str
    steps: int  # traced, all rounds together
    step_seconds: float  # without the profiler
    profiled_seconds: float
    overhead: float  # profiled over plain, the median of the rounds' ratios
    coverage: float  # of the steps' wall time, in which an operation ran
    attributed: float  # of the operations' time, with a layer or a phase
    recovered: float  # operations' time of a step over the step without the profiler
    granularity_lost: float  # of the operations' time, in operations that did the work of several layers
    overlapping: int = 0  # spans that no thread can have had
    contended: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    session: str = ""  # in which it was made: only this one's limits of the machine are its own
    settings: Mapping[str, Any] = field(default_factory=dict)
    threads: int | None = None  # that it was held to; None where it took what it liked

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it is not evidence enough; none where it is."""
        found = []
        if self.coverage < LEAST_COVERAGE:
            found.append(f"operations cover {self.coverage:.0%} of the steps, {LEAST_COVERAGE:.0%} are wanted")
        if self.attributed < LEAST_ATTRIBUTED:
            found.append(
                f"{self.attributed:.0%} of their time has a layer or a phase, {LEAST_ATTRIBUTED:.0%} are wanted"
            )
        if self.overhead > MOST_OVERHEAD:
            found.append(f"the profiler slows a step {self.overhead:.2f}x, {MOST_OVERHEAD:.2f}x is allowed")
        return (*found, *self.contended)

    @property
    def enough(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class Profile:
    header: Header
    workload: Workload
    ops: Frame  # by schema.RAW and schema.DERIVED
    steps: Frame

    def per_step(self, *by: str) -> Frame:
        """Sums over operations, a mean step: wall_ns, self_ns, flops, bytes, alloc_bytes, count; largest first."""
        kept = {name: self.ops[name] for name in by}
        sums = {name: self.ops[name].astype("float64") for name in ("wall_ns", "self_ns", "flops", "bytes")}
        alloc = (self.ops["alloc_bytes"].astype("Float64") * self.ops["share"]).astype("float64")
        table = pd.DataFrame({**kept, **sums, "alloc_bytes": alloc, "count": self.ops["share"]})
        found = table.groupby(list(by), observed=True, dropna=False, sort=False)
        result = found.sum(min_count=1) / max(self.header.steps, 1)
        return result.sort_values("wall_ns", ascending=False).reset_index()


def load(study: Path, record: Record) -> Profile:
    """The profile of a record whose run was made for it; `study` is the folder of its study."""
    if record.profile is None:
        raise TraceError(f"{record.run}: this run was not made under a profiler; use measure: [time, profile]")
    folder = study / record.profile.trace
    workload = read_workload(folder)
    raw = readers_of.read(folder, record.profile.format, workload)
    return assemble(raw, workload, record)


def assemble(raw: Raw, workload: Workload, record: Record) -> Profile:
    ops, lost = derive(raw, workload)
    return Profile(_header(raw, ops, lost, workload, record), workload, ops, raw.steps)


def derive(raw: Raw, workload: Workload) -> tuple[Frame, float]:
    """The table with all columns, and the share of time whose layer had to be split."""
    ops = raw.ops
    codes, start = ops["thread"].cat.codes.to_numpy(np.int64), ops["start_ns"].to_numpy(np.int64)
    found = times.pieces(codes, start, ops["duration_ns"].to_numpy(np.int64))
    ops = ops.assign(
        **{
            "class": class_of(ops["type"], ops["phase"]),
            "self_ns": times.self_time(found, len(ops)),
            "wall_ns": times.wall_share(found, len(ops)),
            "share": 1.0,
        }
    )
    split, lost = _split(ops, raw.parts)
    return cost.charged(split, workload), lost


def _split(ops: Frame, parts: Frame | None) -> tuple[Frame, float]:
    """A row for each layer of a fused operation, with its share of all that adds up."""
    if parts is None or parts.empty:
        return ops, 0.0
    counts = parts["row"].value_counts()
    several = counts[counts > 1].index
    total = ops["wall_ns"].sum()
    lost = float(ops.loc[several, "wall_ns"].sum() / total) if total else 0.0
    rows = ops.loc[parts["row"]].reset_index(drop=True)
    rows["layer"] = pd.Categorical(parts["layer"].to_numpy())
    rows["share"] = parts["share"].to_numpy(float)
    for name in ("self_ns", "wall_ns"):
        rows[name] = rows[name] * rows["share"]
    whole = ops.drop(index=parts["row"].unique())
    joined = pd.concat(
        [whole.assign(layer=whole["layer"].astype(object)), rows.assign(layer=rows["layer"].astype(object))]
    )
    joined["layer"] = joined["layer"].astype("category")
    return joined.sort_values("start_ns", kind="stable").reset_index(drop=True), lost


def _header(raw: Raw, ops: Frame, lost: float, workload: Workload, record: Record) -> Header:
    run = record.profile
    assert run is not None
    wall = float(raw.steps["duration_ns"].sum())
    total = float(ops["wall_ns"].sum())
    named = ~ops["phase"].isin(["unknown", "runtime"]) | ((ops["phase"] == "runtime") & (ops["attribution"] == "exact"))
    told = ops["layer"].notna() | named
    plain = float(np.median(run.plain))
    ratios = np.array(run.profiled) / np.array(run.plain)
    threads, start = raw.ops["thread"].cat.codes.to_numpy(np.int64), raw.ops["start_ns"].to_numpy(np.int64)
    return Header(
        engine=str(record.cell["engine"]),
        version=str(record.cell.get("version") or ""),
        model=workload.model,
        task=workload.task,
        batch=workload.recipe.batch,
        placement=str(record.cell["placement"]),
        precision=workload.recipe.precision,
        dataset=str(record.cell.get("dataset", "")),
        run=record.run,
        steps=len(raw.steps),
        step_seconds=plain,
        profiled_seconds=float(np.median(run.profiled)),
        overhead=float(np.median(ratios)),
        coverage=_within(raw) / wall if wall else 0.0,
        attributed=float(ops.loc[told, "wall_ns"].sum()) / total if total else 0.0,
        recovered=_recovered(ops, run),
        granularity_lost=lost,
        overlapping=times.overlaps(threads, start, raw.ops["duration_ns"].to_numpy(np.int64)),
        contended=_contended(record),
        versions=record.versions,
        facts={**run.facts, **raw.facts},
        remarks=raw.remarks,
        session=record.session,
        settings={name: record.cell[name] for name in Settings.model_fields if name in record.cell},
        threads=_threads(record),
    )


def _recovered(ops: Frame, run: Profiled) -> float:
    """Round by round against the round without the profiler that came right before it: the machine may change pace."""
    rounds = ops["wall_ns"].groupby(ops["step"] // run.steps).sum() / run.steps / 1e9
    found = [total / run.plain[int(number)] for number, total in rounds.items() if 0 <= number < len(run.plain)]
    return float(np.median(found)) if found else 0.0


def _threads(record: Record) -> int | None:
    shipped = record.cell.get("threads") == "as-shipped"
    return None if shipped else Placement.parse(record.cell["placement"]).threads


def _within(raw: Raw) -> float:
    """Of the operations' union, what lies within the steps."""
    ops, total = raw.ops, 0.0
    start = ops["start_ns"].to_numpy(np.int64)
    end = start + ops["duration_ns"].to_numpy(np.int64)
    for first, length in zip(raw.steps["start_ns"], raw.steps["duration_ns"], strict=True):
        last = first + length
        near = (end > first) & (start < last)
        total += times.union(np.maximum(start[near], first), np.minimum(end[near], last))
    return total


LEAST_SHARE = 0.95  # of its core's time, that a single thread has to have had
BUSY_SWITCHES = 50  # a second and thread: several threads on a core put each other aside, so this alone says little
MOST_SPREAD = 1.5


def _contended(record: Record) -> tuple[str, ...]:
    """Signs that others wanted the cores meanwhile."""
    run = record.profile
    assert run is not None
    signs = (_put_aside(run, _threads(record)), _uneven(run))
    return tuple(f"{sign}; leave the machine alone" for sign in signs if sign)


def _put_aside(run: Profiled, threads: int | None) -> str:
    """What a single thread did not have of its core; of several threads only how often they were put aside is known."""
    if threads == 1 and run.plain_cpu:
        shares = np.array([*run.plain_cpu, *run.profiled_cpu]) / np.array([*run.plain, *run.profiled])
        share = float(np.median(shares))
        return f"it had its core for only {share:.0%} of the time" if share < LEAST_SHARE else ""
    seconds = run.steps * (sum(run.plain) + sum(run.profiled))
    rate = run.switches / seconds if seconds else 0.0
    return f"others took its cores {rate:.0f} times a second" if rate > BUSY_SWITCHES * (threads or 1) else ""


def _uneven(run: Profiled) -> str:
    spread = float(np.median(run.plain)) / min(run.plain) if run.plain else 1.0
    return f"the same steps took up to {spread:.1f} times their best" if spread > MOST_SPREAD else ""
