"""What a solar dataset looks like, in lines: its grid, and the samples that its options make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from timetrial.data.solar.compose import Part, compose
from timetrial.data.solar.grid import Grid, when
from timetrial.data.solar.samples import opened
from timetrial.data.solar.synthetic import Scene

if TYPE_CHECKING:
    from timetrial.data.registry import Dataset


def shown(dataset: Dataset) -> tuple[str, ...]:
    """As a network over rows of sensors gets it; one over maps gets the same instants, or fewer."""
    grid, chosen = opened(dataset, (Scene.sensors,))
    parts = compose(grid, chosen)
    ahead = f"sensor {', '.join(parts.targets)}, {chosen.horizon} s ahead"
    spans = {"x_train": parts.train, "validation": parts.validation, "x_test": parts.test}
    lines = (f"{name}: {_span(part)}" for name, part in spans.items() if len(part))
    unit = f"one unit is {parts.scale.unit:g} W/m², zero is {parts.scale.offset:g} W/m²"
    return (*_grid(grid), f"target: {ahead}; {unit}", *lines)


def _grid(grid: Grid) -> tuple[str, str]:
    first, last = when(grid.times[0]), when(grid.times[-1])
    missing = int(np.isnan(grid.values).sum())
    low, middle, high = (float(found(grid.values)) for found in (np.nanmin, np.nanmedian, np.nanmax))
    return (
        f"grid: {len(grid.sensors)} sensors, {len(grid.times):,} instants every {grid.step:g} s, {first} to {last}",
        f"irradiance: {low:,.0f} to {high:,.0f} W/m², half of it below {middle:,.0f}, {missing:,} values missing",
    )


def _span(part: Part) -> str:
    shape = "x".join(f"{size:,}" for size in part.x.shape)
    values = f"{shape} {part.x.dtype}, {part.x.min():g} to {part.x.max():g}"
    return f"{values}, seen {when(part.seen[0])} to {when(part.seen[-1])}"
