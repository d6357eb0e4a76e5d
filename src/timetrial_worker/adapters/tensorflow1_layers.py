"""The layers of the network language as operations of a TensorFlow 1 graph. TensorFlow itself comes in with the kit.

A builder takes the kit, a lowered node, the node's variables by role, the mode and the inputs, and adds the node to the
graph. Images are (N, H, W, C), TensorFlow's own layout on the CPU and the canonical one.
"""

import math
from collections import namedtuple

import numpy as np

from . import tensorflow1_recurrent
from .base import Unsupported

Mode = namedtuple("Mode", "training updates")  # `updates` collects what moves the kept statistics


def known(table, kind, name):
    """What the table has under the name, or the word that TensorFlow doesn't have it."""
    if name not in table:
        raise Unsupported("tensorflow1 has no {} '{}'; it has {}".format(kind, name, ", ".join(sorted(table))))
    return table[name]


class Kit(object):
    """What builders need to know of the run. `draws` is how many nodes draw random numbers."""

    def __init__(self, tf, dtype, seed, step_count):
        self.tf, self.dtype = tf, dtype
        self.seed, self.step_count, self.draws = seed, step_count, 0

    def affine(self, x, kernel, bias, shape):
        """x W + b over the last axis of x, whose samples are of this shape. One plain matrix product: the batched one
        has a far slower gradient. The axis that is left open may be any of the leading ones."""
        tf, lead = self.tf, len(shape) - 1
        y = tf.matmul(tf.reshape(x, [-1, shape[-1]]) if lead else x, kernel)
        if bias is not None:
            y = tf.nn.bias_add(y, bias)
        if not lead:
            return y
        units = int(kernel.shape[-1])
        y = tf.reshape(y, tf.concat([tf.shape(x)[:-1], [units]], 0))
        y.set_shape(x.shape[:-1].concatenate([units]))
        return y

    def function(self, attrs, field="activation"):
        return activation_function(self, {"function": attrs[field]})

    def uniform(self, shape):
        """Numbers in [0, 1) that depend on the seed, the drawing node and the step, and on nothing else: the usual
        operation has its state in the session, where it can't be set back."""
        tf = self.tf
        newer = getattr(tf, "random", None)
        draw = getattr(newer, "stateless_uniform", None) or tf.contrib.stateless.stateless_random_uniform
        self.draws += 1
        return draw(shape, tf.stack([self.seed * 1009 + self.draws, self.step_count]), dtype=self.dtype)


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
        "gelu": lambda x: 0.5 * x * (1.0 + tf.erf(x * math.sqrt(0.5))),
    }
    if kit.dtype == tf.float64:  # the built-in has its slope in single precision
        table["leaky_relu"] = lambda x: tf.where(x > 0, x, slope * x)
    return known(table, "activation", attrs["function"])


def loss_function(kit, recipe):
    """loss(y, output), the mean over all entries."""
    tf = kit.tf
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    if recipe.get("labels") == "one_hot":
        cross_entropy = tf.nn.softmax_cross_entropy_with_logits_v2
    table = {
        "cross_entropy": lambda y, z: cross_entropy(labels=y, logits=z),
        "binary_cross_entropy": lambda y, z: tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z),
        "mse": tf.squared_difference,
        "mae": lambda y, z: tf.abs(z - y),
    }
    entries = known(table, "loss", recipe["loss"])
    return lambda y, output: tf.reduce_mean(entries(y, output))


def _activation(kit, node, own, mode, x):
    return activation_function(kit, node["attrs"])(x)


# --- dense layers, tables and attention -----------------------------------------------------------------------------


def _dense(kit, node, own, mode, x):
    return kit.affine(x, own["kernel"], own.get("bias"), node["in_shapes"][0])


def _embedding(kit, node, own, mode, x):
    return kit.tf.nn.embedding_lookup(own["table"], x)


def _positions(kit, node, own, mode, x):
    return x + own["table"]


