"""Feed-forward, convolutional and recurrent networks that one front end ran on three back ends."""

from __future__ import annotations

from timetrial.spec.initialisers import Uniform
from timetrial.spec.layers import Embedding, Flatten, Lstm
from timetrial.spec.recipe import Adam, Recipe, RmsProp, Sgd
from timetrial.zoo.backends_cnn import ENTRIES as CNNS
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import GLOROT, dense, network

FEED_FORWARD = Recipe(batch=32, epochs=50, optimiser=Sgd(rate=0.01))
IMDB = Recipe(batch=64, epochs=3, loss="binary_cross_entropy", optimiser=Adam(rate=0.001))
HMDIR = Recipe(batch=256, epochs=100, loss="mae", optimiser=RmsProp(rate=0.001))

INPUTS = {"mnist": 784, "cifar10": 960, "svhn": 154}
FEATURES: dict[str, tuple[str, ...]] = {"mnist": (), "cifar10": ("gist 960",), "svhn": ("hog and hue 154",)}
# The one published row that the rule of `widths` does not give.
_EXCEPTIONS = {(960, 3): (549, 274, 137)}


def widths(inputs: int, depth: int) -> tuple[int, ...]:
    """Each hidden layer half as wide as the one before, all together as wide as the input.

    Widths are rounded down; what is then missing is given, one each, to the last layers.
    """
    if (inputs, depth) in _EXCEPTIONS:
        return _EXCEPTIONS[inputs, depth]
    down = [inputs * 2 ** (depth - 1 - i) // (2**depth - 1) for i in range(depth)]
    missing = inputs - sum(down)
    return tuple(width + (i >= depth - missing) for i, width in enumerate(down))


def fnn(depth: int, input: str) -> Model:
    inputs = INPUTS[input]
    layers = [*(dense(width, "relu") for width in widths(inputs, depth)), dense(10, "softmax")]
    pixels = network((28, 28, 1), [Flatten(), *layers]) if input == "mnist" else network((inputs,), [*layers])
    return Model(pixels, FEED_FORWARD, dataset=input, preprocessing=FEATURES[input])


def imdb_lstm(layers: int, cells: int) -> Model:
    words, length = 5000, 500
    stack = Lstm(units=cells, layers=layers, recurrent_activation="hard_sigmoid")
    body = [Embedding(vocabulary=words, units=32), stack, dense(1, "sigmoid")]
    return Model(network((length,), body, tokens=words), IMDB)


def hmdir_lstm(layers: int, cells: int, steps: int) -> Model:
    stack = Lstm(
        units=cells,
        layers=layers,
        activation="sigmoid",
        recurrent_activation="hard_sigmoid",
        kernel_init=Uniform(low=-0.05, high=0.05),
        recurrent_init=GLOROT,
    )
    return Model(network((steps, 24), [stack, dense(1)]), HMDIR)


def _stacked(published: tuple[int, ...], cells: int) -> tuple[Option, Option]:
    return (
        Option("layers", int, "LSTMs on top of each other", default=1, published=(1, 2, 3, 4, 5), least=1),
        Option("cells", int, "cells of each LSTM", default=cells, published=published, least=1),
    )


_DEPTHS = range(1, 7)

ENTRIES = (
    Entry(
        name="backends/fnn-{depth}",
        summary="feed-forward network whose hidden layers halve and are together as wide as the input",
        source="backends: FNN-1 to FNN-6",
        dataset="mnist",
        make=fnn,
        parameters=(
            Option("depth", int, "hidden layers", least=1),
            Option("input", str, "pixels of digits, or features of colour images", "mnist", choices=tuple(INPUTS)),
        ),
        examples=tuple(f"backends/fnn-{depth}" for depth in _DEPTHS),
        aliases=tuple(
            (f"backends/fnn-{depth}-{input}", f"backends/fnn-{depth}?input={input}")
            for depth in _DEPTHS
            for input in INPUTS
        ),
    ),
    *CNNS,
    Entry(
        name="backends/imdb-lstm",
        summary="embedding, LSTM and one sigmoid: is a film review kind?",
        source="backends: IMDB-LSTM",
        dataset="imdb",
        preprocessing=("top words 5000", "length 500"),
        make=imdb_lstm,
        parameters=_stacked((25, 50, 100, 200, 400, 800), cells=100),
    ),
    Entry(
        name="backends/hmdir-lstm",
        summary="LSTM over an hour of radar readings that tells the rain in a gauge",
        source="backends: HMDIR-LSTM",
        dataset="hmdir",
        preprocessing=("marshall-palmer", "linearise decibels", "add length and mean", "zero missing", "pad"),
        make=hmdir_lstm,
        parameters=(
            *_stacked((9, 18, 35, 70, 140, 280), cells=35),
            Option("steps", int, "readings of an hour; the published length is not known", default=19, least=1),
        ),
    ),
)
