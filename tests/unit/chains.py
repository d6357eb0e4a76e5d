"""Random chains of layers that fit each other, for property tests of the network language."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from timetrial.spec import initialisers as init
from timetrial.spec.layers import (
    Activation,
    Attention,
    AvgPool,
    BatchNorm,
    Conv2d,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool,
    GlobalMaxPool,
    Gru,
    Layer,
    LayerNorm,
    LocalResponseNorm,
    Lstm,
    MaxPool,
    Parallel,
    Positions,
    Residual,
    SimpleRnn,
)
from timetrial.spec.layers.activation import FUNCTIONS
from timetrial.spec.network import Input, Network
from timetrial.spec.shapes import Shape

WIDTHS = st.integers(1, 6)
RATES = st.floats(0, 0.9, allow_nan=False)
INITIALISERS = st.one_of(
    st.sampled_from([init.Zeros(), init.GlorotUniform(), init.GlorotNormal(), init.HeNormal(), init.HeUniform()]),
    st.builds(init.Constant, value=st.floats(-2, 2)),
    st.builds(init.Normal, std=st.floats(0.01, 2), truncated=st.booleans()),
    st.builds(init.Uniform, low=st.floats(-2, -0.1), high=st.floats(0.1, 2)),
    st.builds(init.Orthogonal, gain=st.floats(0.5, 2)),
)
ACTIVATIONS = st.one_of(
    st.builds(Activation, function=st.sampled_from(FUNCTIONS)),
    st.builds(Activation, function=st.just("leaky_relu"), slope=st.floats(0.01, 0.5)),
)
MAYBE_ACTIVATIONS = st.none() | ACTIVATIONS


@st.composite
def sliding(draw: DrawFn, shape: Shape, pooling: bool = False) -> dict[str, object]:
    """A window, stride and padding that fit over an image."""
    padding = draw(st.sampled_from(["valid", "same", "explicit"]))
    sizes = (st.integers(1, min(4, side) if padding == "valid" else 4) for side in shape[:2])
    window = tuple(draw(size) for size in sizes)
    stride = tuple(draw(st.integers(1, 3)) for _ in window)
    if padding != "explicit":
        return {"window": window, "stride": stride, "padding": padding}
    sides = []
    for side, length in zip(shape[:2], window, strict=True):
        most = length - 1 if pooling else 3
        least = max(0, length - side)
        before = draw(st.integers(min(least, most), most))
        sides.append((before, draw(st.integers(0, most))))
    return {"window": window, "stride": stride, "padding": tuple(sides)}


@st.composite
def convolution(draw: DrawFn, shape: Shape) -> Layer:
    fields = draw(sliding(shape))
    fields["kernel"] = fields.pop("window")
    return Conv2d.model_validate(
        {
            **fields,
            "filters": draw(WIDTHS),
            "activation": draw(MAYBE_ACTIVATIONS),
            "bias": draw(st.booleans()),
            "kernel_init": draw(INITIALISERS),
            "bias_init": draw(INITIALISERS),
        }
    )


@st.composite
def pooling(draw: DrawFn, shape: Shape) -> Layer:
    kind: Callable[..., Layer] = draw(st.sampled_from([MaxPool, AvgPool]))
    return kind(**draw(sliding(shape, pooling=True)))


@st.composite
def branching(draw: DrawFn, shape: Shape) -> Layer:
    def body(filters: int) -> tuple[Layer, ...]:
        return (Conv2d(filters=filters, kernel=(3, 3), padding="same"), BatchNorm())

    if draw(st.booleans()):
        filters = draw(WIDTHS)
        shortcut = () if filters == shape[-1] else (Conv2d(filters=filters, kernel=(1, 1)),)
        return Residual(body=body(filters), shortcut=shortcut, activation=draw(MAYBE_ACTIVATIONS))
    branches = draw(st.lists(WIDTHS.map(body) | st.just(()), min_size=1, max_size=3))
    return Parallel(branches=tuple(branches))


def anywhere() -> st.SearchStrategy[Layer]:
    return st.one_of(
        ACTIVATIONS,
        st.builds(Dropout, rate=RATES),
        st.builds(BatchNorm, momentum=RATES, epsilon=st.floats(1e-6, 1e-2), gamma_init=INITIALISERS),
        st.builds(LayerNorm, epsilon=st.floats(1e-6, 1e-2)),
        st.just(Flatten()),
    )


def image_layer(shape: Shape) -> st.SearchStrategy[Layer]:
    lrn = st.builds(LocalResponseNorm, radius=st.integers(0, 3), alpha=st.floats(0, 1), beta=st.floats(0, 1))
    whole = st.sampled_from([GlobalAvgPool(), GlobalMaxPool()])
    return st.one_of(convolution(shape), pooling(shape), branching(shape), lrn, whole, anywhere())


def dense() -> st.SearchStrategy[Layer]:
    return st.builds(Dense, units=WIDTHS, activation=MAYBE_ACTIVATIONS, bias=st.booleans(), kernel_init=INITIALISERS)


@st.composite
def recurrent(draw: DrawFn) -> Layer:
    kind: Callable[..., Layer] = draw(st.sampled_from([SimpleRnn, Lstm, Gru]))
    return kind(
        units=draw(WIDTHS),
        layers=draw(st.integers(1, 3)),
        steps=draw(st.sampled_from(["last", "all"])),
        bias=draw(st.booleans()),
        recurrent_init=draw(INITIALISERS),
    )


def sequence_layer(shape: Shape) -> st.SearchStrategy[Layer]:
    heads = [heads for heads in range(1, shape[1] + 1) if shape[1] % heads == 0]
    attention = st.builds(Attention, heads=st.sampled_from(heads), causal=st.booleans(), bias=st.booleans())
    whole: st.SearchStrategy[Layer] = st.sampled_from([GlobalAvgPool(), GlobalMaxPool(), Positions()])
    return st.one_of(recurrent(), attention, whole, dense(), anywhere())


def flat_layer(shape: Shape) -> st.SearchStrategy[Layer]:
    return st.one_of(dense(), anywhere())


INPUTS = st.one_of(
    st.tuples(st.integers(1, 9), st.integers(1, 9), WIDTHS).map(lambda shape: Input(shape=shape)),
    st.tuples(st.integers(1, 6), WIDTHS).map(lambda shape: Input(shape=shape)),
    st.tuples(WIDTHS).map(lambda shape: Input(shape=shape)),
    st.tuples(WIDTHS).map(lambda shape: Input(shape=shape, tokens=7)),
)


@st.composite
def networks(draw: DrawFn) -> Network:
    source = draw(INPUTS)
    shape, items = source.shape, list[Layer]()
    if source.tokens:
        items.append(Embedding(vocabulary=source.tokens, units=draw(WIDTHS)))
        shape = items[0].output_shape(shape)
    for number in range(draw(st.integers(0, 6))):
        layer = draw({3: image_layer, 2: sequence_layer, 1: flat_layer}[len(shape)](shape))
        if draw(st.booleans()):
            layer = layer.model_copy(update={"name": f"given_{number}"})
        items.append(layer)
        shape = layer.output_shape(shape)
    return Network(name="chain", input=source, layers=tuple(items))
