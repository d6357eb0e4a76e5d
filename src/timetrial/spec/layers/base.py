"""What every layer knows: its output shape, its parameters, its operations, and how it is lowered.

A layer of the language is a small frozen model. `lower` writes it as nodes, the flat form that adapters build:
one operation each, shapes and paddings resolved, nothing left to infer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator

from timetrial.spec.initialisers import Initialiser
from timetrial.spec.registry import Registry
from timetrial.spec.shapes import Shape, ShapeError, elements


@dataclass(frozen=True)
class Parameter:
    """`name` is the node's name and the role: `conv2d_1/kernel`. `reach` is (fan in, fan out)."""

    name: str
    role: str
    shape: Shape
    initialiser: Initialiser
    reach: tuple[int, int]
    trainable: bool = True

    @property
    def size(self) -> int:
        return elements(self.shape)


@dataclass(frozen=True)
class Node:
    """One operation on tensors that are already there. `attrs` holds plain JSON values only."""

    name: str
    op: str
    inputs: tuple[str, ...]
    in_shapes: tuple[Shape, ...]
    shape: Shape
    attrs: dict[str, Any] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    multiply_adds: int = 0


@dataclass
class Graph:
    """Nodes in the order in which they can be computed, and the names given so far."""

    nodes: list[Node] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def name(self, kind: str, given: str | None, prefix: str) -> str:
        count = self._counts[prefix, kind] = self._counts.get((prefix, kind), 0) + 1
        return prefix + (given or f"{kind}_{count}")

    def add(self, node: Node) -> str:
        if node.name in self.shapes:
            raise ShapeError("this name is used twice; names must differ", node.name)
        self.nodes.append(node)
        self.shapes[node.name] = node.shape
        return node.name


class Layer(BaseModel):
    """Base of all layers. A simple layer defines `operation`; a composite one overrides `lower`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str]
    name: str | None = None

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        """The one node of a simple layer: `source` is the node it reads, `shape` that node's shape."""
        raise NotImplementedError(self.kind)

    def lower(self, graph: Graph, source: str, prefix: str = "") -> str:
        """Add the layer's nodes to the graph and return the name of the last."""
        name = graph.name(self.kind, self.name, prefix)
        try:
            node = self.operation(name, source, graph.shapes[source])
        except ShapeError as error:
            raise error if error.layer else ShapeError(error.reason, name) from None
        return self.activate(graph, graph.add(node))

    def activate(self, graph: Graph, source: str) -> str:
        """Layers with an `activation` field apply it as a node of its own, named after the layer."""
        activation = getattr(self, "activation", None)
        if activation is None or activation.function == "identity":
            return source
        return graph.add(activation.operation(f"{source}.{activation.function}", source, graph.shapes[source]))

    def output_shape(self, shape: Shape) -> Shape:
        return self._alone(shape).nodes[-1].shape

    def parameters(self, shape: Shape) -> tuple[Parameter, ...]:
        return tuple(p for node in self._alone(shape).nodes for p in node.parameters)

    def multiply_adds(self, shape: Shape) -> int:
        """Multiply-adds of one sample, forward; taps that fall on padding count."""
        return sum(node.multiply_adds for node in self._alone(shape).nodes)

    def _alone(self, shape: Shape) -> Graph:
        graph = Graph(shapes={"input": shape})
        self.lower(graph, "input")
        return graph


layers: Registry[Layer] = Registry("layer", Layer)
AnyLayer = Annotated[Layer, PlainValidator(layers.parse), PlainSerializer(layers.dump)]


def lower_all(items: tuple[Layer, ...], graph: Graph, source: str, prefix: str = "") -> str:
    for item in items:
        source = item.lower(graph, source, prefix)
    return source
