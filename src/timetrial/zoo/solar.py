"""Solar irradiance from a grid of sensors: thirty perceptrons and a CNN over irradiance maps."""

from __future__ import annotations

from timetrial.spec.layers import Dropout, Flatten, Layer, MaxPool
from timetrial.spec.recipe import Adam, Recipe
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import conv, dense, network

SENSORS = 50
# Published with the Oahu grid, which nobody may pass on: `oahu` reads a copy of your own. The stand-in has its place,
# its size and its form; horizon, split, scale and maps are options of either.
DATASET = "solar-synthetic"
BASES = ((50,), (50, 25), (50, 25, 13))
# The learning rate was constant but never published; Adam's usual one is taken.
ROWS = Recipe(batch=1000, epochs=1, loss="mse", optimiser=Adam(rate=0.001), last_batch="keep")
MAPS = Recipe(batch=512, epochs=1, loss="mse", optimiser=Adam(rate=0.001), last_batch="keep")


def doubled(base: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """`count` networks from the hidden widths `base` on, each twice as wide as the one before."""
    return [tuple(width * 2**k for width in base) for k in range(count)]


PUBLISHED = tuple(widths for base in BASES for widths in doubled(base, 10))


def pyramid(widths: str, inputs: int) -> Model:
    hidden = [dense(int(width), "relu") for width in widths.split("-")]
    return Model(network((inputs,), [*hidden, dense(1)]), ROWS)


def cnn(size: int) -> Model:
    layers: list[Layer] = [conv(32, 3, "relu"), conv(64, 3, "relu"), MaxPool(), Dropout(rate=0.25), Flatten()]
    layers += [dense(128, "relu"), Dropout(rate=0.5), dense(1, "relu")]
    return Model(network((size, size, 1), layers), MAPS)


ENTRIES = (
    Entry(
        name="solar/pyramid-{widths}",
        summary="perceptron that narrows towards one linear output: the irradiance in 10 s",
        source="solar: fully connected family",
        dataset=DATASET,
        make=pyramid,
        parameters=(
            Option(
                "widths",
                str,
                "the hidden layers' widths with dashes between them, as in 800-400",
                pattern=r"[1-9]\d*(?:-[1-9]\d*)*",
            ),
            Option("inputs", int, "sensors read at one instant", default=SENSORS, least=1),
        ),
        examples=tuple("solar/pyramid-" + "-".join(map(str, widths)) for widths in PUBLISHED),
    ),
    Entry(
        name="solar/cnn",
        summary="two convolutions over a map of 50x50 of the irradiance, one non-negative output: that in 10 s",
        source="solar: convolutional network",
        dataset=DATASET,
        make=cnn,
        parameters=(Option("size", int, "rows and columns of a map", default=50, least=6),),
    ),
)
