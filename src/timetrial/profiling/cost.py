"""What operations compute and move, from the network alone: the same figures for every engine.

A layer's operations and bytes of a phase are charged to its operations of the class that does the work, in proportion
to their time: a framework may do one convolution in several operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from timetrial.profiling.schema import Frame
from timetrial.spec.layers import Node
from timetrial.spec.network import Network
from timetrial.spec.operations import operations
from timetrial.spec.shapes import elements

if TYPE_CHECKING:
    from timetrial.profiling.workload import Workload

BYTES = {"float32": 4, "float64": 8, "bfloat16": 2}
WORKING = ("conv", "matmul", "recurrent")  # the classes whose operations are counted


@dataclass(frozen=True)
class Work:
    """Of one layer in one phase of one step."""

    flops: float
    bytes: float  # read and written at least once: what the layer reads, its parameters, what it gives


def static(network: Network, batch: int, task: str, precision: str) -> dict[tuple[str, str], Work]:
    """By layer and phase. Backward, a layer reads its input, its output's gradient and its parameters, and writes the
    gradients of its input and parameters."""
    size, counted = BYTES[precision], {layer.layer: layer for layer in operations(network, batch).layers}
    found = {}
    for node in network.nodes:
        of = counted.get(node.name)
        moved = _moved(node, batch, size)
        found[node.name, "forward"] = Work(float(of.forward) if of else 0.0, moved)
        if task == "train":
            back = float(of.input_gradient + of.weight_gradient) if of else 0.0
            found[node.name, "backward"] = Work(back, 2 * moved)
    return found


def _moved(node: Node, batch: int, size: int) -> float:
    read = sum(elements(shape) for shape in node.in_shapes)
    own = sum(parameter.size for parameter in node.parameters)
    return float(size * (batch * (read + elements(node.shape)) + own))


def charged(ops: Frame, workload: Workload) -> Frame:
    """The table with `flops` and `bytes` of each operation; those of a phase or a layer unknown have none."""
    known = static(workload.network, workload.recipe.batch, workload.task, workload.recipe.precision)
    flops, moved = np.zeros(len(ops)), np.zeros(len(ops))
    steps = max(ops["step"].nunique(), 1)
    wall = ops["wall_ns"].to_numpy(float)
    working = ops["class"].isin(WORKING).to_numpy()
    for key, rows in _groups(ops).items():
        work = known.get(key)
        if work is None:
            continue
        flops[rows] = _dealt(steps * work.flops, wall, rows[working[rows]], rows)
        moved[rows] = _dealt(steps * work.bytes, wall, rows, rows)
    return ops.assign(flops=flops, bytes=moved)


def _groups(ops: Frame) -> dict[tuple[str, str], np.ndarray]:
    placed = ops[ops["layer"].notna()]
    grouped = pd.Series(placed.index, index=placed.index).groupby(
        [placed["layer"].astype(object), placed["phase"].astype(object)], observed=True
    )
    return {key: rows.to_numpy() for key, rows in grouped}


def _dealt(amount: float, wall: np.ndarray, takers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """`amount` over those of `rows` that are `takers`, by their time; over all where none is."""
    takers = takers if len(takers) else rows
    weight = np.where(np.isin(rows, takers), wall[rows], 0.0)
    total = weight.sum()
    return amount * weight / total if total else np.zeros(len(rows))
