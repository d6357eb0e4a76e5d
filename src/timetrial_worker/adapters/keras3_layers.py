"""Nodes of the lowered network as Keras 3 layers: one small function an operation, channels last on every backend
unless Keras was told otherwise.

Built-in layers wherever they mean the same. What Keras lacks, or means otherwise, is a small layer of our own.
"""

import re

import numpy as np

from .base import Unsupported


class Builder(object):
    """Holds the imported Keras and our own layers; called once a node, with the node and its symbolic inputs."""

    def __init__(self, keras):
        self.keras, self.layers = keras, keras.layers
        self.own = _own_layers(keras)
        self.double = keras.config.floatx() == "float64"
        self.layout = keras.config.image_data_format()
        self._count = 0

    def __call__(self, node, inputs):
        """(output, the layer that holds the node's parameters)."""
        make = LAYERS.get(node["op"])
        if make is None:
            raise Unsupported("Keras has no layer {!r}: leave it out, or use another engine".format(node["op"]))
        self._count += 1
        return make(self, node, *inputs)

    def shape(self, of_sample):
        """As Keras is to keep it."""
        if len(of_sample) == 3 and self.layout == "channels_first":
            return (of_sample[2], of_sample[0], of_sample[1])
        return tuple(of_sample)

    def channels(self, of_sample):
        """The axis of the channels; sequences have them last in any case."""
        return 1 if len(of_sample) == 3 and self.layout == "channels_first" else -1

    def name(self, node, part=""):
        """Keras forbids "/" in names and the torch backend "." too; the number keeps what is left unique."""
        return "n{}_{}{}".format(self._count, re.sub(r"\W", "_", node["name"]), part)

    def function(self, name):
        """As Keras itself writes it, so that fused kernels recognise it, or as the language defines it."""
        ops, activations = self.keras.ops, self.keras.activations
        functions = {
            "identity": activations.linear,
            "relu": activations.relu,
            "tanh": activations.tanh,
            "sigmoid": activations.sigmoid,
            "softmax": activations.softmax,
            "gelu": self._gelu,
            "leaky_relu": lambda x: ops.leaky_relu(x, negative_slope=0.01),
            "hard_sigmoid": lambda x: ops.clip(0.2 * x + 0.5, 0.0, 1.0),
            "scaled_tanh": lambda x: 1.7159 * ops.tanh(x * (2.0 / 3.0)),
        }
        if name not in functions:
            raise Unsupported("Keras has no activation {!r}: use one of {}".format(name, ", ".join(sorted(functions))))
        return functions[name]

    def _gelu(self, x):
        ops = self.keras.ops
        if self.double:  # TensorFlow's own rounds its constant to single precision
            return 0.5 * x * (1.0 + ops.erf(x * ops.convert_to_tensor(0.5**0.5, dtype=x.dtype)))
        return ops.gelu(x, approximate=False)


# --- layers of our own ----------------------------------------------------------------------------------------------


def _own_layers(keras):
    """Classes can only be made once Keras is there."""
    ops, Layer = keras.ops, keras.layers.Layer

    class Positions(Layer):
        """Adds a learned vector for each place."""

        def build(self, shape):
            self.table = self.add_weight(shape=tuple(shape[1:]), initializer="zeros", name="table")

        def call(self, x):
            return x + self.table

    class LocalResponseNorm(Layer):
        """The sum over neighbouring channels is a product with a band matrix: one pass over the image."""

        def __init__(self, attrs, channels, **fields):
            super(LocalResponseNorm, self).__init__(**fields)
            self.attrs, self.channels = attrs, channels

        def build(self, shape):
            places = np.arange(shape[self.channels])
            near = np.abs(places[:, None] - places[None, :]) <= self.attrs["radius"]
            self.band = near * float(self.attrs["alpha"])

        def call(self, x):
            squares = ops.square(x) if self.channels == -1 else ops.moveaxis(ops.square(x), self.channels, -1)
            sums = ops.matmul(squares, ops.convert_to_tensor(self.band, dtype=x.dtype))
            sums = sums if self.channels == -1 else ops.moveaxis(sums, -1, self.channels)
            return x * ops.power(sums + self.attrs["bias"], -self.attrs["beta"])

    class MinusInfinityPadding(Layer):
        """Padding that no maximum ever takes."""

        def __init__(self, pads, layout, **fields):
            super(MinusInfinityPadding, self).__init__(**fields)
            self.pads = _all_axes(pads, layout)

        def call(self, x):
            return ops.pad(x, self.pads, constant_values=-float("inf"))

    class PaddedAveragePooling(Layer):
        """Averages of the zero-padded image, put right at the borders by how many real values each window holds."""

        def __init__(self, attrs, in_shape, layout, **fields):
            super(PaddedAveragePooling, self).__init__(**fields)
            self.attrs, self.pads, self.layout = attrs, _all_axes(attrs["pads"], layout), layout
            self.correction = _border_correction(attrs, in_shape, layout)

        def call(self, x):
            window, stride = tuple(self.attrs["window"]), tuple(self.attrs["stride"])
            means = ops.average_pool(ops.pad(x, self.pads), window, stride, "valid", data_format=self.layout)
            return means * ops.convert_to_tensor(self.correction, dtype=x.dtype)

    return {
        "positions": Positions,
        "lrn": LocalResponseNorm,
        "minus_infinity": MinusInfinityPadding,
        "avg_pool": PaddedAveragePooling,
    }


