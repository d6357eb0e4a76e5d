"""Traces of PyTorch's profiler (kineto's chrome JSON), as the worker's collectors mark them.

An operation belongs to the innermost range around it: `layer::NODE` and `phase::NAME` are ours, the optimiser's, the
loaders' and those of backward's nodes are torch's own. What runs backward carries the number of the forward operation
that made its node, and so comes to that one's layer. Ranges are no operations: time within a step and outside all
operations stays uncovered.

Kernels of a GPU stand on threads of their own and are tied to what launched them by their correlation: written from
kineto's format, and tried on traces made by hand only, not on a GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from timetrial.profiling.readers.chrome import REMEDY
from timetrial.profiling.readers.kineto_columns import DEVICE, LAUNCH, MEMORY, Codes, Columns, columns
from timetrial.profiling.readers.kineto_marks import Marks, Table
from timetrial.profiling.readers.kineto_nesting import Nesting, last_of_each, nest
from timetrial.profiling.schema import ATTRIBUTIONS, PHASES, Raw, TraceError, raw_ops, raw_steps
from timetrial.profiling.workload import Workload

Ints = NDArray[np.int64]
_ROUND = re.compile(r"round(\d+)\.json\.gz")
_STEP = re.compile(r"step::(\d{1,9})")
_UNKNOWN, _BACKWARD = PHASES.index("unknown"), PHASES.index("backward")
_EXACT, _SEQUENCE, _NONE = (ATTRIBUTIONS.index(word) for word in ("exact", "sequence", "none"))


@dataclass(frozen=True)
class Round:
    """Operations within the steps of one file, and those steps. Times in nanoseconds from the first step."""

    ops: dict[str, Ints]
    steps: dict[str, Ints]
    main: int  # the steps' thread
    measured: bool  # whether memory was
    loose: int  # operations of a device whose launch is not in the trace

    @property
    def end(self) -> int:
        ends = [part["start_ns"] + part["duration_ns"] for part in (self.ops, self.steps)]
        return int(np.concatenate(ends).max())


def read(folder: Path, workload: Workload) -> Raw:
    numbered = sorted((int(found[1]), path) for path in folder.iterdir() if (found := _ROUND.fullmatch(path.name)))
    if not numbered:
        raise TraceError(f"{folder}: holds no round0.json.gz; {REMEDY}")
    names, threads, marks = Codes(), Codes(), Marks(workload.network, folder)
    rounds, peaks = [], dict[str, int]()
    for _, path in numbered:
        read_in = columns(path, names, threads)
        rounds.append(_round(read_in, marks.table(names), names, path))
        for device, most in read_in.peaks.items():
            peaks[device] = max(peaks.get(device, 0), most)
    _check_numbers(rounds, folder)
    return _joined(rounds, names, _labels(threads, rounds[0].main), marks.layers, peaks)


# --- one file ---------------------------------------------------------------------------------------------------------


def _round(read_in: Columns, table: Table, names: Codes, path: Path) -> Round:
    steps, main = _steps(read_in, names, path)
    inside = read_in.kind != DEVICE
    is_op = table.is_op(read_in)
    found = nest(read_in, np.where(inside, table.mark[read_in.name], -1), is_op, table.phase == _BACKWARD)
    launch = _launches(read_in)
    at = np.where(launch >= 0, launch, np.arange(len(read_in.kind)))  # whose place in the step and the ranges counts
    step = _within(steps, read_in.start[at])
    phase, layer, attribution = _attributed(read_in, found, table, at)
    memory = (read_in.kind == MEMORY) & (read_in.number > 0) & (found.owner >= 0)
    alloc = np.zeros(len(read_in.kind), np.int64)
    np.add.at(alloc, found.owner[memory], read_in.number[memory])
    kept = np.flatnonzero((is_op | (read_in.kind == DEVICE)) & (step >= 0))
    kept = kept[np.lexsort((-read_in.duration[kept], read_in.start[kept]))]
    _check_lengths(read_in, kept, steps, names, path)
    base = steps["start_ns"][0]
    ops = {
        "step": steps["step"][step[kept]], "thread": read_in.thread[kept], "name": read_in.name[kept],
        "start_ns": read_in.start[kept] - base, "duration_ns": read_in.duration[kept], "phase": phase[kept],
        "layer": layer[kept], "attribution": attribution[kept], "alloc_bytes": alloc[kept],
    }  # fmt: skip
    loose = int(((read_in.kind == DEVICE) & (launch < 0))[kept].sum())
    measured = bool((read_in.kind == MEMORY).any())
    return Round(ops, {**steps, "start_ns": steps["start_ns"] - base}, main, measured, loose)


def _steps(read_in: Columns, names: Codes, path: Path) -> tuple[dict[str, Ints], int]:
    numbers = np.array([_step_number(name) for name in names], np.int64)
    rows = np.flatnonzero((numbers[read_in.name] >= 0) & (read_in.kind != DEVICE))
    if not len(rows):
        raise TraceError(f"{path}: marks no step (a range named step::0), so it is none of ours; {REMEDY}")
    rows = rows[np.argsort(read_in.start[rows], kind="stable")]
    start, duration = read_in.start[rows], read_in.duration[rows]
    if (start[1:] < (start + duration)[:-1]).any():
        raise TraceError(f"{path}: its steps overlap, so that no time belongs to one of them; {REMEDY}")
    found = {"step": numbers[read_in.name[rows]], "start_ns": start, "duration_ns": duration}
    return found, int(read_in.thread[rows[0]])


def _step_number(name: str) -> int:
    found = _STEP.fullmatch(name)
    return int(found[1]) if found else -1


def _within(steps: dict[str, Ints], times: Ints) -> Ints:
    """Which step each time lies in; -1 for none."""
    found = np.searchsorted(steps["start_ns"], times, side="right") - 1
    ends = (steps["start_ns"] + steps["duration_ns"])[np.maximum(found, 0)]
    return np.where((found >= 0) & (times < ends), found, -1)


def _launches(read_in: Columns) -> Ints:
    """The row that launched each operation of a device; -1 for all others, and where it is not in the trace."""
    found = np.full(len(read_in.kind), -1, np.int64)
    device, launch = (np.flatnonzero((read_in.kind == kind) & (read_in.number >= 0)) for kind in (DEVICE, LAUNCH))
    if len(launch):
        found[device] = last_of_each(read_in.number, launch, read_in.number[device])
    return found


def _attributed(read_in: Columns, found: Nesting, table: Table, at: Ints) -> tuple[Ints, Ints, Ints]:
    """Phase, layer and attribution of every row, from the ranges around it or around what launched it."""
    mark, node = found.mark[at], found.node[at]
    phase, layer = table.phase[mark], table.layer[mark]
    forward = np.flatnonzero(found.forward)
    by_start = forward[np.lexsort((-read_in.duration[forward], read_in.start[forward]))]
    backward = np.flatnonzero((phase == _BACKWARD) & (node >= 0))
    made = last_of_each(read_in.number, by_start, node[backward])  # of nested ones, the one that began last
    layer[backward] = np.where(made >= 0, table.layer[found.mark[made]], layer[backward])
    attribution = np.where(phase == _UNKNOWN, _NONE, _EXACT)
    attribution[backward[layer[backward] >= 0]] = _SEQUENCE
    return phase, layer, attribution


def _check_lengths(read_in: Columns, kept: Ints, steps: dict[str, Ints], names: Codes, path: Path) -> None:
    if not len(kept):
        return
    whole = steps["start_ns"][-1] + steps["duration_ns"][-1] - steps["start_ns"][0]
    longest = kept[np.argmax(read_in.duration[kept])]
    if read_in.duration[longest] > whole:
        name = list(names)[read_in.name[longest]]
        raise TraceError(f"{path}: '{name}' in a step lasts longer than all its steps together; {REMEDY}")


# --- all files --------------------------------------------------------------------------------------------------------


def _check_numbers(rounds: list[Round], folder: Path) -> None:
    numbers, counts = np.unique(np.concatenate([each.steps["step"] for each in rounds]), return_counts=True)
    if (counts > 1).any():
        number = numbers[counts > 1][0]
        raise TraceError(f"{folder}: step {number} is there more than once; {REMEDY}")


def _labels(threads: Codes, main: int) -> list[str]:
    """The thread of the steps, the others in the order in which they came, and the streams of devices."""
    found, others = [], 0
    for code, (pid, tid, device) in enumerate(threads):
        others += code != main and not device
        found.append(f"device {pid} stream {tid}" if device else "main" if code == main else f"thread {others}")
    return found


def _joined(rounds: list[Round], names: Codes, threads: list[str], layers: list[str], peaks: dict[str, int]) -> Raw:
    """The rounds one after the other: what lay between them was not traced."""
    offsets = np.cumsum([0, *(each.end for each in rounds[:-1])])
    ops = {key: np.concatenate([each.ops[key] for each in rounds]) for key in rounds[0].ops}
    steps = {key: np.concatenate([each.steps[key] for each in rounds]) for key in rounds[0].steps}
    for part, sizes in ((ops, [each.ops for each in rounds]), (steps, [each.steps for each in rounds])):
        part["start_ns"] = part["start_ns"] + np.repeat(offsets, [len(each["start_ns"]) for each in sizes])
    measured = np.repeat([each.measured for each in rounds], [len(each.ops["step"]) for each in rounds])
    found: dict[str, Any] = {
        "step": ops["step"].astype(np.int32), "start_ns": ops["start_ns"], "duration_ns": ops["duration_ns"],
        "thread": _category(ops["thread"], threads), "name": _category(ops["name"], list(names)),
        "phase": _category(ops["phase"], PHASES), "layer": _category(ops["layer"], layers),
        "attribution": _category(ops["attribution"], ATTRIBUTIONS),
        "alloc_bytes": pd.arrays.IntegerArray(ops["alloc_bytes"], ~measured),
    }  # fmt: skip
    found["type"] = found["name"]
    loose = sum(each.loose for each in rounds)
    remarks = (f"{loose} operations of the device have no launch in the trace, and so no layer",) if loose else ()
    return Raw(raw_ops(found), raw_steps(**steps), facts=_memory(peaks), remarks=remarks)


def _category(codes: Ints, words: Any) -> pd.Categorical:
    """Only the words that are met."""
    return pd.Categorical.from_codes(codes, words).remove_unused_categories()


def _memory(peaks: dict[str, int]) -> dict[str, Any]:
    if not peaks:
        return {}
    device = "cuda" if "cuda" in peaks else "cpu"
    kind = f"torch's allocator on {device}, most bytes above what lived when a round began"
    return {"memory_peak": peaks[device], "memory_kind": kind}
