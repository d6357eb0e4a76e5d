"""Do two engines compute the same function? Pure comparison of what `timetrial_worker.proof.collect` gathered.

Errors are relative to the size of the reference array (Euclidean norm), so that a few entries near zero decide nothing,
and the worst single entry is held to ten times the tolerance, so that one wrong entry among a million is seen.
Weights are compared by their *change* over the steps: a forgotten momentum hides in the weights, not in the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Tolerance:
    forward: float = 1e-4
    gradient: float = 1e-3
    steps: float = 1e-3
    rounding: float = float(np.finfo(np.float32).eps)  # of what weights are kept in
    noise: float = 1e-4  # of the largest gradient or change: what lies below is rounding of the larger ones


# Weights are kept in float32 where an engine computes in bfloat16. What bfloat16's eight bits leave of a gradient after
# sums that cancel is an array's own matter, so its arrays are held loosely, but each against its own size: see
# docs/decisions/0002.
TOLERANCES = {
    "float64": Tolerance(1e-9, 1e-8, 1e-7, float(np.finfo(np.float64).eps)),
    "float32": Tolerance(),
    "bfloat16": Tolerance(2e-2, 0.3, 0.3, noise=3e-2),
}


@dataclass(frozen=True)
class Check:
    """One compared array: what it is (`activation`, `output`, `gradient`, `step`, `loss`), of what, how far off."""

    stage: str
    name: str
    error: float
    tolerance: float
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.error <= self.tolerance  # NaN is not


@dataclass(frozen=True)
class Proof:
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def first_failure(self) -> Check | None:
        return next((check for check in self.checks if not check.passed), None)

    def worst(self, stage: str) -> float:
        errors = [check.error for check in self.checks if check.stage == stage]
        return max(errors, default=float("nan"))


def compare(found: Arrays, reference: Arrays, start: Arrays, tolerance: Tolerance, adaptive: bool = False) -> Proof:
    """`start` holds the weights before the steps. `adaptive`: the optimiser divides by the size of the gradient."""
    return Proof(tuple(_checks(found, reference, start, tolerance, adaptive)))


def _checks(found: Arrays, reference: Arrays, start: Arrays, tolerance: Tolerance, adaptive: bool) -> Iterator[Check]:
    for key in _keys(reference, "activation/"):
        yield _check("activation", key, found, reference, tolerance.forward)
    yield _check("output", "output", found, reference, tolerance.forward)
    yield _check("loss", "loss", found, reference, tolerance.forward)
    gradients = {key: reference[key] for key in _keys(reference, "gradient/")}
    largest = max((_largest(values) for values in gradients.values()), default=0.0)
    # A gradient that is truly zero comes out as rounding noise of the larger ones around it.
    floor = max(tolerance.noise, 16 * tolerance.rounding / tolerance.gradient) * largest
    for key in gradients:
        yield _check("gradient", key, found, reference, tolerance.gradient, floor)
    noise = Noise(tolerance.noise * _largest_change(reference, start), tolerance.noise * largest if adaptive else 0.0)
    for key in _keys(reference, "after/"):
        yield _step(key, found, reference, start, tolerance, noise)
    # Last, because what is behind a wrong loss is a wrong update, and that names the layer.
    yield _check("loss", "losses", found, reference, tolerance.steps)


def _keys(arrays: Arrays, prefix: str) -> list[str]:
    return [key for key in arrays if key.startswith(prefix)]


def _largest(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _check(stage: str, key: str, found: Arrays, reference: Arrays, tolerance: float, floor: float = 0.0) -> Check:
    name = key.partition("/")[2] or key
    if problem := _mismatch(key, found, reference):
        return Check(stage, name, float("inf"), tolerance, problem)
    return Check(stage, name, _distance(found[key], reference[key], floor), tolerance)


def _mismatch(key: str, found: Arrays, reference: Arrays) -> str:
    if key not in found:
        return "missing"
    ours, theirs = found[key].shape, reference[key].shape
    return "" if ours == theirs else f"shape {ours} instead of {theirs}"


def _distance(values: Array, reference: Array, floor: float) -> float:
    """The larger of the relative error of the whole and a tenth of that of the worst entry."""
    values, reference = np.asarray(values, np.float64), np.asarray(reference, np.float64)
    if reference.size == 0:
        return 0.0
    difference = values - reference
    if not np.isfinite(difference).all():
        return float("inf")
    norm = max(float(np.linalg.norm(reference)), floor * reference.size**0.5)
    peak = max(_largest(reference), floor)
    if norm == 0.0:
        return 0.0 if not difference.any() else float("inf")
    return float(max(np.linalg.norm(difference) / norm, _largest(difference) / peak / 10))


@dataclass(frozen=True)
class Noise:
    """Below these sizes a change of a weight, or a gradient under an adaptive optimiser, is rounding noise.

    A bias before a batch norm has no gradient at all: what an engine shows there is noise and proves nothing.
    """

    change: float
    gradient: float


def _largest_change(reference: Arrays, start: Arrays) -> float:
    trained = [key.partition("/")[2] for key in _keys(reference, "gradient/")]
    return max((_largest(reference["after/" + name] - start[name]) for name in trained), default=0.0)


def _step(key: str, found: Arrays, reference: Arrays, start: Arrays, tolerance: Tolerance, noise: Noise) -> Check:
    name = key.partition("/")[2]
    if problem := _mismatch(key, found, reference):
        return Check("step", name, float("inf"), tolerance.steps, problem)
    before = np.asarray(start[name], np.float64)
    ours, theirs = found[key] - before, reference[key] - before
    note = ""
    gradient = reference.get("gradient/" + name)
    if noise.gradient and gradient is not None:
        # Adam and RMSprop turn even rounding noise into full steps, so entries without a real gradient prove nothing.
        real = np.abs(gradient) > noise.gradient
        if not real.all():
            note = f"{int((~real).sum())} of {real.size} entries left out: no gradient above the noise"
        ours, theirs = ours[real], theirs[real]
    # Storing a weight rounds it at each of the steps; the smaller the change, the more that weighs.
    rounding = 8 * tolerance.rounding * _root_mean_square(before)
    size = _root_mean_square(theirs)
    allowed = tolerance.steps + (rounding / size if size else 0.0)
    return Check("step", name, _distance(ours, theirs, floor=max(rounding, noise.change)), allowed, note)


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