def _all_axes(pads, layout):
    places = (tuple(pads[0]), tuple(pads[1]))
    return ((0, 0),) + (((0, 0),) + places if layout == "channels_first" else places + ((0, 0),))


def _border_correction(attrs, in_shape, layout):
    """(rows, columns, 1), or with the one first: window size over the number of real values in it."""
    factors = []
    for size, pads, window, stride in zip(in_shape, attrs["pads"], attrs["window"], attrs["stride"]):
        real = np.pad(np.ones(size), tuple(pads), mode="constant")
        starts = range(0, len(real) - window + 1, stride)
        factors.append(np.array([window / real[start : start + window].sum() for start in starts]))
    table = np.multiply.outer(factors[0], factors[1])
    return table[None] if layout == "channels_first" else table[:, :, None]


# --- padding --------------------------------------------------------------------------------------------------------


def _same(size, window, stride):
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return [total // 2, total - total // 2]


def _padding(node, window, stride):
    """Keras' own word for the node's resolved padding, or None where it has none."""
    pads = [list(side) for side in node["attrs"]["pads"]]
    if not any(pads[0] + pads[1]):
        return "valid"
    sizes = node["in_shapes"][0][:2]
    return "same" if pads == [_same(*axis) for axis in zip(sizes, window, stride)] else None


def _pooling(kit, node):
    attrs = node["attrs"]
    window, stride = tuple(attrs["window"]), tuple(attrs["stride"])
    fields = {"pool_size": window, "strides": stride, "data_format": kit.layout}
    return fields, _padding(node, window, stride)


# --- one function an operation --------------------------------------------------------------------------------------


def _dense(kit, node, x):
    attrs = node["attrs"]
    layer = kit.layers.Dense(attrs["units"], use_bias=attrs["bias"], name=kit.name(node))
    return layer(x), layer


def _embedding(kit, node, x):
    layer = kit.layers.Embedding(node["attrs"]["vocabulary"], node["attrs"]["units"], name=kit.name(node))
    return layer(x), layer


def _positions(kit, node, x):
    layer = kit.own["positions"](name=kit.name(node))
    return layer(x), layer


def _conv2d(kit, node, x):
    attrs = node["attrs"]
    kernel, stride = tuple(attrs["kernel"]), tuple(attrs["stride"])
    padding = _padding(node, kernel, stride)
    if padding is None:
        pads = tuple(tuple(side) for side in attrs["pads"])
        x = kit.layers.ZeroPadding2D(pads, data_format=kit.layout, name=kit.name(node, "_pad"))(x)
    layer = kit.layers.Conv2D(
        attrs["filters"], kernel, strides=stride, padding=padding or "valid", use_bias=attrs["bias"],
        data_format=kit.layout, name=kit.name(node),
    )  # fmt: skip
    return layer(x), layer


def _max_pool(kit, node, x):
    fields, padding = _pooling(kit, node)
    if padding is None:
        x = kit.own["minus_infinity"](node["attrs"]["pads"], kit.layout, name=kit.name(node, "_pad"))(x)
    return kit.layers.MaxPooling2D(padding=padding or "valid", name=kit.name(node), **fields)(x), None


def _avg_pool(kit, node, x):
    fields, padding = _pooling(kit, node)
    lopsided = any(before != after for before, after in node["attrs"]["pads"])
    if padding is None or (lopsided and kit.keras.backend.backend() == "torch"):
        # Keras on torch pads a lopsided `same` with copies of the border, which then take part in the mean.
        return kit.own["avg_pool"](node["attrs"], node["in_shapes"][0], kit.layout, name=kit.name(node))(x), None
    return kit.layers.AveragePooling2D(padding=padding, name=kit.name(node), **fields)(x), None


def _global_pool(word):
    def make(kit, node, x):
        dimensions = len(node["in_shapes"][0]) - 1
        layer = getattr(kit.layers, "Global{}Pooling{}D".format(word, dimensions))
        layout = kit.layout if dimensions == 2 else "channels_last"
        return layer(data_format=layout, name=kit.name(node))(x), None

    return make


def _flatten(kit, node, x):
    layout = kit.layout if len(node["in_shapes"][0]) == 3 else "channels_last"
    return kit.layers.Flatten(data_format=layout, name=kit.name(node))(x), None


def _dropout(kit, node, x):
    return kit.layers.Dropout(node["attrs"]["rate"], name=kit.name(node))(x), None


def _activation(kit, node, x):
    """A layer, whose name stands in traces, where a step is compiled; else an operation on its own: a layer around each
    would cost an eager step some percent."""
    keras, attrs = kit.keras, node["attrs"]
    ops = keras.ops
    plain = {"relu": ops.relu, "tanh": ops.tanh, "sigmoid": ops.sigmoid, "softmax": ops.softmax}
    if attrs["function"] == "softmax" and kit.channels(node["shape"]) != -1:
        return ops.softmax(x, axis=kit.channels(node["shape"])), None
    if attrs["function"] == "leaky_relu":
        plain["leaky_relu"] = lambda x: ops.leaky_relu(x, negative_slope=attrs["slope"])
    function = plain.get(attrs["function"]) or kit.function(attrs["function"])
    if keras.backend.backend() != "torch":
        function = kit.layers.Activation(function, name=kit.name(node))
    return function(x), None


def _batch_norm(kit, node, x):
    attrs = node["attrs"]
    layer = kit.layers.BatchNormalization(
        axis=kit.channels(node["shape"]), momentum=attrs["momentum"], epsilon=attrs["epsilon"], name=kit.name(node)
    )
    return layer(x), layer


def _layer_norm(kit, node, x):
    axis = kit.channels(node["shape"])
    layer = kit.layers.LayerNormalization(axis=axis, epsilon=node["attrs"]["epsilon"], name=kit.name(node))
    return layer(x), layer


def _lrn(kit, node, x):
    return kit.own["lrn"](node["attrs"], kit.channels(node["shape"]), name=kit.name(node))(x), None


def _recurrent(word, **fields):
    def make(kit, node, x):
        attrs = node["attrs"]
        functions = {
            role: kit.function(attrs[role]) for role in ("activation", "recurrent_activation") if role in attrs
        }
        layer = getattr(kit.layers, word)(
            attrs["units"], use_bias=attrs["bias"], return_sequences=attrs["all_steps"], name=kit.name(node),
            **dict(fields, **functions)
        )  # fmt: skip
        return layer(x), layer

    return make


def _attention(kit, node, x):
    attrs = node["attrs"]
    layer = kit.layers.MultiHeadAttention(
        attrs["heads"], node["shape"][-1] // attrs["heads"], use_bias=attrs["bias"], name=kit.name(node)
    )
    if kit.double and hasattr(layer, "_inverse_sqrt_key_dim"):
        # TensorFlow turns a plain Python number into single precision on its way to double.
        layer._inverse_sqrt_key_dim = np.float64(layer._inverse_sqrt_key_dim)
    if kit.double and kit.keras.backend.backend() == "jax":
        # JAX's fused attention works in single precision; the one that can show its scores does not.
        return layer(x, x, use_causal_mask=attrs["causal"], return_attention_scores=True)[0], layer
    return layer(x, x, use_causal_mask=attrs["causal"]), layer


def _add(kit, node, *inputs):
    return kit.layers.Add(name=kit.name(node))(list(inputs)), None


def _concat(kit, node, *inputs):
    if len(inputs) == 1:
        return inputs[0], None
    return kit.layers.Concatenate(axis=kit.channels(node["shape"]), name=kit.name(node))(list(inputs)), None


LAYERS = {
    "dense": _dense,
    "embedding": _embedding,
    "positions": _positions,
    "conv2d": _conv2d,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "global_avg_pool": _global_pool("Average"),
    "global_max_pool": _global_pool("Max"),
    "flatten": _flatten,
    "dropout": _dropout,
    "activation": _activation,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "lrn": _lrn,
    "rnn": _recurrent("SimpleRNN"),
    "lstm": _recurrent("LSTM"),
    "gru": _recurrent("GRU", reset_after=True),
    "attention": _attention,
    "add": _add,
    "concat": _concat,
}
