"""Proof batches: seeded normal inputs (or tokens) and random labels. No two values tie, nothing is zero by chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

Array = np.ndarray[Any, Any]


def proof_batches(network: Network, recipe: Recipe, count: int, seed: int) -> dict[str, Array]:
    """x0, y0, x1, y1, … of the recipe's batch size."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for i in range(count):
        arrays[f"x{i}"], arrays[f"y{i}"] = _inputs(network, recipe.batch, rng), _labels(network, recipe, rng)
    return arrays


def _inputs(network: Network, batch: int, rng: np.random.Generator) -> Array:
    shape = (batch, *network.input.shape)
    if network.input.tokens:
        return rng.integers(0, network.input.tokens, shape).astype(np.int32)
    return rng.standard_normal(shape).astype(np.float32)


def _labels(network: Network, recipe: Recipe, rng: np.random.Generator) -> Array:
    shape = (recipe.batch, *network.output_shape)
    if recipe.loss in ("mse", "mae"):
        return rng.standard_normal(shape).astype(np.float32)
    if recipe.loss == "binary_cross_entropy":
        return rng.integers(0, 2, shape).astype(np.float32)
    classes = rng.integers(0, shape[-1], shape[:-1]).astype(np.int32)
    return np.eye(shape[-1], dtype=np.float32)[classes] if recipe.labels == "one_hot" else classes
