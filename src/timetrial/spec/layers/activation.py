"""Activations. Each is element by element, but softmax, which is over the last axis."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainSerializer, model_validator

from timetrial.spec.layers.base import Layer, Node, layers
from timetrial.spec.shapes import Shape

Function = Literal[
    "relu", "leaky_relu", "tanh", "scaled_tanh", "sigmoid", "hard_sigmoid", "softmax", "identity", "gelu"
]
FUNCTIONS: tuple[str, ...] = Function.__args__  # type: ignore[attr-defined]


@layers.register("activation")
class Activation(Layer):
    """`scaled_tanh` is 1.7159 tanh(2x/3); `hard_sigmoid` is clip(0.2x + 0.5, 0, 1); `gelu` is the exact one."""

    function: Function = "relu"
    slope: float | None = None  # of leaky_relu for negative values, 0.01 unless given

    @model_validator(mode="after")
    def _slope_only_where_it_counts(self) -> Activation:
        if self.function != "leaky_relu" and self.slope is not None:
            raise ValueError(f"'{self.function}' has no slope; only leaky_relu has")
        return self

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        attrs: dict[str, Any] = {"function": self.function}
        if self.function == "leaky_relu":
            attrs["slope"] = 0.01 if self.slope is None else self.slope
        return Node(name, "activation", (source,), (shape,), shape, attrs)


for _function in FUNCTIONS:
    layers.shorthand(_function, kind="activation", function=_function)


def _parse(value: Any) -> Any:
    if value is None or isinstance(value, Activation):
        return value
    parsed = layers.parse(value)
    if not isinstance(parsed, Activation):
        raise ValueError(f"'{value}' is a layer, not an activation; known: {', '.join(FUNCTIONS)}")
    return parsed


def _dump(value: Activation | None) -> Any:
    if value is None or value.slope is None:
        return value and value.function
    return {"leaky_relu": {"slope": value.slope}}


AnyActivation = Annotated[Activation | None, BeforeValidator(_parse), PlainSerializer(_dump)]
