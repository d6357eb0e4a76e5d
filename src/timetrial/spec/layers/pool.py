"""Pooling. The stride is the window unless said otherwise; padding never takes part in a maximum or a mean."""

from __future__ import annotations

from timetrial.spec.layers.base import Layer, Node, layers
from timetrial.spec.shapes import Padding, Pair, Shape, ShapeError, need_rank, slide


class _Pool(Layer):
    window: Pair = (2, 2)
    stride: Pair | None = None
    padding: Padding = "valid"

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (3,), "an image (H, W, C)")
        stride = self.stride or self.window
        size, pads = slide(shape[:2], self.window, stride, self.padding)
        for (before, after), length in zip(pads, self.window, strict=True):
            if max(before, after) >= length:
                problem = f"a padding of {max(before, after)} leaves windows of {length} with nothing in them"
                raise ShapeError(f"{problem}; use less padding")
        attrs = {"window": self.window, "stride": stride, "pads": pads}
        return Node(name, self.kind, (source,), (shape,), (*size, shape[2]), attrs)


@layers.register("max_pool")
class MaxPool(_Pool):
    pass


@layers.register("avg_pool")
class AvgPool(_Pool):
    pass


class _GlobalPool(Layer):
    """Over all places of an image (H, W, C) or a sequence (T, C): what is left is (C)."""

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (2, 3), "an image (H, W, C) or a sequence (T, C)")
        return Node(name, self.kind, (source,), (shape,), shape[-1:])


@layers.register("global_avg_pool")
class GlobalAvgPool(_GlobalPool):
    pass


@layers.register("global_max_pool")
class GlobalMaxPool(_GlobalPool):
    pass
