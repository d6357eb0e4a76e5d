"""Nodes of the lowered network as Keras 2 layers: one small function an operation, in the backend's native layout.

Built-in layers wherever they mean the same. What Keras 2 lacks, or means otherwise, is a layer of `keras2_own`.
"""

import re
from collections import OrderedDict

from . import keras2_layout as layout
from .base import Unsupported
from .flat_orders import AS_IS, flat_orders
from .keras2_own import own_layers

# Where a built-in layer keeps the parameters of a node, by role.
HOMES = {
    "table": ("embeddings", "table"),
    "recurrent": ("recurrent_kernel",),
    "mean": ("moving_mean",),
    "variance": ("moving_variance",),
}


class Builder(object):
    """Holds the imported Keras and our own layers; called once a node, with the node and its symbolic inputs."""

    def __init__(self, keras, ops, lacking):
        self.keras, self.K, self.layers, self.ops = keras, keras.backend, keras.layers, ops
        self.backend, self.lacking = self.K.backend(), lacking
        self.double = self.K.floatx() == "float64"
        self.first = self.K.image_data_format() == "channels_first"
        self.own = own_layers(self)
        self._count = 0

    def __call__(self, node, inputs, order):
        """(output, the layer that holds the node's parameters)."""
        make = LAYERS.get(node["op"])
        if make is None:
            raise Unsupported("Keras 2 has no layer {!r}: leave it out, or use another engine".format(node["op"]))
        if node["op"] in self.lacking:
            message = "Keras 2 on {} has no layer {!r} ({}): leave it out, or use another engine"
            raise Unsupported(message.format(self.backend, node["op"], self.lacking[node["op"]]))
        self._count += 1
        return make(self, node, order, *inputs)

    def name(self, node, part=""):
        """Layer names are scopes and groups of files: no other characters, and unique."""
        return "n{}_{}{}".format(self._count, re.sub(r"\W", "_", node["name"]), part)

    def image_axes(self, spatial, channel):
        """What holds for rows, columns and channels, in the order in which they lie."""
        return [channel] + list(spatial) if self.first else list(spatial) + [channel]

    def reshape(self, values, shape):
        return self.ops.C.reshape(values, shape) if self.backend == "cntk" else self.K.reshape(values, shape)

    def function(self, name):
        activations, K = self.keras.activations, self.K
        functions = {
            "identity": activations.linear,
            "relu": activations.relu,
            "tanh": activations.tanh,
            "sigmoid": activations.sigmoid,
            "softmax": activations.softmax,
            "gelu": lambda x: 0.5 * x * (1.0 + self.ops.erf(x * 0.5**0.5)),
            "leaky_relu": lambda x: K.relu(x, alpha=0.01),
            "hard_sigmoid": lambda x: K.clip(0.2 * x + 0.5, 0.0, 1.0),
            "scaled_tanh": lambda x: 1.7159 * K.tanh(x * (2.0 / 3.0)),
        }
        if name not in functions:
            message = "Keras 2 has no activation {!r}: use one of {}"
            raise Unsupported(message.format(name, ", ".join(sorted(functions))))
        return functions[name]


# --- padding --------------------------------------------------------------------------------------------------------


