"""The layers of the network language as TensorFlow operations. TensorFlow itself comes in with the kit.

A builder takes the kit, a lowered node and the node's variables by role, and returns `call(mode, *inputs)`, which adds
the node to the graph that is being traced. Images stay in TensorFlow's own layout on the CPU, (N, H, W, C), which is
the canonical one; on a GPU TensorFlow's graph optimiser turns them as the kernels like it.
"""

import math
from collections import namedtuple

import numpy as np

from . import tensorflow_recurrent
from .base import Unsupported

Mode = namedtuple("Mode", "training update")  # whether statistics are the batch's, whether they move the kept ones


def known(table, kind, name):
    """What the table has under the name, or the word that TensorFlow doesn't have it."""
    if name not in table:
        raise Unsupported("tensorflow has no {} '{}'; it has {}".format(kind, name, ", ".join(sorted(table))))
    return table[name]


class Kit(object):
    """What builders need to know of the run. `dtype` is what layers compute in, `kept` what variables are kept in."""

    def __init__(self, tf, dtype, kept, gpu, xla, generator):
        self.tf = tf
        self.dtype = tf.as_dtype(dtype)
        self.kept = tf.as_dtype(kept)
        self.gpu = gpu
        self.xla = xla
        self.generator = generator

    def read(self, variable):
        return variable if self.dtype == self.kept else self.tf.cast(variable, self.dtype)

    def affine(self, x, kernel, bias):
        """x W + b over the last axis. One plain matrix product: the batched one has a far slower gradient."""
        tf = self.tf
        lead, width = x.shape[1:-1].as_list(), x.shape[-1]
        y = tf.matmul(tf.reshape(x, [-1, width]) if lead else x, self.read(kernel))
        if bias is not None:
            y = tf.nn.bias_add(y, self.read(bias))
        return tf.reshape(y, [-1] + lead + [kernel.shape[-1]]) if lead else y

    def function(self, attrs, field="activation"):
        return activation_function(self, {"function": attrs[field]})


# --- activations and losses -----------------------------------------------------------------------------------------


def activation_function(kit, attrs):
    tf, slope = kit.tf, attrs.get("slope", 0.01)
    table = {
        "identity": lambda x: x,
        "relu": tf.nn.relu,
        "leaky_relu": lambda x: tf.nn.leaky_relu(x, slope),
        "tanh": tf.tanh,
        "scaled_tanh": lambda x: 1.7159 * tf.tanh(x * (2.0 / 3.0)),
        "sigmoid": tf.sigmoid,
        "hard_sigmoid": lambda x: tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0),
        "softmax": tf.nn.softmax,
        "gelu": lambda x: tf.nn.gelu(x, approximate=False),
    }
    if kit.dtype == tf.float64:  # these two have their constant in single precision
        table["leaky_relu"] = lambda x: tf.where(x > 0, x, slope * x)
        table["gelu"] = lambda x: 0.5 * x * (1.0 + tf.math.erf(x * math.sqrt(0.5)))
    return known(table, "activation", attrs["function"])


def loss_function(kit, recipe):
    """loss(y, output), the mean over all entries. Computed in the precision of the variables."""
    tf = kit.tf
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    if recipe.get("labels") == "one_hot":
        cross_entropy = tf.nn.softmax_cross_entropy_with_logits
    table = {
        "cross_entropy": lambda y, z: cross_entropy(labels=y, logits=z),
        "binary_cross_entropy": lambda y, z: tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z),
        "mse": tf.math.squared_difference,
        "mae": lambda y, z: tf.abs(z - y),
    }
    entries = known(table, "loss", recipe["loss"])
    return lambda y, output: tf.reduce_mean(entries(y, tf.cast(output, kit.kept)))


def _activation(kit, node, own):
    function = activation_function(kit, node["attrs"])
    return lambda mode, x: function(x)


# --- dense layers, tables and attention -----------------------------------------------------------------------------


def _dense(kit, node, own):
    return lambda mode, x: kit.affine(x, own["kernel"], own.get("bias"))


def _embedding(kit, node, own):
    tf, table = kit.tf, own["table"]
    return lambda mode, x: tf.cast(tf.nn.embedding_lookup(table, x), kit.dtype)


def _positions(kit, node, own):
    return lambda mode, x: x + kit.read(own["table"])


