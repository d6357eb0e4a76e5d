"""Multi-head self-attention over a sequence (T, C)."""

from __future__ import annotations

from timetrial.spec.initialisers import AnyInitialiser, GlorotUniform, Zeros
from timetrial.spec.layers.base import Layer, Node, Parameter, layers
from timetrial.spec.shapes import Positive, Shape, ShapeError, need_rank


@layers.register("attention")
class Attention(Layer):
    """softmax(Q K' / sqrt(C / heads)) V, heads side by side, then a dense layer of width C."""

    heads: Positive
    causal: bool = False
    bias: bool = True
    kernel_init: AnyInitialiser = GlorotUniform()

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (2,), "a sequence (T, C)")
        steps, width = shape
        if width % self.heads:
            remedy = f"use other heads, or a width that is a multiple of {self.heads}"
            raise ShapeError(f"{self.heads} heads do not divide a width of {width}; {remedy}")
        parameters: list[Parameter] = []
        for part in ("query", "key", "value", "output"):
            role, reach = f"{part}_kernel", (width, width)
            parameters.append(Parameter(f"{name}/{role}", role, reach, self.kernel_init, reach))
            if self.bias:
                role = f"{part}_bias"
                parameters.append(Parameter(f"{name}/{role}", role, (width,), Zeros(), reach))
        attrs = {"heads": self.heads, "causal": self.causal, "bias": self.bias}
        work = 4 * steps * width * width + 2 * steps * steps * width
        return Node(name, "attention", (source,), (shape,), shape, attrs, tuple(parameters), work)
