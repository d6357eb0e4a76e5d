"""Least squares on log residuals for the curves that times and sizes follow. Points are sorted by x, all above 0."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from timetrial.stats.intervals import t_quantile

Array = np.ndarray[Any, Any]
ITERATIONS = 30
RISING, FALLING = np.geomspace(0.1, 8, 64), -np.geomspace(4, 0.1, 64)  # exponents that are tried beside a fixed part


@dataclass(frozen=True)
class Exponent:
    """Of y = a + b x^value, with its 95 % interval; a bound is None where the points set none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Fit:
    values: Array
    residual: float  # root mean square of log residuals, so relative
    parameters: int
    fixed: float = 0.0
    exponent: Exponent | None = None
    steps: tuple[float, ...] = ()


def constant(x: Array, y: Array) -> Iterator[Fit]:
    values = np.full(len(y), math.exp(np.log(y).mean()))
    yield Fit(values, rms(y, values), 1)


def linear(x: Array, y: Array) -> Iterator[Fit]:
    yield from _through_origin(x, y)
    # Falling, what is fixed in the fit is the value at the largest x, and no part of y that x does not change.
    yield _with_fixed(x, y) if _rising(y) else replace(_with_fixed(x[-1] - x, y), fixed=0.0)


def inverse(x: Array, y: Array) -> Iterator[Fit]:
    yield from _through_origin(1 / x, y)
    yield _with_fixed(1 / x, y)


def logarithmic(x: Array, y: Array) -> Iterator[Fit]:
    yield replace(_with_fixed(np.log(x / x[0] if _rising(y) else x[-1] / x), y), fixed=0.0)


def power(x: Array, y: Array, noise: float) -> Iterator[Fit]:
    """A straight line in log-log, so that the exponent's interval is Student's. Its variance is never taken for smaller
    than the noise, because a handful of points lies on a line by chance."""
    lx, ly = np.log(x) - np.log(x).mean(), np.log(y)
    slope = float(lx @ ly / (lx @ lx))
    values = np.exp(ly.mean() + slope * lx)
    residual, spare = rms(y, values), len(x) - 2
    deviation = max(residual * math.sqrt(len(x) / spare), noise)
    half = float(t_quantile(0.95, spare)) * deviation / math.sqrt(lx @ lx)
    yield Fit(values, residual, 2, 0.0, Exponent(slope, slope - half, slope + half))


def shifted_power(x: Array, y: Array, noise: float) -> Iterator[Fit]:
    """y = a + b x^k with a fixed part above 0: what a launch or a call costs, however small the work. The interval of k
    is a profile: all exponents whose best curve is not refused against the very best by an F test."""
    spare = len(x) - 3
    if spare < 1:
        return
    grid = RISING if _rising(y) else FALLING
    squares, _, _ = _powers(x, y, grid)
    kept = _kept(squares, spare, noise)
    # Once more between the neighbours of those kept, so that the interval is finer than the grid.
    fine = np.linspace(grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, len(grid) - 1)], len(grid))
    squares, curves, fixed = _powers(x, y, fine)
    kept = _kept(squares, spare, noise)
    low, high = (None if fine[index] in (grid[0], grid[-1]) else float(fine[index]) for index in (kept[0], kept[-1]))
    best = int(np.argmin(squares))
    exponent = Exponent(float(fine[best]), low, high)
    yield Fit(curves[best], rms(y, curves[best]), 3, float(fixed[best]), exponent)


def _powers(x: Array, y: Array, exponents: Array) -> tuple[Array, Array, Array]:
    """Squares left, curve and fixed part of the best curve for each exponent."""
    g = (x / x[-1]) ** exponents[:, None]
    fixed, slope = affine(g, y)
    curves = fixed[:, None] + slope[:, None] * g
    return ((np.log(y) - np.log(curves)) ** 2).sum(axis=1), curves, fixed


def _kept(squares: Array, spare: int, noise: float) -> Array:
    least = float(squares.min())
    deviation = max(math.sqrt(least / spare), noise)
    return np.flatnonzero(squares <= least + (float(t_quantile(0.95, spare)) * deviation) ** 2)


def staircase(x: Array, y: Array) -> Iterator[Fit]:
    """Levels of at least two points, all steps in one direction, the best places for each number of steps."""
    logs = np.log(y)
    for levels in range(2, len(x) // 2 + 1):
        starts = _best_starts(logs, levels)
        means = [part.mean() for part in np.split(logs, starts[1:])]
        if np.all(np.diff(means) > 0) or np.all(np.diff(means) < 0):
            values = np.exp(np.repeat(means, np.diff([*starts, len(x)])))
            steps = tuple(float(x[start]) for start in starts[1:])
            yield Fit(values, rms(y, values), 2 * levels - 1, steps=steps)


def rms(y: Array, values: Array) -> float:
    return float(np.sqrt(np.mean((np.log(y) - np.log(values)) ** 2)))


def _rising(y: Array) -> bool:
    half = len(y) // 2
    return float(np.median(np.log(y[-half:]))) >= float(np.median(np.log(y[:half])))


def _through_origin(g: Array, y: Array) -> Iterator[Fit]:
    values = g * math.exp(np.mean(np.log(y / g)))
    yield Fit(values, rms(y, values), 1)


def _with_fixed(g: Array, y: Array) -> Fit:
    fixed, slope = (float(part[0]) for part in affine(g[None, :], y))
    values = fixed + slope * g
    return Fit(values, rms(y, values), 2, fixed)


def affine(g: Array, y: Array) -> tuple[Array, Array]:
    """a and b, both above 0, of y = a + b g for each row of g, by Gauss and Newton on log residuals."""
    fixed, slope = _step(1 / y, g / y, np.ones_like(g))  # least relative residuals to start from
    fixed, slope = np.maximum(fixed, 0.1 * y.min()), np.maximum(slope, 0.1 * y.min() / g.max(axis=1))
    for _ in range(ITERATIONS):
        values = fixed[:, None] + slope[:, None] * g
        more, steeper = _step(1 / values, g / values, np.log(y / values))
        # Neither ends below 0: a step may take away nine tenths of it at most.
        fixed, slope = np.maximum(fixed + more, 0.1 * fixed), np.maximum(slope + steeper, 0.1 * slope)
    return fixed, slope


def _step(u: Array, v: Array, r: Array) -> tuple[Array, Array]:
    """Least squares of r = p u + q v, row by row."""
    uu, uv, vv = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
    ur, vr = (u * r).sum(-1), (v * r).sum(-1)
    determinant = np.maximum(uu * vv - uv**2, 1e-12 * uu * vv)
    return (vv * ur - uv * vr) / determinant, (uu * vr - uv * ur) / determinant


def _best_starts(logs: Array, levels: int) -> list[int]:
    """Where the levels start, so that the squares within them are least."""
    count = len(logs)
    sums, squares = np.insert(np.cumsum(logs), 0, 0.0), np.insert(np.cumsum(logs**2), 0, 0.0)

    def cost(start: int, end: int) -> float:
        return float(squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start))

    best = {(1, end): (cost(0, end), [0]) for end in range(2, count + 1)}
    for level in range(2, levels + 1):
        for end in range(2 * level, count + 1):
            best[level, end] = min(
                (best[level - 1, start][0] + cost(start, end), [*best[level - 1, start][1], start])
                for start in range(2 * level - 2, end - 1)
            )
    return best[levels, count][1]