def _padding(kit, node, window, stride, pooling=False):
    """Keras' own word for the node's resolved padding on this backend, or None where it has none."""
    pads = [tuple(side) for side in node["attrs"]["pads"]]
    if not any(pads[0] + pads[1]):
        return "valid"
    sizes = node["in_shapes"][0][:2]
    if kit.backend == "tensorflow":
        return "same" if pads == [_same(*axis) for axis in zip(sizes, window, stride)] else None
    if any(size % 2 == 0 or pad != (size // 2, size // 2) for size, pad in zip(window, pads)):
        return None
    # Theano pads half a window on both sides whatever the stride, but for pooling only with a window of three; CNTK's
    # padding depends on the stride.
    strides_fit = kit.backend == "theano" or all(step == 1 for step in stride)
    return "same" if strides_fit and (not pooling or all(size == 3 for size in window)) else None


def _same(size, window, stride):
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def _pooling(kit, node):
    attrs = node["attrs"]
    window, stride = tuple(attrs["window"]), tuple(attrs["stride"])
    return {"pool_size": window, "strides": stride}, _padding(kit, node, window, stride, pooling=True)


# --- one function an operation --------------------------------------------------------------------------------------


def _dense(kit, node, order, x):
    layer = kit.layers.Dense(node["attrs"]["units"], use_bias=node["attrs"]["bias"], name=kit.name(node))
    return layer(x), layer


def _embedding(kit, node, order, x):
    layer = kit.layers.Embedding(node["attrs"]["vocabulary"], node["attrs"]["units"], name=kit.name(node))
    return layer(x), layer


def _positions(kit, node, order, x):
    layer = kit.own["positions"](name=kit.name(node))
    return layer(x), layer


def _conv2d(kit, node, order, x):
    attrs = node["attrs"]
    kernel, stride = tuple(attrs["kernel"]), tuple(attrs["stride"])
    padding = _padding(kit, node, kernel, stride)
    if padding is None:
        pads = tuple(tuple(side) for side in attrs["pads"])
        x = kit.layers.ZeroPadding2D(pads, name=kit.name(node, "_pad"))(x)
    layer = kit.layers.Conv2D(
        attrs["filters"], kernel, strides=stride, padding=padding or "valid", use_bias=attrs["bias"],
        name=kit.name(node),
    )  # fmt: skip
    return layer(x), layer


def _max_pool(kit, node, order, x):
    fields, padding = _pooling(kit, node)
    if padding is None:
        x = kit.own["padding"](node["attrs"]["pads"], -float("inf"), name=kit.name(node, "_pad"))(x)
    return kit.layers.MaxPooling2D(padding=padding or "valid", name=kit.name(node), **fields)(x), None


def _avg_pool(kit, node, order, x):
    fields, padding = _pooling(kit, node)
    if padding is not None:
        return kit.layers.AveragePooling2D(padding=padding, name=kit.name(node), **fields)(x), None
    x = kit.layers.ZeroPadding2D(tuple(map(tuple, node["attrs"]["pads"])), name=kit.name(node, "_pad"))(x)
    x = kit.layers.AveragePooling2D(padding="valid", name=kit.name(node), **fields)(x)
    return kit.own["avg_pool"](node["attrs"], node["in_shapes"][0], name=kit.name(node, "_borders"))(x), None


def _global_pool(word):
    def make(kit, node, order, x):
        dimensions = len(node["in_shapes"][0]) - 1
        fields = {} if dimensions == 2 else {"data_format": "channels_last"}
        layer = getattr(kit.layers, "Global{}Pooling{}D".format(word, dimensions))
        return layer(name=kit.name(node), **fields)(x), None

    return make


def _flatten(kit, node, order, x):
    """Told that channels come first, Keras brings them to the end before it flattens. Where a dense kernel can take
    the numbers as they lie, it is told otherwise."""
    moves = kit.first and len(node["in_shapes"][0]) == 3 and order is AS_IS
    words = "channels_first" if moves else "channels_last"
    return kit.layers.Flatten(data_format=words, name=kit.name(node))(x), None


def _dropout(kit, node, order, x):
    return kit.layers.Dropout(node["attrs"]["rate"], name=kit.name(node))(x), None


def _activation(kit, node, order, x):
    attrs = node["attrs"]
    if attrs["function"] == "leaky_relu":
        return kit.layers.LeakyReLU(alpha=attrs["slope"], name=kit.name(node))(x), None
    layer = kit.layers.Activation(kit.function(attrs["function"]), name=kit.name(node))
    if attrs["function"] == "softmax" and kit.first and len(node["shape"]) == 3:
        last = layer(kit.layers.Permute((2, 3, 1), name=kit.name(node, "_last"))(x))
        return kit.layers.Permute((3, 1, 2), name=kit.name(node, "_first"))(last), None
    return layer(x), None


def _channel_axis(kit, node):
    return 1 if kit.first and len(node["shape"]) == 3 else -1


def _batch_norm(kit, node, order, x):
    attrs = node["attrs"]
    layer = kit.own["batch_norm"](
        axis=_channel_axis(kit, node), momentum=attrs["momentum"], epsilon=attrs["epsilon"], name=kit.name(node)
    )
    return layer(x), layer


def _layer_norm(kit, node, order, x):
    layer = kit.own["layer_norm"](node["attrs"]["epsilon"], _channel_axis(kit, node), name=kit.name(node))
    return layer(x), layer


def _lrn(kit, node, order, x):
    return kit.own["lrn"](node["attrs"], name=kit.name(node))(x), None


def _recurrent(word, **fields):
    def make(kit, node, order, x):
        attrs = node["attrs"]
        functions = {
            role: kit.function(attrs[role]) for role in ("activation", "recurrent_activation") if role in attrs
        }
        options = dict(fields, use_bias=attrs["bias"], **functions)
        returned = {"return_sequences": attrs["all_steps"], "name": kit.name(node)}
        if word == "LSTM" and kit.backend == "cntk":
            layer = kit.layers.RNN(kit.own["lstm_cell"](attrs["units"], **options), **returned)
        else:
            layer = getattr(kit.layers, word)(attrs["units"], **dict(options, **returned))
        return layer(x), layer.cell

    return make


def _attention(kit, node, order, x):
    attrs = node["attrs"]
    layer = kit.own["attention"](attrs["heads"], attrs["causal"], attrs["bias"], name=kit.name(node))
    return layer(x), layer


def _add(kit, node, order, *inputs):
    return kit.layers.Add(name=kit.name(node))(list(inputs)), None


def _concat(kit, node, order, *inputs):
    if len(inputs) == 1:
        return inputs[0], None
    return kit.layers.Concatenate(axis=_channel_axis(kit, node), name=kit.name(node))(list(inputs)), None


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


# --- the graph --------------------------------------------------------------------------------------------------------


def make_nodes(keras, ops, network, lacking):
    """(symbolic input, {node: symbolic output}, [Slot of each parameter], {node: Order})."""
    kit, spec = Builder(keras, ops, lacking), network["input"]
    shape = tuple(spec["shape"])
    shape = (shape[2],) + shape[:2] if kit.first and len(shape) == 3 else shape
    inputs = keras.layers.Input(shape=shape, dtype="int32" if spec["tokens"] else keras.backend.floatx(), name="input")
    orders = flat_orders(network) if kit.first else {}
    found, slots = OrderedDict([("input", inputs)]), []
    for node in network["nodes"]:
        ordered = orders.get(node["name"] if node["op"] == "flatten" else node["inputs"][0], AS_IS)
        found[node["name"]], layer = kit(node, [found[name] for name in node["inputs"]], ordered)
        slots += [_slot(kit, node, parameter, layer, ordered) for parameter in node["parameters"]]
    del found["input"]
    return inputs, found, slots, orders


# The roles whose first axis holds the node's channels, in the order in which they lie.
_ORDERED = ("kernel", "gamma", "beta", "mean", "variance")


def _slot(kit, node, parameter, layer, order):
    role = parameter["role"]
    home = next(name for name in HOMES.get(role, (role,)) if hasattr(layer, name))
    if node["op"] == "conv2d":  # Theano's convolution is the mathematicians', which turns the kernel around
        order = layout.TURNED if kit.backend == "theano" else AS_IS
    return layout.Slot(
        parameter["name"], getattr(layer, home), parameter["shape"], order if role in _ORDERED else AS_IS
    )
