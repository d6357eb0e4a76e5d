"""Which instants of a grid can be used: those with sun, without holes, and with a future."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from timetrial.data.samples import DataError
from timetrial.data.solar import sun
from timetrial.data.solar.grid import SECOND, Floats, Grid, when
from timetrial.data.solar.settings import Settings

Indices = NDArray[np.int64]


def mended(grid: Grid, settings: Settings) -> NDArray[np.float32]:
    """The values, holes filled or refused as the settings say. What is still NaN is for `usable` to leave out."""
    holes = np.isnan(grid.values)
    empty = np.flatnonzero(holes.all(axis=0))
    if empty.size:
        names = ", ".join(grid.sensors[i] for i in empty)
        raise DataError(f"{grid.source}: sensor {names} has not one value; remove its column")
    if not holes.any() or settings.missing == "drop":
        return grid.values
    if settings.missing == "refuse":
        row, column = np.argwhere(holes)[0]
        raise DataError(
            f"{grid.source}: sensor {grid.sensors[column]} has no value at {when(grid.times[row])}, the first of "
            f"{int(holes.sum()):,} missing ones; write missing=drop or missing=interpolate to go on without them"
        )
    filled = grid.values.copy()
    for column in np.flatnonzero(holes.any(axis=0)):
        _fill(grid.times / SECOND, filled[:, column], settings.gap)
    return filled


def _fill(seconds: Floats, values: NDArray[np.float32], gap: int) -> None:
    """Linear between two known values that are not further apart than the gap; never beyond the first or last."""
    known = np.flatnonzero(~np.isnan(values))
    holes = np.flatnonzero(np.isnan(values))
    after = np.searchsorted(known, holes)
    inner = (after > 0) & (after < len(known))
    holes, after = holes[inner], after[inner]
    short = seconds[known[after]] - seconds[known[after - 1]] <= gap
    values[holes[short]] = np.interp(seconds[holes[short]], seconds[known], values[known])


def daylight(grid: Grid, values: NDArray[np.float32], settings: Settings) -> NDArray[np.bool_]:
    bright: NDArray[np.bool_] = np.ones(len(values), np.bool_)
    if settings.elevation > -90:
        bright = sun.elevation(grid.times, *grid.place) >= settings.elevation
    if settings.least > 0:
        bright &= _means(values) >= settings.least
    if not bright.any():
        raise DataError(
            f"{grid.source}: from {when(grid.times[0])} to {when(grid.times[-1])} there is no daylight (the sun at "
            f"{settings.elevation:g} degrees or more, {settings.least:g} W/m² or more); lower elevation= or least="
        )
    return bright


def pairs(grid: Grid, usable: NDArray[np.bool_], settings: Settings, every: int) -> tuple[Indices, Indices]:
    """Rows that are seen, and the rows a horizon later that are predicted; both are usable."""
    span = (grid.times[-1] - grid.times[0]) / SECOND
    if span < settings.horizon:
        raise DataError(
            f"{grid.source}: holds {span:g} s, which is less than the horizon of {settings.horizon} s; "
            "use a shorter horizon or more data"
        )
    wanted = grid.times + settings.horizon * SECOND
    future = np.searchsorted(grid.times, wanted)
    there = future < len(grid.times)
    there[there] = grid.times[future[there]] == wanted[there]
    there &= usable & usable[np.minimum(future, len(usable) - 1)]
    there &= (grid.times - grid.times[0]) % (every * SECOND) == 0
    seen = np.flatnonzero(there)
    if not seen.size:
        raise DataError(
            f"{grid.source}: no two usable instants are {settings.horizon} s apart (rows come every {grid.step:g} s, "
            f"one in {every} s is asked for); choose another horizon= or every="
        )
    return seen, future[seen]


def _means(values: NDArray[np.float32]) -> Floats:
    """NaN, where there is nothing to take the mean of, is not bright."""
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    total = np.where(known, values, 0).sum(axis=1, dtype=np.float64)
    found: Floats = np.divide(total, count, out=np.zeros(len(values)), where=count > 0)
    return found
