"""Synthetic clouds: fields of random thickness that the wind carries over the sensors.

Each layer is a sheet of correlated noise, long enough that nothing passes twice in a day, moved by a wind of its own:
what a sensor upwind sees now, another sees later, but as the layers move differently, never quite the same. A slow
trend makes hours of broken sky and hours of sun. Thickness becomes a clear-sky index with the two modes that broken
clouds have, shade and sun, and with the brightening near an edge that lets it rise above one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from timetrial.data.solar.grid import Floats

Field = NDArray[np.float32]

CELL = 30.0  # metres; the disc of the sun blurs a shadow from 3,200 m by as much
SMALLEST, LARGEST = 60.0, 12_000.0  # metres: no structure is finer, none coarser
SLOPE = 3.6  # of the power spectrum between these, in two dimensions
EDGE = 0.05  # how fast shade begins, in units of thickness
SUN, SHADE = 1.04, 0.68  # clear-sky index in the open, and under thin cloud
DEPTH, DARKEST = 0.25, 0.50  # how much darker thick cloud is, and over which thickness
BRIGHT, REACH = 0.42, 0.5  # brightening at a cloud's edge, and over which thickness it fades


@dataclass(frozen=True)
class Layer:
    east: float  # wind, m/s
    north: float
    share: float  # of the variance of the whole

    @property
    def speed(self) -> float:
        return float(np.hypot(self.east, self.north))


def thickness(rng: np.random.Generator, layers: tuple[Layer, ...], seconds: Floats, metres: Floats) -> Field:
    """Standard normal over long times; [time, sensor]."""
    whole = np.zeros((len(seconds), len(metres)), np.float32)
    for layer in layers:
        whole += np.float32(np.sqrt(layer.share)) * _carried(rng, layer, seconds, metres)
    return whole


def trend(rng: np.random.Generator, seconds: Floats, spread: float) -> Floats:
    """Of the cover, within some hours: a few slow waves of random phase."""
    periods = np.array([2.0, 3.5, 7.0]) * 3600
    phases = rng.uniform(0, 2 * np.pi, len(periods))
    waves = np.sin(2 * np.pi * seconds[:, None] / periods + phases)
    found: Floats = spread * waves.sum(axis=1) * np.sqrt(2 / len(periods))
    return found


def index(thickness: Field, cover: Floats) -> Field:
    """Clear-sky index: above zero there is cloud. `cover` raises the thickness of all sensors at once."""
    beyond = thickness + cover.astype(np.float32)[:, None]
    inside, outside = np.maximum(beyond, 0), np.minimum(beyond, 0)
    shaded = 1 / (1 + np.exp(-np.clip(beyond / EDGE, -30, 30)))
    open_sky = SUN + BRIGHT * np.exp(outside / REACH) * (1 - np.exp(-np.square(beyond / 0.2)))
    under = SHADE - DEPTH * (1 - np.exp(-inside / DARKEST)) * np.clip(inside, 0, 1.2)
    found: Field = (open_sky + (under - open_sky) * shaded).astype(np.float32)
    return found


def _carried(rng: np.random.Generator, layer: Layer, seconds: Floats, metres: Floats) -> Field:
    """The sheet read where the sensors are, in the frame of the wind: along it and across it."""
    toward = np.array([layer.east, layer.north]) / layer.speed
    along, across = metres @ toward, metres @ np.array([-toward[1], toward[0]])
    path = (seconds - seconds[0]) * layer.speed
    sheet = _sheet(rng, _cells(2 * np.ptp(across) + LARGEST / 2), _cells(path[-1] + np.ptp(along) + LARGEST))
    found = np.empty((len(seconds), len(metres)), np.float32)
    for i, (ahead, aside) in enumerate(zip(along - along.min(), (across - across.min()) / CELL, strict=True)):
        row, part = int(aside), np.float32(aside % 1)
        line = (1 - part) * sheet[row] + part * sheet[row + 1]
        # Clouds come from upwind: what is over a sensor now was that far behind it before.
        found[:, i] = np.interp((path[-1] - path + ahead) / CELL, np.arange(len(line)), line)
    return found


def _cells(metres: float) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(int(np.ceil(metres / CELL)), real=True))


def _sheet(rng: np.random.Generator, across: int, along: int) -> Field:
    """Noise of variance one, as strong at each size as the power spectrum says."""
    from scipy.fft import fftfreq, irfft2, rfft2, rfftfreq

    noise = rfft2(rng.standard_normal((across, along), np.float32))
    first, second = (np.square(f).astype(np.float32) for f in (fftfreq(across, CELL), rfftfreq(along, CELL)))
    noise *= _strength(first[:, None] + second)
    noise[0, 0] = 0
    sheet: Field = irfft2(noise, (across, along), overwrite_x=True)
    sheet /= np.sqrt(np.mean(np.square(sheet)))
    return sheet


def _strength(squares: Field) -> Field:
    """Of waves by the square of their number: a power law between the largest and the smallest size."""
    found: Field = (squares + np.float32(LARGEST**-2)) ** np.float32(-SLOPE / 4)
    found *= np.exp(squares * np.float32(-(SMALLEST**2) / 2))
    return found
