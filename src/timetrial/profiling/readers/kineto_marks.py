"""What the names of ranges and operations say: which are ranges, and what phase and layer is within them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from timetrial.profiling.readers.chrome import REMEDY
from timetrial.profiling.readers.kineto_columns import ANNOTATION, HOST, Codes, Columns
from timetrial.profiling.schema import PHASES, TraceError
from timetrial.spec.network import Network

# torch's own: how their names begin, the phase, and whether they are operations too.
_TORCHS = (
    ("autograd::engine::evaluate_function", "backward", True),
    ("Optimizer.", "optimiser", False),
    ("enumerate(DataLoader)", "input", True),  # what a step waited for its batch
)
_OURS = ("step::", "layer::", "phase::")


@dataclass(frozen=True)
class Table:
    """Names and marks of the files so far, by their numbers."""

    mark: NDArray[np.int64]  # of each name; -1 for none
    never: NDArray[np.bool_]  # of each name: a range and no operation
    always: NDArray[np.bool_]  # an operation although it is a range
    phase: NDArray[np.int64]  # of each mark
    layer: NDArray[np.int64]  # of each mark; -1 for none

    def is_op(self, read_in: Columns) -> NDArray[np.bool_]:
        host, annotation = read_in.kind == HOST, read_in.kind == ANNOTATION
        found: NDArray[np.bool_] = (host & ~self.never[read_in.name]) | (annotation & self.always[read_in.name])
        return found


class Marks:
    """A range has the number of its name; -1, the last of all, is what stands within none."""

    def __init__(self, network: Network, folder: Path):
        self.layers, self._folder = [node.name for node in network.nodes], folder

    def table(self, names: Codes) -> Table:
        meant = [self._meaning(name) for name in names]
        phases = [PHASES.index(phase) for phase, _, _ in meant]
        marks = [code if found is not None else -1 for code, (_, _, found) in enumerate(meant)]
        return Table(
            np.array(marks, np.int64),
            np.array([name.startswith(_OURS) for name in names], bool),
            np.array([found is True for _, _, found in meant], bool),
            np.array([*phases, PHASES.index("unknown")], np.int64),
            np.array([*(layer for _, layer, _ in meant), -1], np.int64),
        )

    def _meaning(self, name: str) -> tuple[str, int, bool | None]:
        """Phase, layer, and whether it is an operation too; None for what is no range."""
        kind, _, word = name.partition("::")
        if kind == "layer":
            layer = unquote(word)
            if layer not in self.layers:
                raise TraceError(f"{self._folder}: marks a layer '{layer}', which its network does not have; {REMEDY}")
            return "forward", self.layers.index(layer), False
        if name == "phase::head":
            return "forward", len(self.layers) - 1, False
        if kind == "phase" and word in PHASES:
            return word, -1, False
        for beginning, phase, is_op in _TORCHS:
            if name.startswith(beginning):
                return phase, -1, is_op
        return "unknown", -1, None
