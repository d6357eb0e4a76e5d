"""Short typed forms of the layers that most networks of the zoo are made of."""

from __future__ import annotations

from typing import Literal

from timetrial.spec.initialisers import GlorotUniform, Initialiser, Zeros
from timetrial.spec.layers import Activation, Conv2d, Dense, Layer
from timetrial.spec.layers.activation import Function
from timetrial.spec.network import Input, Network
from timetrial.spec.shapes import Shape, Sides

Sort = Literal["valid", "same"]
GLOROT, ZEROS = GlorotUniform(), Zeros()


def network(shape: Shape, layers: list[Layer], tokens: int | None = None) -> Network:
    return Network(input=Input(shape=shape, tokens=tokens), layers=tuple(layers))


def around(size: int) -> Sides:
    """The same zero padding on all four sides."""
    return (size, size), (size, size)


def act(function: Function) -> Activation:
    return Activation(function=function)


def conv(
    filters: int,
    size: int,
    activation: Function | None = None,
    *,
    stride: int = 1,
    padding: Sort | Sides = "valid",
    bias: bool = True,
    init: Initialiser = GLOROT,
    bias_init: Initialiser = ZEROS,
) -> Conv2d:
    return Conv2d(
        filters=filters,
        kernel=(size, size),
        stride=(stride, stride),
        padding=padding,
        activation=act(activation) if activation else None,
        bias=bias,
        kernel_init=init,
        bias_init=bias_init,
    )


def dense(
    units: int,
    activation: Function | None = None,
    *,
    init: Initialiser = GLOROT,
    bias_init: Initialiser = ZEROS,
) -> Dense:
    return Dense(
        units=units,
        activation=act(activation) if activation else None,
        kernel_init=init,
        bias_init=bias_init,
    )
