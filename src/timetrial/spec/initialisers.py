"""How the starting numbers of a parameter are drawn. Written `he_normal` or `{normal: {std: 0.05}}`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator

from timetrial.spec.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]


class Initialiser(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str]

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        raise NotImplementedError(self.kind)


initialisers: Registry[Initialiser] = Registry("initialiser", Initialiser)
AnyInitialiser = Annotated[Initialiser, PlainValidator(initialisers.parse), PlainSerializer(initialisers.dump)]


@initialisers.register("zeros")
class Zeros(Initialiser):
    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        import numpy as np

        return np.zeros(shape)


@initialisers.register("constant")
class Constant(Initialiser):
    value: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        import numpy as np

        return np.full(shape, self.value)


@initialisers.register("uniform")
class Uniform(Initialiser):
    low: float = -0.05
    high: float = 0.05

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        return rng.uniform(self.low, self.high, shape)


@initialisers.register("normal")
class Normal(Initialiser):
    """`truncated` draws again whatever lies beyond two standard deviations, as TensorFlow does."""

    std: float = 0.05
    mean: float = 0.0
    truncated: bool = False

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        import numpy as np

        values = rng.standard_normal(shape)
        while self.truncated and (outside := np.abs(values) > 2).any():
            values[outside] = rng.standard_normal(int(outside.sum()))
        return self.mean + self.std * values


class _Scaled(Initialiser):
    """Variance `gain / n`, where n is a mean or choice of the two fans."""

    def variance(self, fan_in: int, fan_out: int) -> float:
        raise NotImplementedError(self.kind)


class _ScaledNormal(_Scaled):
    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        return rng.standard_normal(shape) * math.sqrt(self.variance(fan_in, fan_out))


class _ScaledUniform(_Scaled):
    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        limit = math.sqrt(3 * self.variance(fan_in, fan_out))
        return rng.uniform(-limit, limit, shape)


@initialisers.register("glorot_uniform")
class GlorotUniform(_ScaledUniform):
    def variance(self, fan_in: int, fan_out: int) -> float:
        return 2 / (fan_in + fan_out)


@initialisers.register("glorot_normal")
class GlorotNormal(_ScaledNormal):
    def variance(self, fan_in: int, fan_out: int) -> float:
        return 2 / (fan_in + fan_out)


@initialisers.register("he_normal")
class HeNormal(_ScaledNormal):
    def variance(self, fan_in: int, fan_out: int) -> float:
        return 2 / fan_in


@initialisers.register("he_uniform")
class HeUniform(_ScaledUniform):
    def variance(self, fan_in: int, fan_out: int) -> float:
        return 2 / fan_in


@initialisers.register("orthogonal")
class Orthogonal(Initialiser):
    """Rows or columns orthonormal, drawn uniformly (QR of a normal matrix, signs fixed)."""

    gain: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
        import numpy as np

        columns = shape[-1]
        rows = math.prod(shape[:-1])
        q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
        q = q * np.sign(np.diag(r))
        matrix = q if rows >= columns else q.T
        return self.gain * matrix.reshape(shape)
