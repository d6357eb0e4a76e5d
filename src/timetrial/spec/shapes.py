"""Shapes, padding and the errors they raise. Shapes are per sample, channels last: (H, W, C), (T, C) or (C,)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt
from pydantic import BeforeValidator

Shape = tuple[int, ...]
Pads = tuple[tuple[int, int], tuple[int, int]]


class ShapeError(ValueError):
    """A layer cannot take the shape it is given. Carries the layer's name and the reason."""

    def __init__(self, reason: str, layer: str = "") -> None:
        self.reason, self.layer = reason, layer
        super().__init__(f"layer '{layer}': {reason}" if layer else reason)


def _pair(value: Any) -> Any:
    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else value


def _padding(value: Any) -> Any:
    """`2` is two on every side; `[1, 2]` is one above and below, two left and right."""
    value = _pair(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
        return tuple((v, v) for v in value)
    return value


Positive = Annotated[int, Gt(0)]
Natural = Annotated[int, Ge(0)]
Pair = Annotated[tuple[Positive, Positive], BeforeValidator(_pair)]
Sides = tuple[tuple[Natural, Natural], tuple[Natural, Natural]]
Padding = Annotated[Literal["valid", "same"] | Sides, BeforeValidator(_padding)]


def elements(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def describe(shape: Shape) -> str:
    return "x".join(map(str, shape))


def same_pads(size: int, window: int, stride: int) -> tuple[int, int]:
    """TensorFlow's `same`: output ceil(size / stride), the odd pixel of padding goes after."""
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def resolve_pads(size: Shape, window: Shape, stride: Shape, padding: str | Sides) -> Pads:
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        rows, columns = (same_pads(*axis) for axis in zip(size, window, stride, strict=True))
        return rows, columns
    assert not isinstance(padding, str)
    return padding


def slide(shape: Shape, window: Shape, stride: Shape, padding: str | Sides) -> tuple[Shape, Pads]:
    """Positions of a window that slides over (H, W), and the padding that it needs."""
    pads = resolve_pads(shape, window, stride, padding)
    positions = []
    for size, (before, after), length, step, axis in zip(shape, pads, window, stride, ("height", "width"), strict=True):
        padded = size + before + after
        if padded < length:
            raise ShapeError(
                f"a window of {length} does not fit into a {axis} of {size}"
                + (f" (padded to {padded})" if padded != size else "")
                + "; use a smaller window, padding: same, or fewer poolings before it"
            )
        positions.append((padded - length) // step + 1)
    return tuple(positions), pads


def need_rank(shape: Shape, ranks: tuple[int, ...], wants: str) -> None:
    if len(shape) not in ranks:
        raise ShapeError(f"needs {wants}, but its input is {describe(shape)}")
