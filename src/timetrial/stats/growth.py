"""By what law does a figure (seconds, bytes) grow with a size? The simplest law that the points do not speak against.

Laws are compared by AICc on log residuals. Errors of times are relative, so the logs are what is equally sure at small
and at large sizes, and the last point does not decide alone. AICc and not BIC, because there are four to ten points:
its correction for small samples grows without bound as a law comes near to having a parameter a point, where BIC's
penalty is smallest. The variance is common to all laws and not counted. A law needs a lead of 4 over every simpler one,
which makes a false claim of growth as rare as in a test at 2 % for each law tried, whatever the number of points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from timetrial.stats import curves
from timetrial.stats.curves import Array, Exponent, Fit

Law = Literal[
    "constant", "linear", "inverse", "logarithmic", "super-linear", "power", "staircase", "irregular", "too few points"
]
LEAST = 4  # sizes
LEAD = 4.0  # of AICc
NOISE = 0.01  # relative; curves that are nearer to the points than this are equally good
IRREGULAR = 0.15  # relative; a curve that leaves more than this describes nothing


@dataclass(frozen=True)
class Growth:
    """`rivals` are laws that the points do not speak against either. `residual` is what the law leaves, relative.

    `exponent` is given where the law is a power, `fixed` is the part of y that does not depend on x, `steps` are the x
    from which on a staircase is on its next level, and `fitted` holds the curve at each x.
    """

    law: Law
    points: int
    falling: bool = False
    exponent: Exponent | None = None
    fixed: float = 0.0
    steps: tuple[float, ...] = ()
    residual: float | None = None
    rivals: tuple[Law, ...] = ()
    fitted: tuple[float, ...] = ()


def growth(x: Sequence[float], y: Sequence[float], noise: float = NOISE) -> Growth:
    """Of one value (the mean over processes) at each of several sizes. `noise` is how well the values are known."""
    sizes, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    both = np.concatenate([sizes, values])
    if sizes.shape != values.shape or not (np.isfinite(both).all() and (both > 0).all()):
        raise ValueError("growth: needs as many sizes as values, all above 0; leave out the cells that have no value")
    if len(set(x)) < LEAST:
        return Growth("too few points", len(sizes))
    order = np.argsort(sizes, kind="stable")
    scored = [(score(fit, len(sizes), noise), law, fit) for law, fit in _candidates(sizes[order], values[order], noise)]
    least = min(mark for mark, _, _ in scored)
    near = sorted((fit.parameters, mark, index) for index, (mark, _, fit) in enumerate(scored) if mark <= least + LEAD)
    _, law, fit = scored[near[0][-1]]
    if fit.residual > max(IRREGULAR, 3 * noise):
        return Growth("irregular", len(sizes), residual=fit.residual)
    return Growth(
        law,
        len(sizes),
        bool(fit.values[-1] < fit.values[0]),
        fit.exponent,
        fit.fixed,
        fit.steps,
        fit.residual,
        tuple(dict.fromkeys(rival for *_, index in near if (rival := scored[index][1]) != law)),
        tuple(float(value) for value in fit.values[np.argsort(order, kind="stable")]),
    )


def score(fit: Fit, points: int, noise: float = NOISE) -> float:
    """AICc; infinite for a curve with about as many parameters as points."""
    spare = points - fit.parameters - 1
    if spare <= 0:
        return math.inf
    correction = 2 * fit.parameters * (fit.parameters + 1) / spare
    return 2 * points * math.log(max(fit.residual, noise)) + 2 * fit.parameters + correction


def _candidates(x: Array, y: Array, noise: float) -> Iterator[tuple[Law, Fit]]:
    plain: dict[Law, Iterator[Fit]] = {
        "constant": curves.constant(x, y),
        "linear": curves.linear(x, y),
        "inverse": curves.inverse(x, y),
        "logarithmic": curves.logarithmic(x, y),
        "staircase": curves.staircase(x, y),
    }
    for law, fits in plain.items():
        yield from ((law, fit) for fit in fits)
    for fit in (*curves.power(x, y, noise), *curves.shifted_power(x, y, noise)):
        yield _power(fit), fit


def _power(fit: Fit) -> Law:
    """Super-linear only where the exponent's interval says so."""
    assert fit.exponent is not None
    return "super-linear" if fit.exponent.low is not None and fit.exponent.low > 1 else "power"
