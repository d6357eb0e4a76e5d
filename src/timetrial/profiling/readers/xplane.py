"""Traces of TensorFlow's and JAX's profilers: `round0.xplane.pb.gz` and so on, one file for each round of steps."""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from timetrial.profiling import times
from timetrial.profiling.readers import tensorflow_operations, xla_operations
from timetrial.profiling.readers.events import (
    ALLOCATION,
    STEP,
    TENSORFLOW,
    XLA,
    Events,
    Operation,
    Rows,
    gather,
)
from timetrial.profiling.readers.protos import Damaged, Ints
from timetrial.profiling.readers.scopes import Scopes
from timetrial.profiling.readers.xspace import planes
from timetrial.profiling.schema import Frame, Raw, TraceError, raw_ops, raw_steps
from timetrial.profiling.workload import Workload

SUFFIX = ".xplane.pb.gz"
AGAIN = "profile again with --fresh"
MOST_OVERLAPPING = 0.01  # of the operations: more cannot come from a clock's rounding
BETWEEN_NS = 1_000_000  # from the end of one round to the begin of the next
Known = TypeVar("Known")
INFERRED = 0.05  # of the operations' time: from here on it is said


@dataclass(frozen=True)
class Round:
    rows: Rows  # with `step`
    steps: Frame


def read(folder: Path, workload: Workload) -> Raw:
    found = sorted(folder.glob(f"round*{SUFFIX}"), key=_number)
    if not found:
        raise TraceError(f"{folder}: no trace of a round is there (round*{SUFFIX}); {AGAIN}")
    scopes = Scopes(workload)
    compiled = xla_operations.Compiled(scopes, workload.task == "infer")
    return _joined(folder, [_round(path, scopes, compiled, workload.engine) for path in found])


def _number(path: Path) -> int:
    found = re.search(r"\d+", path.name)
    return int(found.group()) if found else 0


def _unpacked(path: Path) -> bytes:
    try:
        data = gzip.decompress(path.read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path}: cut short or no packed file ({error}); {AGAIN}") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
    if not data:
        raise TraceError(f"{path}: empty; {AGAIN}")
    return data


def _round(path: Path, scopes: Scopes, compiled: xla_operations.Compiled, engine: str) -> Round:
    data = _unpacked(path)
    try:
        space = planes(data)
        events = gather(space)
        compiled.meet(space)
        steps = _steps(events[STEP])
        rows = _rows(path, events, scopes, compiled, engine)
    except (Damaged, RecursionError) as error:
        raise TraceError(f"{path}: no trace of TensorFlow or JAX, or damaged: {error}; {AGAIN}") from None
    _check(path, steps, rows)
    table, start = rows.table, steps["start_ns"].to_numpy()
    of = np.searchsorted(start, table["start_ns"], side="right") - 1
    within = (of >= 0) & (table["start_ns"].to_numpy() < (start + steps["duration_ns"].to_numpy())[of])
    table = table[within].assign(step=steps["step"].to_numpy()[of[within]])
    if table.empty:
        raise TraceError(f"{path}: no operation of {engine} ran within its steps; {AGAIN}")
    return Round(Rows(rows.operations, rows.threads, table), steps)


def _steps(events: Events) -> Frame:
    found = raw_steps(events["step_num"], events["start"], events["duration"])
    return found.sort_values("start_ns", ignore_index=True)


def _rows(
    path: Path, events: dict[str, Events], scopes: Scopes, compiled: xla_operations.Compiled, engine: str
) -> Rows:
    """Of a graph that TensorFlow hands to XLA, the operations are XLA's, beside those that it runs itself."""
    if engine.endswith("jax") and not len(events[XLA]) and len(events[TENSORFLOW]):
        raise TraceError(f"{path}: a trace of TensorFlow, where the run was of {engine}; {AGAIN}")
    found = xla_operations.rows(events, compiled) if len(events[XLA]) else None
    if len(events[TENSORFLOW]) and not engine.endswith("jax"):
        own = tensorflow_operations.rows(events[TENSORFLOW], events[ALLOCATION], scopes)
        found = found.with_(own) if found else own
    if found is None or found.table.empty:
        raise TraceError(f"{path}: no operations of {engine} are in it; {AGAIN}")
    return found


