"""Operations of TensorFlow's graphs: events `scope/name:Type`, with the allocations made while they ran."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from timetrial.profiling.readers.events import Events, Operation, Rows
from timetrial.profiling.readers.protos import Ints
from timetrial.profiling.readers.scopes import NOWHERE, Place, Scopes, shares
from timetrial.profiling.schema import Frame

# They run other operations, which are told themselves.
CONTAINERS = re.compile(
    r"_*inference_.*|_*forward_.*|_*backward_.*|(Stateless)?(While|If|Case)|(Stateful)?PartitionedCall|_?Xla(Run|Launch)"
    r"|_XlaCompile|SymbolicGradient|RemoteCall"
)
AHEAD = "tf_data_"  # threads that make batches ready meanwhile: a step waits for none of their operations
INPUT = re.compile(r"Iterator.*|.*Dataset.*")
FUSED = re.compile(r".*Fused(Conv2D|MatMul|DepthwiseConv2dNative)")


def rows(events: Events, allocations: Events, scopes: Scopes) -> Rows:
    kinds, which = np.unique(events["kind"], return_inverse=True)
    operations = [operation(events.names[int(kind)], scopes) for kind in kinds]
    own = np.array([CONTAINERS.fullmatch(op.type) is None for op in operations], dtype=bool)[which]
    own &= ~np.array([name.startswith(AHEAD) for name in events.threads], dtype=bool)[events["thread"]]
    columns = {
        "which": which,
        "thread": events["thread"],
        "start_ns": events["start"],
        "duration_ns": events["duration"],
    }
    table = pd.DataFrame({name: column[own] for name, column in columns.items()})
    table["alloc_bytes"], table["out_bytes"] = pd.NA, pd.NA
    if len(allocations):
        of, size = _during(table, allocations), allocations["requested_bytes"]
        results = [key for key, text in allocations.texts.items() if text == "output"]
        table["alloc_bytes"] = _summed(of, size, len(table))
        table["out_bytes"] = _summed(of, np.where(np.isin(allocations["region_type"], results), size, 0), len(table))
    return Rows(operations, events.threads, table)


def operation(name: str, scopes: Scopes) -> Operation:
    scope, _, kind = (part.strip() for part in name.rpartition(":"))
    if scope == "EagerLocalExecute":
        scope = kind
    place = scopes.place(scope)
    if INPUT.fullmatch(kind):
        return Operation(scope, kind, Place(place.layer, "input"), "exact")
    if place.layer is not None and place.phase == "forward" and FUSED.fullmatch(kind):
        layers = scopes.fused_before(place.layer)
        if len(layers) > 1:
            parts = shares((layer, scopes.weight(layer)) for layer in layers)
            return Operation(scope, kind, Place(layers[0], place.phase), "fused_split", None, parts)
    return Operation(scope, kind, place, "none" if place == NOWHERE else "scope")


def _during(table: Frame, allocations: Events) -> Ints:
    """The row of the operation that began last on the thread of each allocation, -1 where it had ended."""
    began = table.reset_index(names="row").sort_values("start_ns", kind="stable")
    asked = pd.DataFrame({"thread": allocations["thread"], "start_ns": allocations["start"]})
    asked = asked.reset_index(names="number").sort_values("start_ns", kind="stable")
    began["end_ns"] = began["start_ns"] + began["duration_ns"]
    found = pd.merge_asof(asked, began[["row", "thread", "start_ns", "end_ns"]], on="start_ns", by="thread")
    row = np.where(found["start_ns"] <= found["end_ns"], found["row"], -1).astype(np.int64)
    return row[np.argsort(found["number"].to_numpy())]


def _summed(of: Ints, size: Ints, count: int) -> Ints:
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, of[of >= 0], size[of >= 0])
    return found
