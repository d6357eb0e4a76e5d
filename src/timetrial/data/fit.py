"""Brings samples into the form that a network takes and its loss needs, or says why they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timetrial.data.samples import Array, DataError
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe
from timetrial.spec.shapes import Shape, describe, elements

if TYPE_CHECKING:
    from timetrial.data.registry import Dataset


def inputs(dataset: Dataset, network: Network, x: Array) -> Array:
    """Tokens as int32; numbers as float32, images from 0 to 1."""
    if x.dtype == object:
        raise DataError(_of_no_shape(dataset, x))
    check(dataset, network, tuple(x.shape[1:]))
    x = x.reshape(len(x), *network.input.shape)
    if network.input.tokens:
        return _tokens(dataset, network, network.input.tokens, x)
    if x.dtype == np.uint8:
        return np.divide(x, np.float32(255), dtype=np.float32)
    if np.issubdtype(x.dtype, np.integer):
        raise DataError(
            f"dataset '{dataset.name}' has tokens, but network '{network.name}' takes numbers; "
            "write `tokens:` with the size of the vocabulary in the network's input"
        )
    return np.ascontiguousarray(x, np.float32)


def check(dataset: Dataset, network: Network, shape: Shape, steps: Sequence[str] = ()) -> None:
    """Whether samples of this shape, which they have after the steps, fit the network."""
    if network.input.shape not in _forms(shape):
        raise DataError(_misfit(dataset, network, shape, steps))


def labels(dataset: Dataset, network: Network, recipe: Recipe, y: Array) -> Array:
    """Classes as int32, or one-hot where the recipe or the loss wants numbers; targets as float32."""
    if not np.issubdtype(y.dtype, np.integer):
        return _targets(dataset, network, recipe, y)
    classes, output = dataset.classes or network.output_shape[-1], network.output_shape
    if recipe.loss == "binary_cross_entropy" and (classes, output) == (2, (1,)):
        return np.ascontiguousarray(y.reshape(-1, 1), np.float32)
    if output != (*y.shape[1:], classes):
        raise DataError(
            f"dataset '{dataset.name}' has {classes} classes, so its network ends with an output of "
            f"{describe((*y.shape[1:], classes))}, but the output of network '{network.name}' is {describe(output)}; "
            f"end the network with {classes} units, or use the dataset 'synthetic', which fits any network"
        )
    if recipe.loss == "cross_entropy" and recipe.labels == "integer":
        return np.ascontiguousarray(y, np.int32)
    return np.eye(classes, dtype=np.float32)[y]


def _forms(stored: Shape) -> list[Shape]:
    """Shapes under which the same numbers, in the same order, mean the same."""
    forms: list[Shape] = [stored, (*stored, 1)]
    if len(stored) > 1 and stored[-1] == 1:
        forms.append(stored[:-1])
    return list(dict.fromkeys([*forms, (elements(stored),)]))


def _of_no_shape(dataset: Dataset, x: Array) -> str:
    what = "texts" if len(x) and isinstance(x[0], str) else "sequences"
    return (
        f"the samples of dataset '{dataset.name}' are {what} of different lengths, which no network takes as they are; "
        f"name steps that make them alike, or use 'synthetic:{dataset.name}'"
    )


def _misfit(dataset: Dataset, network: Network, stored: Shape, steps: Sequence[str]) -> str:
    forms = [describe(form) for form in _forms(stored)]
    after = f" after {', '.join(steps)}" if steps else ""
    return (
        f"the samples of dataset '{dataset.name}' are {describe(stored)}{after}, but network '{network.name}' takes "
        f"{describe(network.input.shape)}; give the network an input of {' or '.join(forms)}, "
        "or use the dataset 'synthetic', which fits any network"
    )


def _tokens(dataset: Dataset, network: Network, vocabulary: int, x: Array) -> Array:
    if not np.issubdtype(x.dtype, np.integer) or x.dtype == np.uint8:
        raise DataError(
            f"dataset '{dataset.name}' has numbers, but network '{network.name}' takes tokens; "
            "remove `tokens:` from the network's input, or use the dataset 'synthetic'"
        )
    if x.size and (x.min() < 0 or x.max() >= vocabulary):
        raise DataError(
            f"dataset '{dataset.name}' has tokens from {x.min()} to {x.max()}, but network '{network.name}' takes "
            f"tokens below {vocabulary}; write `tokens: {x.max() + 1}` in the network's input"
        )
    return np.ascontiguousarray(x, np.int32)


def _targets(dataset: Dataset, network: Network, recipe: Recipe, y: Array) -> Array:
    if recipe.loss == "cross_entropy":
        raise DataError(
            f"dataset '{dataset.name}' has numbers as targets, but the loss cross_entropy needs classes; "
            "use the loss mse or mae"
        )
    if tuple(y.shape[1:]) != network.output_shape:
        raise DataError(
            f"the targets of dataset '{dataset.name}' are {describe(tuple(y.shape[1:]))}, but the output of network "
            f"'{network.name}' is {describe(network.output_shape)}; end the network with {y.shape[-1]} units"
        )
    return np.ascontiguousarray(y, np.float32)
