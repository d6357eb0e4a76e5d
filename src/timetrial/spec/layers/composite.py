"""Layers made of layers: a residual block, and branches side by side."""

from __future__ import annotations

from typing import Literal

from timetrial.spec.layers.activation import AnyActivation
from timetrial.spec.layers.base import AnyLayer, Graph, Layer, Node, layers, lower_all
from timetrial.spec.shapes import Shape, ShapeError, describe

_REMEDY = {
    "add": "give them one shape, with padding: same and the same strides, and as many filters or units at their ends",
    "concat": "only their channels may differ: give them padding: same and the same strides",
}


class _Branching(Layer):
    activation: AnyActivation = None

    def paths(self) -> tuple[tuple[str, tuple[Layer, ...]], ...]:
        raise NotImplementedError(self.kind)

    def merged(self) -> Literal["add", "concat"]:
        raise NotImplementedError(self.kind)

    def lower(self, graph: Graph, source: str, prefix: str = "") -> str:
        name = graph.name(self.kind, self.name, prefix)
        ends = [lower_all(body, graph, source, f"{name}/{path}") for path, body in self.paths()]
        shapes = tuple(graph.shapes[end] for end in ends)
        how = self.merged()
        same = {shape if how == "add" else shape[:-1] for shape in shapes}
        if len(same) > 1:
            which = " and ".join(map(describe, shapes))
            raise ShapeError(f"cannot {how} branches of {which}; {_REMEDY[how]}", name)
        shape: Shape = shapes[0]
        if how == "concat":
            shape = (*shape[:-1], sum(s[-1] for s in shapes))
        return self.activate(graph, graph.add(Node(name, how, tuple(ends), shapes, shape)))


@layers.register("residual")
class Residual(_Branching):
    """body(x) + shortcut(x), then the activation. An empty shortcut is x itself."""

    body: tuple[AnyLayer, ...]
    shortcut: tuple[AnyLayer, ...] = ()

    def paths(self) -> tuple[tuple[str, tuple[Layer, ...]], ...]:
        return ("", self.body), ("shortcut_", self.shortcut)

    def merged(self) -> Literal["add", "concat"]:
        return "add"


@layers.register("parallel")
class Parallel(_Branching):
    """The same input through each branch; joined along the channels, or added."""

    branches: tuple[tuple[AnyLayer, ...], ...]
    merge: Literal["concat", "add"] = "concat"

    def paths(self) -> tuple[tuple[str, tuple[Layer, ...]], ...]:
        return tuple((f"{i}_", branch) for i, branch in enumerate(self.branches, 1))

    def merged(self) -> Literal["add", "concat"]:
        return self.merge
