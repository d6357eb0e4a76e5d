"""Layers that only move or drop numbers."""

from __future__ import annotations

from timetrial.spec.layers.base import Layer, Node, layers
from timetrial.spec.layers.norm import Fraction
from timetrial.spec.shapes import Shape, elements


@layers.register("flatten")
class Flatten(Layer):
    """In the order rows, columns, channels, whatever layout an engine keeps inside."""

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        return Node(name, "flatten", (source,), (shape,), (elements(shape),))


@layers.register("dropout")
class Dropout(Layer):
    """In training each value is zero with probability `rate`, the others are divided by 1 - rate."""

    rate: Fraction = 0.5

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        return Node(name, "dropout", (source,), (shape,), shape, {"rate": self.rate})
