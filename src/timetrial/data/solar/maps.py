"""Irradiance maps: what lies between the sensors, interpolated. Linear in the values, so one matrix does all maps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from timetrial.data.samples import DataError
from timetrial.data.solar.grid import Floats

LEAST = 4  # sensors that a map needs


def weights(metres: Floats, rows: int, columns: int, method: str, source: str) -> NDArray[np.float32]:
    """[rows x columns, sensor]: a map is this times the sensors' values. Row 0 is the north, column 0 the west.

    Beyond the sensors' hull every method takes the nearest sensor: nothing is extrapolated, so that no place gets an
    irradiance that no sensor near it has seen.
    """
    _check(metres, source)
    points = _points(metres, rows, columns)
    nearest = np.argmin(np.square(points[:, None] - metres).sum(axis=2), axis=1)
    found: Floats = np.eye(len(metres))[nearest]
    if method == "nearest":
        return found.astype(np.float32)
    between = _linear(metres, points) if method == "linear" else _radial(metres, points)
    inside = _inside(metres, points)
    found[inside] = between[inside]
    return found.astype(np.float32)


def _check(metres: Floats, source: str) -> None:
    if len(metres) < LEAST:
        raise DataError(f"{source}: {len(metres)} sensors are too few for a map; it needs at least {LEAST}")
    if not np.isfinite(metres).all():
        raise DataError(f"{source}: a map needs the position of every sensor")
    flat = metres - metres.mean(axis=0)
    if np.linalg.matrix_rank(flat, tol=1e-6 * max(float(np.abs(flat).max()), 1.0)) < 2:
        raise DataError(f"{source}: the sensors stand on one line, so that there is no map between them")


def _points(metres: Floats, rows: int, columns: int) -> Floats:
    """The middles of the map's cells, over the rectangle that just holds all sensors."""
    low, high = metres.min(axis=0), metres.max(axis=0)
    east = low[0] + (np.arange(columns) + 0.5) / columns * (high[0] - low[0])
    north = high[1] - (np.arange(rows) + 0.5) / rows * (high[1] - low[1])
    return np.stack([np.tile(east, rows), np.repeat(north, columns)], axis=1)


def _inside(metres: Floats, points: Floats) -> NDArray[np.bool_]:
    from scipy.spatial import Delaunay

    found: NDArray[np.bool_] = Delaunay(metres).find_simplex(points) >= 0
    return found


def _linear(metres: Floats, points: Floats) -> Floats:
    """On the triangles between sensors; the value of each sensor alone gives its column."""
    from scipy.interpolate import griddata

    found: Floats = griddata(metres, np.eye(len(metres)), points, method="linear", fill_value=0.0)
    return found


def _radial(metres: Floats, points: Floats) -> Floats:
    """A thin plate through all sensors: smooth, may go a little beyond the values that it joins."""
    from scipy.interpolate import RBFInterpolator

    scale = np.ptp(metres, axis=0).max()
    found: Floats = RBFInterpolator(metres / scale, np.eye(len(metres)), kernel="thin_plate_spline")(points / scale)
    return found
