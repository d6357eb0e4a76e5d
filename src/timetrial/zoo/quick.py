"""Three small networks for a first look: seconds to train, on the data set that is always there."""

from __future__ import annotations

from timetrial.spec.layers import Flatten, Lstm, MaxPool
from timetrial.spec.recipe import Adam, Recipe
from timetrial.zoo.entry import Entry, Model
from timetrial.zoo.pieces import conv, dense, network

RECIPE = Recipe(batch=64, epochs=1, optimiser=Adam(rate=0.001))
IMAGE = (28, 28, 1)
EXAMPLES = 5000


def mlp() -> Model:
    layers = [Flatten(), dense(256, "relu"), dense(128, "relu"), dense(10, "softmax")]
    return Model(network(IMAGE, layers), RECIPE, examples=EXAMPLES)


def cnn() -> Model:
    features = [conv(16, 3, "relu"), MaxPool(), conv(32, 3, "relu"), MaxPool(), Flatten()]
    return Model(network(IMAGE, [*features, dense(64, "relu"), dense(10, "softmax")]), RECIPE, examples=EXAMPLES)


def lstm() -> Model:
    return Model(network((28, 28), [Lstm(units=64), dense(10, "softmax")]), RECIPE, examples=EXAMPLES)


ENTRIES = (
    Entry(
        name="quick/mlp",
        summary="dense layers of 256, 128 and 10 on small grey images",
        source="Timetrial",
        dataset="fashion-mnist-6000",
        preprocessing=("scale",),
        make=mlp,
    ),
    Entry(
        name="quick/cnn",
        summary="two 3x3 convolutions with pooling and two dense layers on small grey images",
        source="Timetrial",
        dataset="fashion-mnist-6000",
        preprocessing=("scale",),
        make=cnn,
    ),
    Entry(
        name="quick/lstm",
        summary="an LSTM of 64 that reads an image row by row",
        source="Timetrial",
        dataset="fashion-mnist-6000",
        preprocessing=("scale", "rows"),
        make=lstm,
    ),
)
