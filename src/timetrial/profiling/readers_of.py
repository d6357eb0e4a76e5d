"""Which reader understands which format."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from timetrial.profiling.schema import Raw, TraceError

if TYPE_CHECKING:
    from timetrial.profiling.workload import Workload

# Each module has `read(folder, workload) -> Raw`; folder holds the packed files of one run.
FORMATS = {
    "kineto": "timetrial.profiling.readers.kineto",
    "xplane": "timetrial.profiling.readers.xplane",
    "step_stats": "timetrial.profiling.readers.step_stats",
    "theano": "timetrial.profiling.readers.theano",
}


def read(folder: Path, kind: str, workload: Workload) -> Raw:
    if kind not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        raise TraceError(f"{folder}: nothing reads traces of the format '{kind}'; known: {known}")
    reader: Callable[[Path, Workload], Raw] = import_module(FORMATS[kind]).read
    found = reader(folder, workload)
    if found.ops.empty or found.steps.empty:
        raise TraceError(f"{folder}: the trace holds no operations within its steps; profile again with --fresh")
    return found