def _attention(kit, node, own):
    tf, heads, (steps, width) = kit.tf, node["attrs"]["heads"], node["shape"]
    scale = 1.0 / math.sqrt(width // heads)
    hidden = None
    if node["attrs"]["causal"]:
        hidden = tf.constant(np.triu(np.full((steps, steps), -np.inf), 1), kit.dtype)

    def project(x, part):
        return kit.affine(x, own[part + "_kernel"], own.get(part + "_bias"))

    def by_head(x, part):
        return tf.transpose(tf.reshape(project(x, part), [-1, steps, heads, width // heads]), [0, 2, 1, 3])

    def call(mode, x):
        query, key, value = (by_head(x, part) for part in ("query", "key", "value"))
        scores = tf.matmul(query * scale, key, transpose_b=True)
        shares = tf.nn.softmax(scores if hidden is None else scores + hidden)
        mixed = tf.transpose(tf.matmul(shares, value), [0, 2, 1, 3])
        return project(tf.reshape(mixed, [-1, steps, width]), "output")

    return call


# --- convolution and pooling ----------------------------------------------------------------------------------------


def _same(size, window, stride):
    """The padding that TensorFlow's "SAME" stands for, along one axis."""
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return [total // 2, total - total // 2]


def _padding(node, window):
    """The word that TensorFlow has for the padding, else the explicit list."""
    pads = [list(sides) for sides in node["attrs"]["pads"]]
    if not any(map(any, pads)):
        return "VALID"
    axes = zip(node["in_shapes"][0][:2], window, node["attrs"]["stride"])
    if pads == [_same(*axis) for axis in axes]:
        return "SAME"
    return [[0, 0]] + pads + [[0, 0]]


def _conv2d(kit, node, own):
    tf, strides = kit.tf, list(node["attrs"]["stride"])
    padding = _padding(node, node["attrs"]["kernel"])

    def call(mode, x):
        y = tf.nn.conv2d(x, kit.read(own["kernel"]), strides, padding)
        return tf.nn.bias_add(y, kit.read(own["bias"])) if "bias" in own else y

    return call


def _max_pool(kit, node, own):
    tf, window, strides = kit.tf, list(node["attrs"]["window"]), list(node["attrs"]["stride"])
    padding = _padding(node, window)
    if kit.xla and not isinstance(padding, str):  # XLA has no explicit padding in its pooling
        return lambda mode, x: tf.nn.max_pool2d(tf.pad(x, padding, constant_values=-np.inf), window, strides, "VALID")
    return lambda mode, x: tf.nn.max_pool2d(x, window, strides, padding)


def _avg_pool(kit, node, own):
    tf, window, strides = kit.tf, list(node["attrs"]["window"]), list(node["attrs"]["stride"])
    padding = _padding(node, window)
    if isinstance(padding, str):  # the mean leaves out the padding of "SAME" by itself
        return lambda mode, x: tf.nn.avg_pool2d(x, window, strides, padding)
    share = tf.constant(_real_share(node), kit.dtype)
    return lambda mode, x: tf.nn.avg_pool2d(tf.pad(x, padding), window, strides, "VALID") / share


def _real_share(node):
    """The part of each window that does not lie on padding, (rows, columns, 1)."""
    attrs, axes = node["attrs"], []
    for i, places in enumerate(node["shape"][:2]):
        starts = np.arange(places) * attrs["stride"][i] - attrs["pads"][i][0]
        ends = np.minimum(starts + attrs["window"][i], node["in_shapes"][0][i])
        axes.append((ends - np.maximum(starts, 0)) / float(attrs["window"][i]))
    return np.outer(*axes)[:, :, None]


def _over_places(reduction):
    def build(kit, node, own):
        axes = list(range(1, len(node["in_shapes"][0])))
        return lambda mode, x: getattr(kit.tf, reduction)(x, axis=axes)

    return build


# --- normalisation --------------------------------------------------------------------------------------------------


def _batch_norm(kit, node, own):
    """Statistics by the fused kernel, which has no double precision; there by plain operations."""
    tf, attrs = kit.tf, node["attrs"]
    normalise = _plain_batch_norm if kit.dtype == tf.float64 else _fused_batch_norm
    normalise = normalise(kit, own, attrs["epsilon"])

    def move(role, value):
        own[role].assign_sub((own[role] - value) * (1.0 - attrs["momentum"]))

    def call(mode, x):
        y, mean, variance = normalise(x, mode.training)
        if mode.training and mode.update:
            move("mean", mean)
            move("variance", variance)
        return y

    return call


def _fused_batch_norm(kit, own, epsilon):
    tf = kit.tf

    def normalise(x, training):
        image = x if x.shape.rank == 4 else tf.reshape(x, [-1, 1, 1, x.shape[-1]])
        kept = [tf.zeros([0]), tf.zeros([0])] if training else [own["mean"], own["variance"]]
        y, mean, variance = tf.raw_ops.FusedBatchNormV3(
            x=image, scale=own["gamma"], offset=own["beta"], mean=kept[0], variance=kept[1],
            epsilon=epsilon, is_training=training,
        )[:3]  # fmt: skip
        count = float(x.shape.num_elements() // x.shape[-1])
        # The kernel hands on the variance with N - 1; the language keeps the one with N.
        return (y if image is x else tf.reshape(y, tf.shape(x))), mean, variance * ((count - 1.0) / count)

    return normalise


def _plain_batch_norm(kit, own, epsilon):
    tf = kit.tf

    def normalise(x, training):
        mean, variance = own["mean"], own["variance"]
        if training:
            mean, variance = tf.nn.moments(x, list(range(x.shape.rank - 1)))
        return tf.nn.batch_normalization(x, mean, variance, own["beta"], own["gamma"], epsilon), mean, variance

    return normalise


def _layer_norm(kit, node, own):
    tf, epsilon = kit.tf, node["attrs"]["epsilon"]

    def call(mode, x):
        wide = tf.cast(x, kit.kept)
        mean, variance = tf.nn.moments(wide, [-1], keepdims=True)
        y = tf.nn.batch_normalization(wide, mean, variance, own["beta"], own["gamma"], epsilon)
        return tf.cast(y, kit.dtype)

    return call


def _lrn(kit, node, own):
    tf, attrs = kit.tf, node["attrs"]
    radius, bias, alpha, beta = (attrs[field] for field in ("radius", "bias", "alpha", "beta"))
    if kit.kept == tf.float32:  # the kernel is for single precision only

        def call(mode, x):
            y = tf.nn.local_response_normalization(tf.cast(x, kit.kept), radius, bias, alpha, beta)
            return tf.cast(y, kit.dtype)

        return call
    channels = np.arange(node["shape"][-1])
    near = tf.constant(np.abs(channels[:, None] - channels) <= radius, kit.dtype)
    return lambda mode, x: x / (bias + alpha * tf.tensordot(tf.square(x), near, 1)) ** beta


# --- layers that move, drop or join numbers -------------------------------------------------------------------------


def _flatten(kit, node, own):
    return lambda mode, x: kit.tf.reshape(x, [-1, node["shape"][0]])


def _dropout(kit, node, own):
    tf, rate = kit.tf, node["attrs"]["rate"]

    def call(mode, x):
        if not mode.training or not rate:
            return x
        # The generator's state is a variable, so that a new seed needs no new graph.
        return tf.nn.experimental.general_dropout(x, rate, uniform_sampler=kit.generator.uniform)

    return call


def _add(kit, node, own):
    return lambda mode, *inputs: inputs[0] + inputs[1] if len(inputs) == 2 else kit.tf.add_n(inputs)


def _concat(kit, node, own):
    return lambda mode, *inputs: kit.tf.concat(inputs, -1)


LAYERS = {
    "activation": _activation,
    "add": _add,
    "attention": _attention,
    "avg_pool": _avg_pool,
    "batch_norm": _batch_norm,
    "concat": _concat,
    "conv2d": _conv2d,
    "dense": _dense,
    "dropout": _dropout,
    "embedding": _embedding,
    "flatten": _flatten,
    "global_avg_pool": _over_places("reduce_mean"),
    "global_max_pool": _over_places("reduce_max"),
    "gru": tensorflow_recurrent.gru,
    "layer_norm": _layer_norm,
    "lrn": _lrn,
    "lstm": tensorflow_recurrent.lstm,
    "max_pool": _max_pool,
    "positions": _positions,
    "rnn": tensorflow_recurrent.rnn,
}
