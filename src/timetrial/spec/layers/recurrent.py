"""Recurrent layers over (T, C). `layers: n` stacks them; `steps: last` hands on the last state only."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from timetrial.spec.initialisers import AnyInitialiser, GlorotUniform, Orthogonal, Zeros
from timetrial.spec.layers.activation import Function
from timetrial.spec.layers.base import Graph, Layer, Node, Parameter, layers
from timetrial.spec.shapes import Positive, Shape, ShapeError, need_rank


class _Recurrent(Layer):
    gates: ClassVar[int]
    bias_rows: ClassVar[int] = 1  # the GRU has a bias for its input and one for its state

    units: Positive
    layers: Positive = 1
    steps: Literal["last", "all"] = "last"
    activation: Function = "tanh"
    bias: bool = True
    kernel_init: AnyInitialiser = GlorotUniform()
    recurrent_init: AnyInitialiser = Orthogonal()
    bias_init: AnyInitialiser = Zeros()

    def lower(self, graph: Graph, source: str, prefix: str = "") -> str:
        name = graph.name(self.kind, self.name, prefix)
        for level in range(self.layers):
            last = level == self.layers - 1
            place = name if self.layers == 1 else f"{name}.{level + 1}"
            try:
                node = self._cell(place, source, graph.shapes[source], self.steps == "all" or not last)
            except ShapeError as error:
                raise ShapeError(error.reason, name) from None
            source = graph.add(node)
        return source

    def _cell(self, name: str, source: str, shape: Shape, all_steps: bool) -> Node:
        need_rank(shape, (2,), "a sequence (T, C)")
        width = self.gates * self.units
        parameters = [
            self._parameter(name, "kernel", (shape[1], width), self.kernel_init),
            self._parameter(name, "recurrent", (self.units, width), self.recurrent_init),
        ]
        if self.bias:
            rows = (width,) if self.bias_rows == 1 else (self.bias_rows, width)
            parameters.append(self._parameter(name, "bias", rows, self.bias_init))
        attrs = {"units": self.units, "all_steps": all_steps, "bias": self.bias, **self._functions()}
        out = (shape[0], self.units) if all_steps else (self.units,)
        work = shape[0] * (shape[1] + self.units) * width
        return Node(name, self.kind, (source,), (shape,), out, attrs, tuple(parameters), work)

    def _parameter(self, name: str, role: str, shape: Shape, init: AnyInitialiser) -> Parameter:
        return Parameter(f"{name}/{role}", role, shape, init, (shape[0], shape[-1]))

    def _functions(self) -> dict[str, Any]:
        return {"activation": self.activation}


@layers.register("rnn")
class SimpleRnn(_Recurrent):
    """h = f(x W + h U + b)"""

    gates: ClassVar[int] = 1


class _Gated(_Recurrent):
    recurrent_activation: Function = "sigmoid"

    def _functions(self) -> dict[str, Any]:
        return {"activation": self.activation, "recurrent_activation": self.recurrent_activation}


@layers.register("lstm")
class Lstm(_Gated):
    """Gates in the order input, forget, candidate, output; one bias."""

    gates: ClassVar[int] = 4


@layers.register("gru")
class Gru(_Gated):
    """Gates in the order update z, reset r, candidate; h = z h + (1 - z) f(x W + b0 + r (h U + b1))."""

    gates: ClassVar[int] = 3
    bias_rows: ClassVar[int] = 2
