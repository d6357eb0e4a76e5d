"""Feed-forward, convolutional and recurrent networks that one front end ran on three back ends."""

from __future__ import annotations

from typing import NamedTuple

from timetrial.spec.initialisers import Uniform
from timetrial.spec.layers import Embedding, Flatten, Layer, Lstm
from timetrial.spec.recipe import Adam, Recipe, RmsProp, Sgd
from timetrial.spec.shapes import Shape, elements
from timetrial.zoo.backends_cnn import ENTRIES as CNNS
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import GLOROT, dense, network

FEED_FORWARD = Recipe(batch=32, epochs=50, optimiser=Sgd(rate=0.01))
IMDB = Recipe(batch=64, epochs=3, loss="binary_cross_entropy", optimiser=Adam(rate=0.001))
HMDIR = Recipe(batch=256, epochs=100, loss="mae", optimiser=RmsProp(rate=0.001))


class Source(NamedTuple):
    """What a feed-forward network reads: numbers of a sample, or an image that it flattens itself."""

    shape: Shape
    dataset: str
    steps: tuple[str, ...]


# The pixels of digits are published as unaltered: from 0 to 255. Those in colour are not in the study.
INPUTS = {
    "mnist": Source((28, 28, 1), "mnist", ("raw",)),
    "cifar10": Source((960,), "cifar10", ("gist?filters=20&grid=4",)),
    "svhn": Source((154,), "svhn", ("hog?grid=4&directions=9&hues=10",)),
    "colours": Source((32, 32, 3), "cifar10", ("scale",)),
}
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
    shape, dataset, steps = INPUTS[input]
    flat: list[Layer] = [Flatten()] if len(shape) > 1 else []
    hidden = [dense(width, "relu") for width in widths(elements(shape), depth)]
    whole = network(shape, [*flat, *hidden, dense(10, "softmax")])
    return Model(whole, FEED_FORWARD, dataset=dataset, preprocessing=steps)


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
    physical = ("marshall-palmer?of=RefComposite", "linearise", "length-and-mean", "impute?value=0")
    return Model(network((steps, 24), [stack, dense(1)]), HMDIR, preprocessing=(f"group?steps={steps}", *physical))


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
            Option(
                "input",
                str,
                "pixels of digits, features of colour images, or (not published) their pixels",
                "mnist",
                choices=tuple(INPUTS),
            ),
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
        preprocessing=("words?vocabulary=5000&length=500",),
        make=imdb_lstm,
        parameters=_stacked((25, 50, 100, 200, 400, 800), cells=100),
    ),
    Entry(
        name="backends/hmdir-lstm",
        summary="LSTM over an hour of radar readings that tells the rain in a gauge",
        source="backends: HMDIR-LSTM",
        dataset="hmdir",
        make=hmdir_lstm,
        parameters=(
            *_stacked((9, 18, 35, 70, 140, 280), cells=35),
            Option("steps", int, "readings of an hour; the published length is not known", default=19, least=1),
        ),
    ),
)
