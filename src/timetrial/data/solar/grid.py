"""What every reader of a sensor grid gives out, whatever its file looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from timetrial.data.samples import DataError

Floats = NDArray[np.float64]
Times = NDArray[np.int64]

SECOND = 1_000_000_000  # of the times' nanoseconds
EARTH = 6_371_000.0  # metres


@dataclass(frozen=True)
class Grid:
    """Irradiance in W/m², one row an instant, one column a sensor. What is missing is NaN, also a position."""

    source: str  # the file, with its path, or the words that errors name
    times: Times  # ns since 1970, UTC, strictly rising
    sensors: tuple[str, ...]
    values: NDArray[np.float32]
    latitude: Floats
    longitude: Floats
    station: Mapping[str, str] = field(default_factory=dict)
    synthetic: bool = False

    @property
    def name(self) -> str:
        """What records say: where a user keeps a file is nobody's business."""
        return self.source if self.synthetic else Path(self.source).name

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_times(self)

    @property
    def step(self) -> float:
        """Seconds between most neighbours."""
        return float(np.median(np.diff(self.times))) / SECOND if len(self.times) > 1 else 0.0

    @property
    def place(self) -> tuple[float, float]:
        """Latitude and longitude of the middle of the sensors that have a position."""
        known = np.isfinite(self.latitude) & np.isfinite(self.longitude)
        if not known.any():
            raise DataError(f"{self.source}: no sensor has a position, so that the sun's height there is not known")
        return float(self.latitude[known].mean()), float(self.longitude[known].mean())

    @property
    def metres(self) -> Floats:
        """East and north of the middle, by sensor. On a few kilometres the earth is flat."""
        latitude, longitude = self.place
        north = np.radians(self.latitude - latitude) * EARTH
        east = np.radians(self.longitude - longitude) * EARTH * np.cos(np.radians(latitude))
        return np.stack([east, north], axis=1)

    def column(self, sensor: str) -> int:
        if sensor not in self.sensors:
            raise DataError(f"{self.source}: there is no sensor '{sensor}'; there are {', '.join(self.sensors)}")
        return self.sensors.index(sensor)

    def central(self) -> int:
        """The sensor that is nearest to the middle: the others surround it. The first, where positions are unknown."""
        if not np.isfinite(self.latitude).any():
            return 0
        return int(np.nanargmin(np.square(self.metres).sum(axis=1)))


def when(time: int) -> str:
    """An instant for people: 2013-09-08 09:15:00 UTC."""
    return str(np.datetime64(int(time), "ns").astype("datetime64[s]")).replace("T", " ") + " UTC"


def _check_shapes(grid: Grid) -> None:
    if grid.values.shape != (len(grid.times), len(grid.sensors)):
        raise DataError(
            f"{grid.source}: {len(grid.times):,} times and {len(grid.sensors)} sensors, but values of "
            f"{'x'.join(map(str, grid.values.shape))}"
        )
    if len(grid.latitude) != len(grid.sensors) or len(grid.longitude) != len(grid.sensors):
        raise DataError(f"{grid.source}: {len(grid.sensors)} sensors, but {len(grid.latitude)} positions")
    if not grid.times.size or not grid.sensors:
        raise DataError(f"{grid.source}: holds no measurements")
    if len(set(grid.sensors)) != len(grid.sensors):
        twice = next(name for name in grid.sensors if grid.sensors.count(name) > 1)
        raise DataError(f"{grid.source}: two sensors are named '{twice}'; names must differ")


def _check_times(grid: Grid) -> None:
    late = np.flatnonzero(np.diff(grid.times) <= 0)
    if late.size:
        at = int(late[0]) + 1
        again = grid.times[at] == grid.times[at - 1]
        problem = "is there twice" if again else f"comes after {when(grid.times[at - 1])}"
        remedy = "keep one row an instant" if again else "sort the rows by time"
        raise DataError(f"{grid.source}, row {at + 1}: {when(grid.times[at])} {problem}; {remedy}")
