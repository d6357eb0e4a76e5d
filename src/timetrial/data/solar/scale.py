"""From W/m² to what a network sees, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.data.samples import DataError


@dataclass(frozen=True)
class Scale:
    """(value - offset) / unit. One for the whole grid: what is brighter in W/m² is brighter for the network."""

    offset: float = 0.0
    unit: float = 1.0  # W/m² that one is

    def apply(self, values: NDArray[Any]) -> NDArray[np.float32]:
        return ((values - self.offset) / self.unit).astype(np.float32)

    def undo(self, values: NDArray[Any]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = values.astype(np.float64) * self.unit + self.offset
        return found


def fit(values: NDArray[Any], kind: str, source: str) -> Scale:
    if kind == "none":
        return Scale()
    if kind == "minmax":
        low, high = float(values.min()), float(values.max())
        offset, unit = low, high - low
    else:
        offset, unit = float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))
    if not unit > 0:
        raise DataError(f"{source}: all values of the training part are {offset:g} W/m², so that there is no scale")
    return Scale(offset, unit)
