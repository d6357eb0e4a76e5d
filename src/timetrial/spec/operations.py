"""Floating-point operations of a step, from the network alone: no engine is asked.

Counted are matrix products and convolutions, a multiply-add as two operations; taps that fall on padding count. What
works element by element (biases, activations, normalisation, pooling, the optimiser) is not counted. A training step is
the forward pass, the gradient by each weight, and the gradient by what each layer reads, where something before it is
trained: the first layer has no such gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from timetrial.spec.layers import Node
from timetrial.spec.network import Network

# Where a factor of a product comes from: another node, the node's own parameters, another product of the same node,
# or nowhere (a constant, which has no gradient).
Factor = Literal["outside", "weight", "inside", "constant"]
MULTIPLY_ADD = 2  # operations


@dataclass(frozen=True)
class Product:
    """One matrix product or convolution of one sample. The gradient by a factor takes as many multiply-adds again."""

    multiply_adds: int
    factors: tuple[Factor, Factor]


@dataclass(frozen=True)
class LayerOperations:
    """Operations of one layer in one step. The two gradients are what training adds to the forward pass."""

    layer: str
    op: str
    forward: int
    input_gradient: int
    weight_gradient: int

    @property
    def train(self) -> int:
        return self.forward + self.input_gradient + self.weight_gradient


@dataclass(frozen=True)
class Operations:
    """Of a step over one batch; layers without a matrix product are left out."""

    batch: int
    layers: tuple[LayerOperations, ...]

    @property
    def infer(self) -> int:
        return sum(layer.forward for layer in self.layers)

    @property
    def train(self) -> int:
        return sum(layer.train for layer in self.layers)


def operations(network: Network, batch: int = 1) -> Operations:
    """What one step over `batch` samples takes, layer by layer in computing order."""
    reached = _reached_by_training(network)
    counted = (_of(node, batch, any(name in reached for name in node.inputs)) for node in network.nodes)
    return Operations(batch, tuple(layer for layer in counted if layer.forward))


def products(node: Node) -> tuple[Product, ...]:
    """The matrix products that a node's multiply-adds are made of."""
    if node.op in _INNER:
        return _INNER[node.op](node)
    trained = any(parameter.trainable for parameter in node.parameters)
    return (Product(node.multiply_adds, ("outside", "weight" if trained else "constant")),)


def _reached_by_training(network: Network) -> set[str]:
    """Nodes whose output depends on a trained parameter: only there does a gradient have to come back to."""
    reached: set[str] = set()
    for node in network.nodes:
        trained = any(parameter.trainable for parameter in node.parameters)
        if trained or any(name in reached for name in node.inputs):
            reached.add(node.name)
    return reached


def _of(node: Node, batch: int, reached: bool) -> LayerOperations:
    work = products(node)
    forward = sum(product.multiply_adds for product in work)
    by_weight = sum(product.multiply_adds * product.factors.count("weight") for product in work)
    by_input = sum(
        product.multiply_adds * (product.factors.count("inside") + reached * product.factors.count("outside"))
        for product in work
    )
    size = MULTIPLY_ADD * batch
    return LayerOperations(node.name, node.op, size * forward, size * by_input, size * by_weight)


def _attention(node: Node) -> tuple[Product, ...]:
    """Masked scores count: engines compute the whole square."""
    steps, width = node.in_shapes[0]
    projection, square = steps * width * width, steps * steps * width
    return (
        Product(3 * projection, ("outside", "weight")),  # query, key, value
        Product(square, ("inside", "inside")),  # query times key
        Product(square, ("inside", "inside")),  # scores times value
        Product(projection, ("inside", "weight")),
    )


def _recurrent(node: Node) -> tuple[Product, ...]:
    """The state before the first step is zero, and nothing asks for a gradient by it."""
    steps, read = node.in_shapes[0]
    units = node.attrs["units"]
    columns = next(parameter for parameter in node.parameters if parameter.role == "kernel").shape[-1]
    return (
        Product(steps * read * columns, ("outside", "weight")),
        Product(units * columns, ("constant", "weight")),
        Product((steps - 1) * units * columns, ("inside", "weight")),
    )


_INNER: Mapping[str, Callable[[Node], tuple[Product, ...]]] = MappingProxyType(
    {"attention": _attention, "rnn": _recurrent, "lstm": _recurrent, "gru": _recurrent}
)
