"""A synthetic grid: a place, its sun, its sensors, and other clouds every day. Nothing in it was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from timetrial.data.samples import DataError
from timetrial.data.solar import clouds, sun
from timetrial.data.solar.grid import EARTH, SECOND, Floats, Grid, Times

DAY = 86_400
MOST_SENSORS, MOST_DAYS = 1000, 60


@dataclass(frozen=True)
class Scene:
    """The default is the place and the size of the grid that the study's data came from, with 50 sensors."""

    sensors: int = 50
    days: int = 5
    start: str = "2010-08-01"
    latitude: float = 21.312
    longitude: float = -158.084
    extent: float = 1000.0  # metres from side to side
    wind: float = 10.0  # m/s; the second layer of clouds has another
    cover: float = 0.5  # share of the sky in clouds, on average
    lowest: float = 5.0  # degrees of the sun: only what is above is made up
    seed: int = 1


@lru_cache(maxsize=2)
def make(scene: Scene) -> Grid:
    """The same scene gives the same grid. Kept in memory, as several networks may be trained on it."""
    _check(scene)
    layout, *weathers = np.random.SeedSequence(scene.seed).spawn(scene.days + 1)
    metres = _scattered(np.random.default_rng(layout), scene)
    days = [_day(scene, metres, at, np.random.default_rng(weather)) for at, weather in enumerate(weathers)]
    return Grid(
        source=f"synthetic solar grid (seed {scene.seed})",
        times=np.concatenate([times for times, _ in days]),
        sensors=tuple(str(i + 1) for i in range(scene.sensors)),
        values=np.concatenate([values for _, values in days]),
        latitude=scene.latitude + np.degrees(metres[:, 1] / EARTH),
        longitude=scene.longitude + np.degrees(metres[:, 0] / EARTH / np.cos(np.radians(scene.latitude))),
        station={"place": "synthetic", "network": "synthetic sensors under synthetic clouds"},
        synthetic=True,
    )


def _check(scene: Scene) -> None:
    for name, value, most in (("sensors", scene.sensors, MOST_SENSORS), ("days", scene.days, MOST_DAYS)):
        if not 1 <= value <= most:
            raise DataError(f"a synthetic solar grid has from 1 to {most} {name}, not {value}")
    try:
        np.datetime64(scene.start, "D")
    except ValueError:
        raise DataError(f"'{scene.start}' is no day; write the start of the grid as in 2010-08-01") from None
    if not (0 < scene.cover < 1 and scene.wind > 0 and scene.extent > 0 and abs(scene.latitude) <= 90):
        raise DataError("a synthetic solar grid wants a cover between 0 and 1, a wind, an extent and a latitude")


def _scattered(rng: np.random.Generator, scene: Scene) -> Floats:
    """Over a square, one sensor in each cell of a lattice, so that no two stand on one spot."""
    side = int(np.ceil(np.sqrt(scene.sensors)))
    cells = np.sort(rng.choice(side * side, scene.sensors, replace=False))
    places = np.stack([cells % side, cells // side], axis=1) + rng.uniform(0.1, 0.9, (scene.sensors, 2))
    return scene.extent * (places / side - 0.5)


def _day(scene: Scene, metres: Floats, day: int, rng: np.random.Generator) -> tuple[Times, clouds.Field]:
    times, clear = _daylight(scene, day)
    seconds = (times - times[0]) / SECOND
    thickness = clouds.thickness(rng, _layers(rng, scene.wind), seconds, metres)
    index = clouds.index(thickness, _cover(rng, scene, seconds))
    index *= clear.astype(np.float32)[:, None]
    return times, index


def _daylight(scene: Scene, day: int) -> tuple[Times, Floats]:
    """From noon to noon of local solar time there may be two dates in UTC: a day is the sun's."""
    midnight = np.datetime64(scene.start, "D").astype("datetime64[s]").astype(np.int64) - round(scene.longitude * 240)
    times = (midnight + day * DAY + np.arange(DAY)) * SECOND
    height = sun.elevation(times, scene.latitude, scene.longitude)
    up = height >= scene.lowest
    if up.sum() < 2:
        raise DataError(
            f"on {scene.start} and {day} days the sun does not rise above {scene.lowest:g} degrees at latitude "
            f"{scene.latitude:g}; choose another start, latitude or lowest"
        )
    return times[up], sun.clear_sky(height[up])


def _layers(rng: np.random.Generator, wind: float) -> tuple[clouds.Layer, ...]:
    """The wind is another every day. The higher layer is thinner and faster, by up to 40 degrees off."""
    toward = rng.uniform(0, 2 * np.pi)
    aside = toward + rng.uniform(-0.7, 0.7)
    low, high = wind * rng.uniform(0.7, 1.3), 1.5 * wind * rng.uniform(0.8, 1.2)
    return (
        clouds.Layer(low * np.cos(toward), low * np.sin(toward), 0.85),
        clouds.Layer(high * np.cos(aside), high * np.sin(aside), 0.15),
    )


def _cover(rng: np.random.Generator, scene: Scene, seconds: Floats) -> Floats:
    """Thickness to add, so that a share `cover` is in clouds on average; days and hours differ."""
    from scipy.special import ndtri

    spread = 0.5
    usual = float(ndtri(scene.cover)) * np.sqrt(1 + 2 * spread**2)
    found: Floats = usual + rng.normal(0, spread) + clouds.trend(rng, seconds, spread)
    return found
