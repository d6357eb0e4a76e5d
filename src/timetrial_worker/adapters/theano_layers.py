"""The layers of the network language as Theano expressions. Theano itself comes in with the kit.

A builder takes the kit, a lowered node, the node's shared variables by role, the mode and the inputs, and returns the
node's expression. Images are (N, C, H, W), Theano's own layout. All gradients are Theano's own, so what has a kink is
written such that its slope there is the language's: `T.nnet.relu` has one half at zero. A product with the condition
has none, and unlike `T.switch` it is compiled without a jump for each number: a fifth of a perceptron's step.
"""

import math
from collections import namedtuple

import numpy as np

from . import theano_recurrent
from .base import Unsupported

Mode = namedtuple("Mode", "training updates")  # `updates` collects what moves the kept statistics


def known(table, kind, name):
    """What the table has under the name, or the word that Theano doesn't have it."""
    if name not in table:
        raise Unsupported("theano has no {} '{}'; it has {}".format(kind, name, ", ".join(sorted(table))))
    return table[name]


class Kit(object):
    """What builders need to know of the run. `random` is the stream that dropout draws from."""

    def __init__(self, theano, precision, random, ordered):
        import theano.tensor
        import theano.tensor.nnet.bn
        import theano.tensor.signal.pool

        self.theano, self.T, self.nnet = theano, theano.tensor, theano.tensor.nnet
        self.pool = theano.tensor.signal.pool
        self.precision, self.random = precision, random
        self.ordered = ordered  # the flat tensors that stay as channels first had them

    def number(self, value):
        """A constant of the run's precision: a bare double would make everything it touches one."""
        return np.asarray(value, self.precision)

    def affine(self, x, kernel, bias, width):
        """x W + b over the last axis, as one plain matrix product; x has any number of axes before it."""
        flat = x if x.ndim == 2 else x.reshape((-1, width))
        y = self.T.dot(flat, kernel)
        if bias is not None:
            y = y + bias
        if x.ndim == 2:
            return y
        lead = [x.shape[i] for i in range(x.ndim - 1)]
        return y.reshape(lead + [kernel.shape[1]], ndim=x.ndim)

    def over_channels(self, function, x):
        """A function of rows, applied to x along its channels."""
        if x.ndim == 2:
            return function(x)
        order = (0, 2, 3, 1) if x.ndim == 4 else tuple(range(x.ndim))
        last = x.dimshuffle(order)
        y = function(last.reshape((-1, last.shape[x.ndim - 1]))).reshape(last.shape, ndim=x.ndim)
        return y.dimshuffle(0, 3, 1, 2) if x.ndim == 4 else y

    def function(self, attrs, field="activation"):
        return activation_function(self, {"function": attrs[field]})


# --- activations and losses -----------------------------------------------------------------------------------------


def activation_function(kit, attrs):
    T, number, slope = kit.T, kit.number, attrs.get("slope", 0.01)
    table = {
        "identity": lambda x: x,
        "relu": lambda x: x * T.cast(x > 0, kit.precision),
        "leaky_relu": lambda x: T.switch(x > 0, x, number(slope) * x),
        "tanh": T.tanh,
        "scaled_tanh": lambda x: number(1.7159) * T.tanh(x * number(2.0 / 3.0)),
        "sigmoid": kit.nnet.sigmoid,
        "hard_sigmoid": lambda x: T.clip(number(0.2) * x + number(0.5), number(0), number(1)),
        "softmax": lambda x: kit.over_channels(kit.nnet.softmax, x),
        "gelu": lambda x: number(0.5) * x * (number(1) + T.erf(x * number(math.sqrt(0.5)))),
    }
    return known(table, "activation", attrs["function"])


def loss_function(kit, recipe):
    """loss(y, output), the mean over all entries. Theano's optimiser joins logarithm and softmax, so none overflows."""

    def cross_entropy(y, z):
        rows = z if z.ndim == 2 else z.reshape((-1, z.shape[z.ndim - 1]))
        return kit.nnet.categorical_crossentropy(kit.nnet.softmax(rows), y.flatten())

    def cross_entropy_of_shares(y, z):
        rows = z if z.ndim == 2 else z.reshape((-1, z.shape[z.ndim - 1]))
        return -(y.reshape(rows.shape) * kit.nnet.logsoftmax(rows)).sum(axis=1)

    table = {
        "cross_entropy": cross_entropy_of_shares if recipe.get("labels") == "one_hot" else cross_entropy,
        "binary_cross_entropy": lambda y, z: kit.nnet.softplus(z) - z * y,
        "mse": lambda y, z: kit.T.sqr(z - y),
        "mae": lambda y, z: abs(z - y),
    }
    entries = known(table, "loss", recipe["loss"])
    return lambda y, output: entries(y, output).mean(dtype=kit.precision)


