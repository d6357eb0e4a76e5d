"""Dense layers, embeddings and learned positions."""

from __future__ import annotations

from timetrial.spec.initialisers import AnyInitialiser, GlorotUniform, Normal, Uniform, Zeros
from timetrial.spec.layers.activation import AnyActivation
from timetrial.spec.layers.base import Layer, Node, Parameter, layers
from timetrial.spec.shapes import Positive, Shape, elements, need_rank


@layers.register("dense")
class Dense(Layer):
    """y = x W + b over the last axis; every other axis is kept."""

    units: Positive
    activation: AnyActivation = None
    bias: bool = True
    kernel_init: AnyInitialiser = GlorotUniform()
    bias_init: AnyInitialiser = Zeros()

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (1, 2), "a flat input (N) or a sequence (T, N): put a flatten before it")
        width, reach = shape[-1], (shape[-1], self.units)
        parameters = [Parameter(f"{name}/kernel", "kernel", (width, self.units), self.kernel_init, reach)]
        if self.bias:
            parameters.append(Parameter(f"{name}/bias", "bias", (self.units,), self.bias_init, reach))
        return Node(
            name,
            "dense",
            (source,),
            (shape,),
            (*shape[:-1], self.units),
            {"units": self.units, "bias": self.bias},
            tuple(parameters),
            elements(shape) * self.units,
        )


@layers.register("embedding")
class Embedding(Layer):
    """Rows of a table, looked up by integer tokens: (T) becomes (T, units)."""

    vocabulary: Positive
    units: Positive
    init: AnyInitialiser = Uniform(low=-0.05, high=0.05)

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (1,), "a sequence of tokens (T)")
        table = Parameter(
            f"{name}/table", "table", (self.vocabulary, self.units), self.init, (self.vocabulary, self.units)
        )
        attrs = {"vocabulary": self.vocabulary, "units": self.units}
        return Node(name, "embedding", (source,), (shape,), (*shape, self.units), attrs, (table,))


@layers.register("positions")
class Positions(Layer):
    """Adds a learned vector for each place of the sequence: (T, C) stays (T, C)."""

    init: AnyInitialiser = Normal(std=0.02)

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (2,), "a sequence (T, C)")
        table = Parameter(f"{name}/table", "table", shape, self.init, (shape[0], shape[1]))
        return Node(name, "positions", (source,), (shape,), shape, {}, (table,))
