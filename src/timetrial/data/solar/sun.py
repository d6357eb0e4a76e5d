"""Where the sun stands, and how strongly it would shine without clouds.

The position follows the low-precision formulas of the Astronomical Almanac (0.01 degrees from 1950 to 2050), the clear
sky the model of Haurwitz (1945): it needs the sun's height and nothing else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from timetrial.data.solar.grid import SECOND, Floats, Times

NOON_2000 = 946_728_000  # seconds from 1970 to the epoch J2000
HORIZON = -0.833  # degrees of the sun's middle at sunrise: refraction and half its disc
_STRENGTH, _EXTINCTION = 1098.0, 0.059


def elevation(times: Times, latitude: float, longitude: float) -> Floats:
    """Degrees above the horizon, without refraction."""
    days = (np.asarray(times, np.float64) / SECOND - NOON_2000) / 86_400
    ascension, declination = _apparent(days)
    sidereal = np.radians(280.46061837 + 360.98564736629 * days + longitude)
    hour, height = sidereal - ascension, np.radians(latitude)
    sine = np.sin(height) * np.sin(declination) + np.cos(height) * np.cos(declination) * np.cos(hour)
    degrees: Floats = np.degrees(np.arcsin(np.clip(sine, -1, 1)))
    return degrees


def clear_sky(elevation: ArrayLike) -> Floats:
    """Global irradiance on level ground in W/m²; zero at night."""
    sine = np.sin(np.radians(np.asarray(elevation, np.float64)))
    up = np.maximum(sine, 1e-6)
    strength: Floats = np.where(sine > 0, _STRENGTH * up * np.exp(-_EXTINCTION / up), 0.0)
    return strength


def _apparent(days: Floats) -> tuple[Floats, Floats]:
    """Right ascension and declination in radians."""
    anomaly = np.radians(357.528 + 0.9856003 * days)
    longitude = np.radians(280.460 + 0.9856474 * days + 1.915 * np.sin(anomaly) + 0.020 * np.sin(2 * anomaly))
    tilt = np.radians(23.439 - 4e-7 * days)
    ascension = np.arctan2(np.cos(tilt) * np.sin(longitude), np.cos(longitude))
    return ascension, np.arcsin(np.sin(tilt) * np.sin(longitude))