def _check(path: Path, steps: Frame, rows: Rows) -> None:
    if steps.empty:
        raise TraceError(f"{path}: no steps are marked in it, so nothing can be told of one; {AGAIN}")
    start, end = steps["start_ns"].to_numpy(), (steps["start_ns"] + steps["duration_ns"]).to_numpy()
    if np.any(start[1:] < end[:-1]) or not steps["step"].is_unique:
        raise TraceError(f"{path}: steps overlap or have the same number, which those of a loop never do; {AGAIN}")
    columns = (rows.table[name].to_numpy(np.int64) for name in ("thread", "start_ns", "duration_ns"))
    overlapping = times.overlaps(*columns)
    if overlapping > max(1, MOST_OVERLAPPING * len(rows.table)):
        message = "operations begin within another of their thread and outlast it, which no thread can do"
        raise TraceError(f"{path}: {overlapping} of {len(rows.table)} {message}; {AGAIN}")


# --- all rounds together ----------------------------------------------------------------------------------------------


def _joined(folder: Path, rounds: list[Round]) -> Raw:
    """One after another, as if they had followed each other at once."""
    operations, threads = dict[Operation, int](), dict[str, int]()
    tables, steps, offset = [], [], 0
    for number, one in enumerate(rounds):
        shift = offset - int(one.steps["start_ns"].iloc[0])
        names = [f"{re.sub(r'/.*', '', name)} {i + 1}" for i, name in enumerate(one.rows.threads)]
        which = _interned(operations, one.rows.operations)[one.rows.table["which"].to_numpy()]
        thread = _interned(threads, names)[one.rows.table["thread"].to_numpy()]
        start = one.rows.table["start_ns"] + shift
        tables.append(one.rows.table.assign(which=which, thread=thread, start_ns=start, round=number))
        steps.append(one.steps.assign(start_ns=one.steps["start_ns"] + shift))
        offset = int((steps[-1]["start_ns"] + steps[-1]["duration_ns"]).iloc[-1]) + BETWEEN_NS
    table = pd.concat(tables).sort_values("start_ns", kind="stable", ignore_index=True)
    together = pd.concat(steps, ignore_index=True)
    if not together["step"].is_unique:
        raise TraceError(f"{folder}: several of its files tell of the same steps; {AGAIN}")
    return _raw(table, together, list(operations), list(threads))


def _interned(known: dict[Known, int], met: list[Known]) -> Ints:
    """A number for each that is met, the same in all rounds."""
    return np.array([known.setdefault(one, len(known)) for one in met], dtype=np.int64)


def _raw(table: Frame, steps: Frame, operations: list[Operation], threads: list[str]) -> Raw:
    which = table["which"].to_numpy()

    def told(values: list[str | None]) -> pd.Categorical:
        codes, known = pd.factorize(np.array(values, dtype=object))
        return pd.Categorical.from_codes(codes[which], categories=known)

    columns = {
        "step": table["step"],
        "thread": pd.Categorical.from_codes(table["thread"], categories=threads),
        "name": told([operation.name for operation in operations]),
        "type": told([operation.type for operation in operations]),
        "start_ns": table["start_ns"],
        "duration_ns": table["duration_ns"],
        "phase": told([operation.place.phase for operation in operations]),
        "layer": told([operation.place.layer for operation in operations]),
        "attribution": told([operation.attribution for operation in operations]),
        "alloc_bytes": table["alloc_bytes"],
        "out_bytes": table["out_bytes"],
    }
    return Raw(raw_ops(columns), steps, _parts(which, operations), remarks=_remarks(table, operations))


def _parts(which: Ints, operations: list[Operation]) -> Frame | None:
    """The layers of each occurrence of an operation that does the work of several."""
    found = []
    for number, operation in enumerate(operations):
        rows = np.flatnonzero(which == number) if operation.parts else ()
        for layer, share in operation.parts if len(rows) else ():
            found.append(pd.DataFrame({"row": rows, "layer": layer, "share": share}))
    return pd.concat(found, ignore_index=True).sort_values("row", kind="stable", ignore_index=True) if found else None


def _remarks(table: Frame, operations: list[Operation]) -> tuple[str, ...]:
    time, inferred = table["duration_ns"].to_numpy(float), [op.attribution == "inferred" for op in operations]
    share = time[np.array(inferred)[table["which"]]].sum() / max(time.sum(), 1.0)
    if share < INFERRED:
        return ()
    return (f"the layer of {share:.0%} of the operations' time is inferred from what reads their results",)
