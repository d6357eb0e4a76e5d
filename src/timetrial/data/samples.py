"""What passes between a dataset's reader and its preparation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.data.errors import DataError
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

Array = NDArray[Any]

__all__ = ["Array", "DataError", "Samples", "Wanted", "counted", "objects"]


@dataclass(frozen=True)
class Wanted:
    """What a dataset is prepared for. Readers of files may ignore it; a stand-in is made to its measure."""

    network: Network
    recipe: Recipe
    seed: int
    samples: int | None = None


@dataclass(frozen=True)
class Samples:
    """As read: bytes are grey or colour values from 0 to 255; whole-number labels are classes, others are targets.

    Texts are an array of strings; sequences of different lengths are an array of arrays.
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    class_names: tuple[str, ...] = field(default=(), kw_only=True)
    guesses: Mapping[str, Array] = field(
        default_factory=dict, kw_only=True
    )  # of the test's targets, by ways that need no network
    unit: tuple[str, float] = field(default=("", 1.0), kw_only=True)  # of the targets: what one of them is
    facts: Mapping[str, Any] = field(default_factory=dict, kw_only=True)  # how they were chosen, for the provenance

    def first(self, count: int) -> Samples:
        """The first training samples, and at most as many for the test."""
        parts = {name: getattr(self, name)[:count] for name in ("x_train", "y_train", "x_test", "y_test")}
        return replace(self, **parts, guesses={name: guess[:count] for name, guess in self.guesses.items()})


def counted(asked: int | str, available: int) -> int:
    """A number of samples, or a share such as `33%`, which is rounded down but is at least one."""
    if isinstance(asked, int):
        return asked
    return max(1, int(available * Fraction(asked.removesuffix("%")) / 100))


def objects(items: Sequence[Any]) -> Array:
    """An array of texts or of arrays, also where these happen to be of one shape."""
    array = np.empty(len(items), object)
    for place, item in enumerate(items):
        array[place] = item
    return array
