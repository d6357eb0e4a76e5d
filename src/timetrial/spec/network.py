"""A network as data: an input and a list of layers. One description; every engine builds it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from timetrial.spec.layers import AnyLayer, Graph, Node, Parameter, lower_all
from timetrial.spec.shapes import Positive, Shape

Loss = Literal["cross_entropy", "binary_cross_entropy", "mse", "mae"]

# Losses that engines compute from the logits; the network's last activation then belongs to the loss.
_HEADS = {"cross_entropy": "softmax", "binary_cross_entropy": "sigmoid"}


class Input(BaseModel):
    """Shape of one sample, channels last. `tokens: n` means integers below n instead of numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    shape: tuple[Positive, ...]
    tokens: Positive | None = None

    @property
    def dtype(self) -> str:
        return "int32" if self.tokens else "float32"


class Network(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = "network"
    input: Input
    layers: tuple[AnyLayer, ...]

    @model_validator(mode="after")
    def _fits(self) -> Network:
        self.graph  # noqa: B018  shapes are checked when the network is made
        return self

    @cached_property
    def graph(self) -> Graph:
        graph = Graph(shapes={"input": self.input.shape})
        lower_all(self.layers, graph, "input")
        return graph

    @property
    def nodes(self) -> list[Node]:
        return self.graph.nodes

    @property
    def output_shape(self) -> Shape:
        return self.nodes[-1].shape if self.nodes else self.input.shape

    @property
    def parameters(self) -> list[Parameter]:
        return [parameter for node in self.nodes for parameter in node.parameters]

    def parameter_count(self, trainable_only: bool = False) -> int:
        return sum(p.size for p in self.parameters if p.trainable or not trainable_only)

    @property
    def multiply_adds(self) -> int:
        """Of one sample, forward."""
        return sum(node.multiply_adds for node in self.nodes)

    def lowered(self, loss: Loss, dropout: bool = True) -> dict[str, Any]:
        """The flat JSON form that the worker's adapters build.

        `head` is the last activation where the loss is computed from the logits: it is then not among the nodes,
        training skips it and prediction applies it. Without `dropout` every dropout rate is zero.
        """
        nodes = list(self.nodes)
        head = "identity"
        last = nodes[-1]
        if last.op == "activation" and last.attrs["function"] == _HEADS.get(loss):
            head = last.attrs["function"]
            nodes.pop()
        return {
            "name": self.name,
            "input": {"shape": self.input.shape, "dtype": self.input.dtype, "tokens": self.input.tokens},
            "nodes": [_lowered(node, dropout) for node in nodes],
            "output": nodes[-1].name,
            "head": head,
        }


def _lowered(node: Node, dropout: bool) -> dict[str, Any]:
    attrs = node.attrs if dropout or node.op != "dropout" else {**node.attrs, "rate": 0.0}
    return {
        "name": node.name,
        "op": node.op,
        "inputs": node.inputs,
        "in_shapes": node.in_shapes,
        "shape": node.shape,
        "attrs": attrs,
        "parameters": [
            {"name": p.name, "role": p.role, "shape": p.shape, "trainable": p.trainable} for p in node.parameters
        ],
    }
