"""What passes between a dataset's reader and its preparation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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

    def first(self, count: int) -> Samples:
        """The first training samples, and at most as many for the test."""
        train, test = (self.x_train[:count], self.y_train[:count]), (self.x_test[:count], self.y_test[:count])
        return Samples(*train, *test, class_names=self.class_names)


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