def _attention(kit, node, own, mode, x):
    tf, heads, (steps, width) = kit.tf, node["attrs"]["heads"], node["shape"]

    def project(x, part):
        return kit.affine(x, own[part + "_kernel"], own.get(part + "_bias"), (steps, width))

    def by_head(part):
        return tf.transpose(tf.reshape(project(x, part), [-1, steps, heads, width // heads]), [0, 2, 1, 3])

    query, key, value = (by_head(part) for part in ("query", "key", "value"))
    scores = tf.matmul(query * (1.0 / math.sqrt(width // heads)), key, transpose_b=True)
    if node["attrs"]["causal"]:
        scores += tf.constant(np.triu(np.full((steps, steps), -np.inf), 1), kit.dtype)
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return project(tf.reshape(mixed, [-1, steps, width]), "output")


# --- convolution and pooling ----------------------------------------------------------------------------------------


def _same(size, window, stride):
    """The padding that TensorFlow's "SAME" stands for, along one axis."""
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return [total // 2, total - total // 2]


def _padded(kit, node, window, x, value=0.0):
    """(x, the word for its padding): padding without a word is written out, as these operations only take words."""
    pads = [list(sides) for sides in node["attrs"]["pads"]]
    if not any(map(any, pads)):
        return x, "VALID"
    if pads == [_same(*axis) for axis in zip(node["in_shapes"][0][:2], window, node["attrs"]["stride"])]:
        return x, "SAME"
    return kit.tf.pad(x, [[0, 0]] + pads + [[0, 0]], constant_values=value), "VALID"


def _four(pair):
    return [1] + list(pair) + [1]


def _conv2d(kit, node, own, mode, x):
    attrs = node["attrs"]
    x, padding = _padded(kit, node, attrs["kernel"], x)
    y = kit.tf.nn.conv2d(x, own["kernel"], _four(attrs["stride"]), padding)
    return kit.tf.nn.bias_add(y, own["bias"]) if "bias" in own else y


def _max_pool(kit, node, own, mode, x):
    attrs = node["attrs"]
    x, padding = _padded(kit, node, attrs["window"], x, kit.dtype.min)
    return kit.tf.nn.max_pool(x, _four(attrs["window"]), _four(attrs["stride"]), padding)


def _avg_pool(kit, node, own, mode, x):
    attrs = node["attrs"]
    inner, padding = _padded(kit, node, attrs["window"], x)
    y = kit.tf.nn.avg_pool(inner, _four(attrs["window"]), _four(attrs["stride"]), padding)
    # The mean leaves out the padding of "SAME" by itself, but not what was written out.
    return y if inner is x else y / kit.tf.constant(_real_share(node), kit.dtype)


def _real_share(node):
    """The part of each window that does not lie on padding, (rows, columns, 1)."""
    attrs, axes = node["attrs"], []
    for i, places in enumerate(node["shape"][:2]):
        starts = np.arange(places) * attrs["stride"][i] - attrs["pads"][i][0]
        ends = np.minimum(starts + attrs["window"][i], node["in_shapes"][0][i])
        axes.append((ends - np.maximum(starts, 0)) / float(attrs["window"][i]))
    return np.outer(*axes)[:, :, None]


def _over_places(reduction):
    def build(kit, node, own, mode, x):
        return getattr(kit.tf, reduction)(x, axis=list(range(1, len(node["in_shapes"][0]))))

    return build


# --- normalisation --------------------------------------------------------------------------------------------------


def _batch_norm(kit, node, own, mode, x):
    """Statistics by the fused kernel, which has no double precision; there by plain operations."""
    attrs = node["attrs"]
    normalise = _plain_batch_norm if kit.dtype == kit.tf.float64 else _fused_batch_norm
    y, mean, variance = normalise(kit, own, attrs["epsilon"], x, mode.training)
    if mode.training:
        for role, value in (("mean", mean), ("variance", variance)):
            moved = own[role].assign_sub((own[role] - value) * (1.0 - attrs["momentum"]))
            mode.updates.append(moved.op)
    return y


def _fused_batch_norm(kit, own, epsilon, x, training):
    tf, width = kit.tf, int(x.shape[-1])
    image = x if x.shape.ndims == 4 else tf.reshape(x, [-1, 1, 1, width])
    kept = {} if training else {"mean": own["mean"], "variance": own["variance"]}
    y, mean, variance = tf.nn.fused_batch_norm(
        image, own["gamma"], own["beta"], epsilon=epsilon, is_training=training, **kept
    )
    if image is not x:
        y = tf.reshape(y, tf.shape(x))
        y.set_shape(x.shape)
    if training:  # the kernel hands on the variance with N - 1; the language keeps the one with N
        count = tf.cast(tf.size(x) // width, kit.dtype)
        variance = variance * ((count - 1.0) / count)
    return y, mean, variance


def _plain_batch_norm(kit, own, epsilon, x, training):
    tf, mean, variance = kit.tf, own["mean"], own["variance"]
    if training:
        mean, variance = tf.nn.moments(x, list(range(x.shape.ndims - 1)))
    return tf.nn.batch_normalization(x, mean, variance, own["beta"], own["gamma"], epsilon), mean, variance


def _layer_norm(kit, node, own, mode, x):
    tf = kit.tf
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, own["beta"], own["gamma"], node["attrs"]["epsilon"])


def _lrn(kit, node, own, mode, x):
    tf, attrs = kit.tf, node["attrs"]
    radius, bias, alpha, beta = (attrs[field] for field in ("radius", "bias", "alpha", "beta"))
    if kit.dtype == tf.float32:  # the kernel is for single precision only
        return tf.nn.local_response_normalization(x, radius, bias, alpha, beta)
    channels = np.arange(node["shape"][-1])
    near = tf.constant(np.abs(channels[:, None] - channels) <= radius, kit.dtype)
    return x / (bias + alpha * tf.tensordot(tf.square(x), near, 1)) ** beta


# --- layers that move, drop or join numbers -------------------------------------------------------------------------


def _flatten(kit, node, own, mode, x):
    return kit.tf.reshape(x, [-1, node["shape"][0]])


def _dropout(kit, node, own, mode, x):
    rate = node["attrs"]["rate"]
    if not mode.training or not rate:
        return x
    tf = kit.tf
    return x * (1.0 / (1.0 - rate)) * tf.cast(kit.uniform(tf.shape(x)) >= rate, kit.dtype)


def _add(kit, node, own, mode, *inputs):
    return inputs[0] + inputs[1] if len(inputs) == 2 else kit.tf.add_n(list(inputs))


def _concat(kit, node, own, mode, *inputs):
    return kit.tf.concat(list(inputs), -1)


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
    "gru": tensorflow1_recurrent.gru,
    "layer_norm": _layer_norm,
    "lrn": _lrn,
    "lstm": tensorflow1_recurrent.lstm,
    "max_pool": _max_pool,
    "positions": _positions,
    "rnn": tensorflow1_recurrent.rnn,
}
