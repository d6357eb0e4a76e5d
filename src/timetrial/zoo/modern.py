"""Networks of today: residual networks, a small language model, a text classifier."""

from __future__ import annotations

from timetrial.spec.initialisers import Normal
from timetrial.spec.layers import Attention, Embedding, Gru, Layer, LayerNorm, Positions, Residual
from timetrial.spec.recipe import Adam, Cosine, Recipe, Sgd, Steps
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import dense, network
from timetrial.zoo.resnet import resnet

IMAGENET = Recipe(
    batch=64,
    epochs=90,
    optimiser=Sgd(rate=0.1, momentum=0.9, weight_decay=1e-4),
    schedule=Steps(at=(30, 60)),
)
LANGUAGE = Recipe(batch=32, epochs=10, optimiser=Adam(rate=3e-4), schedule=Cosine(over=5000, warmup=100, floor=3e-5))
SENTIMENT = Recipe(batch=64, epochs=3, loss="binary_cross_entropy", optimiser=Adam(rate=0.001))
SMALL = Normal(std=0.02)


def resnet_18(size: int, classes: int) -> Model:
    return Model(resnet(18, (size, size, 3), classes), IMAGENET, preprocessing=_photographs(size))


def resnet_50(size: int, classes: int) -> Model:
    return Model(resnet(50, (size, size, 3), classes), IMAGENET, preprocessing=_photographs(size))


def _photographs(size: int) -> tuple[str, ...]:
    return f"resize?height={size}&width={size}", "scale", "standardise?over=channel"


def gpt(vocabulary: int, steps: int, width: int, heads: int, blocks: int) -> Model:
    """Each block normalises before it reads (pre-norm); every position predicts the token that follows it."""
    layers: list[Layer] = [Embedding(vocabulary=vocabulary, units=width, init=SMALL), Positions(init=SMALL)]
    for _ in range(blocks):
        attention = Attention(heads=heads, causal=True, kernel_init=SMALL)
        feed = (dense(4 * width, "gelu", init=SMALL), dense(width, init=SMALL))
        layers += [Residual(body=(LayerNorm(), attention)), Residual(body=(LayerNorm(), *feed))]
    layers += [LayerNorm(), dense(vocabulary, "softmax", init=SMALL)]
    text = (f"next-character?vocabulary={vocabulary}&length={steps}",)
    return Model(network((steps,), layers, tokens=vocabulary), LANGUAGE, preprocessing=text)


def gru(vocabulary: int, steps: int, width: int, units: int, layers: int) -> Model:
    body: list[Layer] = [Embedding(vocabulary=vocabulary, units=width), Gru(units=units, layers=layers)]
    text = (f"words?vocabulary={vocabulary}&length={steps}",)
    classifier = network((steps,), [*body, dense(1, "sigmoid")], tokens=vocabulary)
    return Model(classifier, SENTIMENT, preprocessing=text)


_IMAGES = (
    Option("size", int, "rows and columns of an image", default=224, least=32),
    Option("classes", int, "classes", default=1000, least=2),
)

ENTRIES = (
    Entry(
        name="modern/resnet-18",
        summary="residual network of 18 layers for colour images",
        source="He et al. 2016",
        dataset="imagenet",
        make=resnet_18,
        parameters=_IMAGES,
    ),
    Entry(
        name="modern/resnet-50",
        summary="residual network of 50 layers with bottlenecks for colour images",
        source="He et al. 2016",
        dataset="imagenet",
        make=resnet_50,
        parameters=_IMAGES,
    ),
    Entry(
        name="modern/gpt",
        summary="causal pre-norm transformer that predicts the next character",
        source="Radford et al. 2019, made small",
        dataset="tiny-text",
        make=gpt,
        parameters=(
            Option("vocabulary", int, "different tokens", default=128, least=2),
            Option("steps", int, "tokens read at once", default=128, least=1),
            Option("width", int, "numbers per token", default=128, least=1),
            Option("heads", int, "heads of each attention; they divide the width", default=4, least=1),
            Option("blocks", int, "pairs of attention and feed-forward", default=4, least=1),
        ),
    ),
    Entry(
        name="modern/gru",
        summary="GRU that tells praise from blame in reviews",
        source="Cho et al. 2014",
        dataset="imdb",
        make=gru,
        parameters=(
            Option("vocabulary", int, "words kept", default=5000, least=2),
            Option("steps", int, "words read of each review", default=200, least=1),
            Option("width", int, "numbers per word", default=64, least=1),
            Option("units", int, "units of the GRU", default=64, least=1),
            Option("layers", int, "GRUs on top of each other", default=1, least=1),
        ),
    ),
)
