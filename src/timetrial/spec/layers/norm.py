"""Normalisation: over the batch, over the channels of a sample, over neighbouring channels."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Gt, Interval

from timetrial.spec.initialisers import AnyInitialiser, Constant, Zeros
from timetrial.spec.layers.base import Layer, Node, Parameter, layers
from timetrial.spec.shapes import Natural, Shape, need_rank

Fraction = Annotated[float, Interval(ge=0, lt=1)]


@layers.register("batch_norm")
class BatchNorm(Layer):
    """Over all axes but the channels. Moving value = momentum x old + (1 - momentum) x batch."""

    momentum: Fraction = 0.99
    epsilon: Annotated[float, Gt(0)] = 1e-3
    gamma_init: AnyInitialiser = Constant(value=1.0)

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        def parameter(role: str, init: AnyInitialiser, trainable: bool) -> Parameter:
            return Parameter(f"{name}/{role}", role, shape[-1:], init, (shape[-1], shape[-1]), trainable)

        parameters = (
            parameter("gamma", self.gamma_init, True),
            parameter("beta", Zeros(), True),
            parameter("mean", Zeros(), False),
            parameter("variance", Constant(value=1.0), False),
        )
        attrs = {"momentum": self.momentum, "epsilon": self.epsilon}
        return Node(name, "batch_norm", (source,), (shape,), shape, attrs, parameters)


@layers.register("layer_norm")
class LayerNorm(Layer):
    """Over the last axis of each sample and place."""

    epsilon: Annotated[float, Gt(0)] = 1e-5

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        reach = (shape[-1], shape[-1])
        parameters = (
            Parameter(f"{name}/gamma", "gamma", shape[-1:], Constant(value=1.0), reach),
            Parameter(f"{name}/beta", "beta", shape[-1:], Zeros(), reach),
        )
        return Node(name, "layer_norm", (source,), (shape,), shape, {"epsilon": self.epsilon}, parameters)


@layers.register("lrn")
class LocalResponseNorm(Layer):
    """x / (bias + alpha * sum of squares over 2 radius + 1 channels) ** beta; alpha is not divided by the width."""

    radius: Natural = 4
    bias: Annotated[float, Gt(0)] = 1.0
    alpha: float = 0.001 / 9
    beta: float = 0.75

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (3,), "an image (H, W, C)")
        attrs = {"radius": self.radius, "bias": self.bias, "alpha": self.alpha, "beta": self.beta}
        return Node(name, "lrn", (source,), (shape,), shape, attrs)