def _activation(kit, node, own, mode, x):
    return activation_function(kit, node["attrs"])(x)


# --- dense layers, tables and attention -----------------------------------------------------------------------------


def _dense(kit, node, own, mode, x):
    return kit.affine(x, own["kernel"], own.get("bias"), node["in_shapes"][0][-1])


def _embedding(kit, node, own, mode, x):
    return own["table"][x.flatten()].reshape((x.shape[0], x.shape[1], own["table"].shape[1]))


def _positions(kit, node, own, mode, x):
    return x + own["table"]


def _attention(kit, node, own, mode, x):
    T, heads, (steps, width) = kit.T, node["attrs"]["heads"], node["shape"]
    each = width // heads

    def project(x, part):
        return kit.affine(x, own[part + "_kernel"], own.get(part + "_bias"), width)

    def by_head(part):
        """(samples x heads, steps, width of a head)"""
        split = project(x, part).reshape((-1, steps, heads, each)).dimshuffle(0, 2, 1, 3)
        return split.reshape((-1, steps, each))

    query, key, value = (by_head(part) for part in ("query", "key", "value"))
    scores = T.batched_dot(query * kit.number(1.0 / math.sqrt(each)), key.dimshuffle(0, 2, 1))
    if node["attrs"]["causal"]:
        scores = scores + kit.number(np.triu(np.full((steps, steps), -np.inf), 1))
    shares = kit.nnet.softmax(scores.reshape((-1, steps))).reshape((-1, steps, steps))
    mixed = T.batched_dot(shares, value).reshape((-1, heads, steps, each)).dimshuffle(0, 2, 1, 3)
    return project(mixed.reshape((-1, steps, width)), "output")


# --- convolution and pooling ----------------------------------------------------------------------------------------


def _conv2d(kit, node, own, mode, x):
    """`filter_flip=False`: a cross-correlation, as in the language, where Theano means the mathematician's word."""
    attrs, (height, width, channels) = node["attrs"], node["in_shapes"][0]
    border = tuple(tuple(sides) for sides in attrs["pads"]) if np.any(attrs["pads"]) else "valid"
    y = kit.nnet.conv2d(
        x, own["kernel"], (None, channels, height, width), (attrs["filters"], channels) + tuple(attrs["kernel"]),
        border_mode=border, subsample=tuple(attrs["stride"]),
        filter_flip=False,
    )  # fmt: skip
    return y + own["bias"].dimshuffle("x", 0, "x", "x") if "bias" in own else y


def _pool_options(kit, node):
    """Theano's arguments with which its windows are the network's, or None: it pads both sides alike, or, where
    there is no padding before, may let the last window reach over the border."""
    attrs, size = node["attrs"], tuple(node["in_shapes"][0][:2])
    window, stride = tuple(attrs["window"]), tuple(attrs["stride"])
    before = tuple(sides[0] for sides in attrs["pads"])
    for ignore, pad in ((True, before), (False, (0, 0))):
        if pad != before or any(p >= w for p, w in zip(pad, window)):
            continue
        if list(kit.pool.Pool.out_shape(size, window, ignore, stride, pad)) == list(node["shape"][:2]):
            return {"ws": window, "stride": stride, "pad": pad, "ignore_border": ignore}
    return None


def _padded(kit, node, x, value):
    (top, bottom), (left, right) = node["attrs"]["pads"]
    height, width, channels = node["in_shapes"][0]
    room = kit.T.alloc(kit.number(value), x.shape[0], channels, top + height + bottom, left + width + right)
    return kit.T.set_subtensor(room[:, :, top : top + height, left : left + width], x)


def _unpadded_options(node):
    return {"ws": tuple(node["attrs"]["window"]), "stride": tuple(node["attrs"]["stride"]), "ignore_border": True}


def _max_pool(kit, node, own, mode, x):
    options = _pool_options(kit, node)
    if options is None:
        x, options = _padded(kit, node, x, -np.inf), _unpadded_options(node)
    return kit.pool.pool_2d(x, mode="max", **options)


def _avg_pool(kit, node, own, mode, x):
    """The mean of the real values, as `average_exc_pad` has it; but that has no gradient where there is padding."""
    options = _pool_options(kit, node)
    if options is not None and not any(options["pad"]):
        return kit.pool.pool_2d(x, mode="average_exc_pad", **options)
    if options is None:
        x, options = _padded(kit, node, x, 0), _unpadded_options(node)
    return kit.pool.pool_2d(x, mode="sum", **options) * kit.number(1.0 / _real_places(node))


