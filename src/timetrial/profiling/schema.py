"""The one table of operations, whatever the framework: a row for each occurrence (and for each layer, where one
operation does the work of several).

Times are nanoseconds. `self_ns` leaves out what nested operations of the same thread took. `wall_ns` is the share of
the wall clock: at each instant all operations that are active share it equally, so that it adds up to the union.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pandas as pd

Frame: TypeAlias = pd.DataFrame

PHASES = (
    "forward", "loss", "backward", "optimiser", "input", "transfer", "compile", "wait", "runtime", "unknown",
)  # fmt: skip
CLASSES = (
    "conv", "matmul", "recurrent", "pool", "norm", "elementwise", "reduce", "layout", "optimiser", "random", "memory",
    "queue", "dispatch", "other",
)  # fmt: skip
# How an operation came to its layer: told by the framework's marks, by the number that ties a gradient to its forward
# operation, by the scope in its name, split by the work of the layers that were fused into it, or inferred from what
# reads it and what it reads.
ATTRIBUTIONS = ("exact", "sequence", "scope", "fused_split", "inferred", "none")

# What a reader gives for each occurrence. Numbers that a framework does not tell are <NA> or NaN, never zero.
RAW = {
    "step": "int32",  # which step of the trace
    "thread": "category",
    "name": "category",  # as the framework names it
    "type": "category",  # the kind of operation: aten::conv2d, Conv2D, fusion
    "start_ns": "int64",  # from the beginning of the trace
    "duration_ns": "int64",
    "phase": "category",
    "layer": "category",  # the node of the network, or missing
    "attribution": "category",
    "alloc_bytes": "Int64",  # asked for by it
    "out_bytes": "Int64",
}
# What is worked out of it, equally for all.
DERIVED = {
    "class": "category",
    "self_ns": "float64",
    "wall_ns": "float64",
    "share": "float64",  # of the occurrence, where it is split over layers
    "flops": "float64",
    "bytes": "float64",
}


class TraceError(ValueError):
    """A trace that cannot be used: says which file, what is wrong with it, and what to do."""


@dataclass(frozen=True)
class Raw:
    """What a reader found: operations by `RAW`, steps with `step`, `start_ns`, `duration_ns`, and the layers of fused
    operations with `row` (of ops), `layer` and `share` (adding up to one)."""

    ops: Frame
    steps: Frame
    parts: Frame | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def raw_ops(columns: dict[str, Any]) -> Frame:
    """A table with all columns of `RAW` in their types; those not given are missing."""
    size = len(columns["start_ns"])
    found = {}
    for name, kind in RAW.items():
        values = columns.get(name)
        if values is None:
            values = pd.array([pd.NA] * size, dtype="Int64") if kind == "Int64" else pd.Categorical([None] * size)
        found[name] = values if getattr(values, "dtype", None) == kind else pd.Series(values).astype(kind).array
    return pd.DataFrame(found)


def raw_steps(step: Any, start_ns: Any, duration_ns: Any) -> Frame:
    return pd.DataFrame({"step": step, "start_ns": start_ns, "duration_ns": duration_ns}).astype("int64")
