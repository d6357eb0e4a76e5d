"""Perceptrons for the Shuttle data and CNNs for CIFAR-10, each a grid of depth and width."""

from __future__ import annotations

from math import sqrt

from timetrial.spec.initialisers import Normal
from timetrial.spec.layers import Flatten, Layer, MaxPool
from timetrial.spec.recipe import Recipe, Sgd
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import conv, dense, network

# The batch was never published; 100 divides both training sets.
RECIPE = Recipe(batch=100, epochs=10, optimiser=Sgd(rate=0.001))
NEURONS = (25, 50, 100, 200, 400, 1600)
MAPS = (2, 4, 8, 16, 32, 64)


def _wide(inputs: int) -> Normal:
    """He's deviation over a layer's whole input."""
    return Normal(std=sqrt(2 / max(inputs, 1)))  # a network too deep for its image is refused later, by its shapes


def _stack(inputs: int, widths: tuple[int, ...], classes: int) -> list[Layer]:
    lengths = (inputs, *widths)
    hidden = [dense(width, "relu", init=_wide(n)) for n, width in zip(lengths, widths, strict=False)]
    return [*hidden, dense(classes, "softmax", init=_wide(lengths[-1]))]


def mlp(layers: int, neurons: int) -> Model:
    return Model(network((8,), _stack(8, (neurons,) * layers, 7)), RECIPE)


def cnn(layers: int, maps: int) -> Model:
    """A convolution's deviation is over the whole image that it reads, not over its 5x5 window, as published."""
    body: list[Layer] = []
    side, channels = 32, 3
    for _ in range(layers):
        body += [conv(3 * maps, 5, "relu", init=_wide(side * side * channels)), MaxPool()]
        side, channels = (side - 4) // 2, 3 * maps
    head = _stack(side * side * channels, (120, 84), 10)
    return Model(network((32, 32, 3), [*body, Flatten(), *head]), RECIPE)


ENTRIES = (
    Entry(
        name="libraries/mlp-{layers}x{neurons}",
        summary="perceptron of equally wide ReLU layers, seven classes",
        source="libraries: MLP",
        dataset="shuttle",
        preprocessing=("drop?column=0",),
        make=mlp,
        parameters=(
            Option("layers", int, "hidden layers", least=1),
            Option("neurons", int, "neurons of each hidden layer", least=1),
        ),
        examples=tuple(f"libraries/mlp-{layers}x{neurons}" for layers in (2, 4, 8, 16) for neurons in NEURONS),
    ),
    Entry(
        name="libraries/cnn-{layers}x{maps}",
        summary="5x5 convolutions with pooling, then dense layers of 120, 84 and 10",
        source="libraries: CNN",
        dataset="cifar10",
        preprocessing=("scale",),  # nothing was published
        make=cnn,
        parameters=(
            Option("layers", int, "convolutions, each with a pooling; 32x32 images have room for 2", least=1),
            Option("maps", int, "maps per colour: each convolution has three times as many", least=1),
        ),
        examples=tuple(f"libraries/cnn-{layers}x{maps}" for layers in (1, 2) for maps in MAPS),
    ),
)