def _real_places(node):
    """How many places of each window do not lie on padding, (rows, columns)."""
    attrs, axes = node["attrs"], []
    for i, places in enumerate(node["shape"][:2]):
        starts = np.arange(places) * attrs["stride"][i] - attrs["pads"][i][0]
        ends = np.minimum(starts + attrs["window"][i], node["in_shapes"][0][i])
        axes.append(ends - np.maximum(starts, 0))
    return np.outer(*axes).astype(float)


def _places(x):
    """The axes that are neither samples nor channels."""
    return (2, 3) if x.ndim == 4 else tuple(range(1, x.ndim - 1))


def _global_avg_pool(kit, node, own, mode, x):
    return x.mean(axis=_places(x), dtype=kit.precision)


def _global_max_pool(kit, node, own, mode, x):
    return x.max(axis=_places(x))


# --- normalisation --------------------------------------------------------------------------------------------------


def _batch_norm(kit, node, own, mode, x):
    attrs, bn, axes = node["attrs"], kit.nnet.bn, (0,) + _places(x)
    epsilon = _least_epsilon(kit, attrs["epsilon"])
    if not mode.training:
        kept = own["gamma"], own["beta"], own["mean"], own["variance"]
        return bn.batch_normalization_test(x, *kept, axes=axes, epsilon=epsilon)
    y, _, _, mean, variance = bn.batch_normalization_train(
        x, own["gamma"], own["beta"], axes, epsilon,
        1.0 - attrs["momentum"], own["mean"], own["variance"],
    )  # fmt: skip
    mode.updates.extend([(own["mean"], mean), (own["variance"], variance)])
    return y


def _least_epsilon(kit, epsilon):
    """Theano takes 1e-5 at least, also once rounded: in single precision 1e-5 itself has to be the number above."""
    if epsilon < 1e-5:
        raise Unsupported("theano's batch normalisation has an epsilon of 1e-5 at least, not {}".format(epsilon))
    rounded = kit.number(epsilon)
    return float(rounded if rounded >= 1e-5 else np.nextafter(rounded, kit.number(1)))


def _layer_norm(kit, node, own, mode, x):
    axis = 1 if x.ndim == 4 else x.ndim - 1
    centred = x - x.mean(axis=axis, keepdims=True, dtype=kit.precision)
    variance = kit.T.sqr(centred).mean(axis=axis, keepdims=True, dtype=kit.precision)
    gamma, beta = own["gamma"], own["beta"]
    if x.ndim == 4:
        gamma, beta = (v.dimshuffle("x", 0, "x", "x") for v in (gamma, beta))
    return centred / kit.T.sqrt(variance + kit.number(node["attrs"]["epsilon"])) * gamma + beta


def _lrn(kit, node, own, mode, x):
    """The sum over neighbouring channels as shifted slices of an array with room at both ends."""
    attrs, T = node["attrs"], kit.T
    radius, channels = attrs["radius"], node["shape"][-1]
    bias, alpha, beta = (kit.number(attrs[field]) for field in ("bias", "alpha", "beta"))
    room = T.alloc(kit.number(0), x.shape[0], channels + 2 * radius, x.shape[2], x.shape[3])
    squares = T.set_subtensor(room[:, radius : radius + channels], T.sqr(x))
    scale = bias
    for i in range(2 * radius + 1):
        scale = scale + alpha * squares[:, i : i + channels]
    return x / scale**beta


# --- layers that move, drop or join numbers -------------------------------------------------------------------------


def _flatten(kit, node, own, mode, x):
    """Rows, columns, channels; where a dense kernel has its rows in the native order, as the numbers lie."""
    if x.ndim == 4 and node["name"] not in kit.ordered:
        x = x.dimshuffle(0, 2, 3, 1)
    return x.reshape((x.shape[0], node["shape"][0]))


def _dropout(kit, node, own, mode, x):
    rate = node["attrs"]["rate"]
    if not mode.training or not rate:
        return x
    kept = kit.random.binomial(size=x.shape, n=1, p=1.0 - rate, dtype=kit.precision)
    return x * kept * kit.number(1.0 / (1.0 - rate))


def _add(kit, node, own, mode, *inputs):
    return kit.T.add(*inputs)


def _concat(kit, node, own, mode, *inputs):
    return kit.T.concatenate(inputs, axis=1 if inputs[0].ndim == 4 else inputs[0].ndim - 1)


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
    "global_avg_pool": _global_avg_pool,
    "global_max_pool": _global_max_pool,
    "gru": theano_recurrent.gru,
    "layer_norm": _layer_norm,
    "lrn": _lrn,
    "lstm": theano_recurrent.lstm,
    "max_pool": _max_pool,
    "positions": _positions,
    "rnn": theano_recurrent.rnn,
}
