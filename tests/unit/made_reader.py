"""Reads what `tests/faults/traced.py` writes: each step is dealt out evenly to the layers of the network."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from timetrial.profiling.schema import Raw, TraceError, raw_ops, raw_steps
from timetrial.profiling.workload import Workload


def read(folder: Path, workload: Workload) -> Raw:
    steps = [step for path in sorted(folder.glob("round*.json.gz")) for step in _steps(path)]
    phases = ["forward", "backward"] if workload.task == "train" else ["forward"]
    parts = [(node.name, node.op, phase) for phase in phases for node in workload.network.nodes]
    first = steps[0][1]
    rows = []
    for number, start, end in steps:
        edges = np.linspace(start - first, end - first, len(parts) + 1).astype(int)
        rows += [(number, *part, int(a), int(b - a)) for part, a, b in zip(parts, edges, edges[1:], strict=False)]
    columns = dict(
        zip(("step", "layer", "type", "phase", "start_ns", "duration_ns"), zip(*rows, strict=True), strict=True)
    )
    same = {"name": columns["type"], "thread": ["main"] * len(rows), "attribution": ["exact"] * len(rows)}
    return Raw(
        raw_ops({name: list(values) for name, values in {**columns, **same}.items()}),
        raw_steps(*zip(*((number, start - first, end - start) for number, start, end in steps), strict=True)),
    )


def _steps(path: Path) -> list[tuple[int, int, int]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [tuple(step) for step in json.load(file)]
    except ValueError:
        raise TraceError(f"{path}: is cut short; profile again with --fresh") from None
