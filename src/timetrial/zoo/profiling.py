"""The CIFAR-10 network whose operations were profiled, its five variants, and those combined."""

from __future__ import annotations

from typing import Literal

from timetrial.spec.initialisers import Constant, Normal
from timetrial.spec.layers import Flatten, Layer, LocalResponseNorm, MaxPool
from timetrial.spec.recipe import Recipe, Sgd, Steps
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import conv, dense, network

STEPS = 100_000
# 256 epochs are the 100,000 steps; the rate would fall at epoch 350. The decay of 0.004, on the weights of the two
# dense layers only, is left out: a recipe's decay is of all parameters.
RECIPE = Recipe(batch=128, epochs=STEPS // (50_000 // 128), optimiser=Sgd(rate=0.1), schedule=Steps(at=(350,)))
NORM = LocalResponseNorm(radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75)


def _normal(std: float) -> Normal:
    return Normal(std=std, truncated=True)


def _pool(window: int, padding: Literal["valid", "same"]) -> MaxPool:
    return MaxPool(window=(window, window), stride=(2, 2), padding=padding)


def cnn(stride: int, filters: int, pool: int) -> Model:
    """A first pooling larger than 3x3 is without padding: only so do the published tensor sizes come out."""
    layers: list[Layer] = [
        conv(filters, 5, "relu", stride=stride, padding="same", init=_normal(0.05)),
        _pool(pool, "same" if pool == 3 else "valid"),
        NORM,
        conv(filters, 5, "relu", stride=stride, padding="same", init=_normal(0.05), bias_init=Constant(value=0.1)),
        NORM,
        _pool(3, "same"),
        Flatten(),
        dense(384, "relu", init=_normal(0.04), bias_init=Constant(value=0.1)),
        dense(192, "relu", init=_normal(0.04), bias_init=Constant(value=0.1)),
        dense(10, "softmax", init=_normal(1 / 192)),
    ]
    return Model(network((24, 24, 3), layers), RECIPE)


def _aliases() -> tuple[tuple[str, str], ...]:
    base = "profiling/cnn"
    strides = [(f"{base}-stride-{s}", f"{base}?stride={s}") for s in (2, 3, 5)]
    alone = [(f"{base}-filters-32", f"{base}?filters=32"), (f"{base}-large-pool", f"{base}?pool=4")]
    both = [(f"{name}-filters-32", f"{meaning}&filters=32") for name, meaning in strides]
    return (*strides, *alone, *both)


ENTRIES = (
    Entry(
        name="profiling/cnn",
        summary="two convolutions with local response normalisation and three dense layers",
        source="profiling: baseline, its variants and combinations",
        dataset="cifar10",
        preprocessing=(
            *("raw", "crop?size=24", "flip", "brightness?most=63", "contrast?low=0.2&high=1.8"),
            "standardise-each",
        ),
        make=cnn,
        parameters=(
            Option("stride", int, "stride of both convolutions", default=1, least=1),
            Option("filters", int, "filters of both convolutions", default=64, least=1),
            Option("pool", int, "window of the first pooling; above 3 without padding", default=3, least=3),
        ),
        aliases=_aliases(),
    ),
)
