"""What a step of preprocessing is: a frozen class with a name and parameters, written `resize?height=48&width=48`.

Adding a step is adding a class with `@step("name")`; its fields are made by `option`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from timetrial.data.samples import Array, DataError, Samples
from timetrial.spec.network import Network
from timetrial.spec.shapes import Shape, describe
from timetrial.zoo.entry import Option, Value

Random = np.random.Generator
Apply = Callable[[Array], Array]
C = TypeVar("C", bound="type[Step]")

STEPS: dict[str, type[Step]] = {}
ROWS = 1024  # samples worked on at once, so that the memory needed does not grow with the dataset


class StepError(DataError):
    """A step is not there, is written wrongly, or cannot take the samples it is given."""


def option(
    kind: type[int] | type[float] | type[str] | type[bool],
    meaning: str,
    default: Value = None,
    least: float | None = None,
    choices: tuple[Value, ...] = (),
) -> Any:
    """A field of a step. Without a default it must be written, or be taken from the network (see `completed`)."""
    return field(default=default, metadata={"type": kind, "meaning": meaning, "least": least, "choices": choices})


@dataclass_transform(frozen_default=True, field_specifiers=(option,))
def step(name: str) -> Callable[[C], C]:
    def add(cls: C) -> C:
        cls.name = name
        STEPS[name] = dataclass(frozen=True)(cls)
        return cls

    return add


@dataclass(frozen=True)
class Step:
    """Fitted on the training samples only, then applied to those and to the test's."""

    name: ClassVar[str]
    first: ClassVar[bool] = False  # changes which samples there are, so it stands before all that look at them
    random: ClassVar[bool] = False  # draws from the trial's seed
    missing: ClassVar[bool] = False  # takes NaN
    loose: ClassVar[bool] = False  # takes texts, streams, or sequences of different lengths

    def shape(self, before: Shape) -> Shape:
        """Of one sample after the step; refuses what it cannot take."""
        return before

    def applied(self, x: Array) -> Array:
        """For steps that have nothing to fit."""
        raise TypeError(f"step '{self.name}' has to say how it is fitted or applied")

    def fitted(self, train: Array) -> Apply:
        return self.applied

    def run(self, samples: Samples, random: Random) -> Samples:
        apply = self.fitted(samples.x_train)
        return replace(samples, x_train=apply(samples.x_train), x_test=apply(samples.x_test))

    def completed(self, network: Network) -> Step:
        """With what was not written taken from the network that reads the samples."""
        return self

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        found = (dict(one.metadata) | {"name": one.name, "default": one.default} for one in fields(cls))
        return tuple(Option(**keys) for keys in found)

    def refuse(self, reason: str) -> StepError:
        return StepError(f"step '{self.name}' {reason}")

    def need_rank(self, shape: Shape, ranks: tuple[int, ...], wants: str) -> None:
        if len(shape) not in ranks:
            raise self.refuse(f"needs {wants}, but is given {describe(shape) or 'one value'}")

    def __str__(self) -> str:
        """Every parameter, also those at their defaults: that is what the samples depend on."""
        written = [f"{o.name}={_text(getattr(self, o.name))}" for o in self.options()]
        return f"{self.name}?{'&'.join(written)}" if written else self.name


class Augmentation(Step):
    """Changes each training sample by chance, once; the test's samples are all treated alike."""

    random: ClassVar[bool] = True

    def drawn(self, x: Array, random: Random) -> Array:
        raise TypeError(f"step '{self.name}' has to say what it draws")

    def still(self, x: Array) -> Array:
        return x

    def run(self, samples: Samples, random: Random) -> Samples:
        return replace(samples, x_train=self.drawn(samples.x_train, random), x_test=self.still(samples.x_test))


def parts(x: Array, rows: int = ROWS) -> Iterator[slice]:
    for start in range(0, len(x), rows):
        yield slice(start, min(start + rows, len(x)))


def by_parts(x: Array, shape: Shape, one: Apply, rows: int = ROWS) -> Array:
    """`one` on some rows after the other, into a float32 array of samples of `shape`."""
    out = np.empty((len(x), *shape), np.float32)
    for some in parts(x, rows):
        out[some] = one(x[some])
    return out


def as_image(shape: Shape) -> Shape:
    """(H, W) is an image of one channel."""
    return (*shape, 1) if len(shape) == 2 else shape


def _text(value: Value) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else f"{value}"
