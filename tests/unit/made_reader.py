"""Reads what `tests/faults/traced.py` writes: each step is dealt out evenly to the layers of the network. And keeps
such traces with their records, without measuring anything."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np

from tests.unit import made_records as made
from timetrial.cli.loading import trials_of
from timetrial.profiling.schema import Raw, TraceError, raw_ops, raw_steps
from timetrial.profiling.workload import Workload
from timetrial.records.profiled import Profiled
from timetrial.records.store import Store
from timetrial.records.traces import keep_trace, trace_name
from timetrial.spec.study import parse_study

STEPS = 15


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


def keep(
    folder: Path, study: str, model: str, engine: str, task: str, seconds: float = 1e-3, overhead: float = 1.02
) -> None:
    """In a folder of records: one run under the profiler, as a campaign leaves it."""
    asked = {"study": study, "models": [model], "engines": [engine], "tasks": [task], "recipe": {"batch": 16}}
    (trial,) = trials_of(parse_study(asked, "test"))
    run = f"{trial.id}-p"
    written = folder / ".written"
    written.mkdir(parents=True)
    ticks = [(n, int(n * seconds * 1e9), int((n + 1) * seconds * 1e9)) for n in range(STEPS)]
    (written / "round0.json").write_text(json.dumps(ticks))
    keep_trace(folder / study, run, written, trial)
    shutil.rmtree(written)
    profile = Profiled(
        format="made", steps=3, plain=(seconds,) * 5, profiled=(seconds * overhead,) * 5, trace=trace_name(run)
    )
    Store(folder).write(
        made.record(
            engine, 0, seconds, run=run, trial=trial.id, study=study, role="profile", laps=None, effort=None,
            profile=profile, cell={**trial.coordinates, "profile": "quick"},
        )
    )  # fmt: skip
