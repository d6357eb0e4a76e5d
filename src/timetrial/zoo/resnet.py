"""Residual networks of 18, 34 and 50 layers, with the stride of a bottleneck in its 3x3 convolution."""

from __future__ import annotations

from collections.abc import Callable

from timetrial.spec.initialisers import HeNormal
from timetrial.spec.layers import BatchNorm, Conv2d, GlobalAvgPool, Layer, MaxPool, Residual
from timetrial.spec.network import Network
from timetrial.spec.shapes import Shape
from timetrial.zoo.pieces import act, around, conv, dense, network

NORM = BatchNorm(momentum=0.9, epsilon=1e-5)
RELU = act("relu")


def resnet(depth: int, shape: Shape, classes: int) -> Network:
    block, expansion, repeats = STAGES[depth]
    layers: list[Layer] = [_conv(64, 7, 2), NORM, RELU]
    layers.append(MaxPool(window=(3, 3), stride=(2, 2), padding=around(1)))
    channels = 64
    for stage, count in enumerate(repeats):
        width = 64 * 2**stage
        for number in range(count):
            stride = 2 if stage and not number else 1
            changes = stride > 1 or channels != width * expansion
            channels = width * expansion
            shortcut = (_conv(channels, 1, stride), NORM) if changes else ()
            layers.append(Residual(body=block(width, stride), shortcut=shortcut, activation=RELU))
    return network(shape, [*layers, GlobalAvgPool(), dense(classes, "softmax")])


def _conv(filters: int, size: int, stride: int = 1) -> Conv2d:
    return conv(filters, size, stride=stride, padding=around(size // 2), bias=False, init=HeNormal())


def _basic(width: int, stride: int) -> tuple[Layer, ...]:
    return (_conv(width, 3, stride), NORM, RELU, _conv(width, 3), NORM)


def _bottleneck(width: int, stride: int) -> tuple[Layer, ...]:
    inner = (_conv(width, 1), NORM, RELU, _conv(width, 3, stride), NORM, RELU)
    return (*inner, _conv(4 * width, 1), NORM)


Block = Callable[[int, int], tuple[Layer, ...]]
STAGES: dict[int, tuple[Block, int, tuple[int, ...]]] = {
    18: (_basic, 1, (2, 2, 2, 2)),
    34: (_basic, 1, (3, 4, 6, 3)),
    50: (_bottleneck, 4, (3, 4, 6, 3)),
}
