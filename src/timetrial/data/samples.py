"""What passes between a dataset's reader and its preparation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

Array = NDArray[Any]


class DataError(ValueError):
    """A dataset cannot be used as asked: it does not fit the network, is too small, or is damaged."""


@dataclass(frozen=True)
class Wanted:
    """What a dataset is prepared for. Readers of files may ignore it; a stand-in is made to its measure."""

    network: Network
    recipe: Recipe
    seed: int
    samples: int | None = None


@dataclass(frozen=True)
class Samples:
    """As read: bytes are grey or colour values from 0 to 255; whole-number labels are classes, others are targets."""

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    guesses: Mapping[str, Array] = field(default_factory=dict)  # of the test's targets, by ways that need no network
    unit: tuple[str, float] = ("", 1.0)  # of the targets: what one of them is
    facts: Mapping[str, Any] = field(default_factory=dict)  # how they were chosen, for the provenance

    def first(self, count: int) -> Samples:
        """The first training samples, and at most as many for the test."""
        parts = {name: getattr(self, name)[:count] for name in ("x_train", "y_train", "x_test", "y_test")}
        return replace(self, **parts, guesses={name: guess[:count] for name, guess in self.guesses.items()})
