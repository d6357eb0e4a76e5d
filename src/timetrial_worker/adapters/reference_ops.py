"""The reference's layers: one small class each, forward and backward, written to be read.

`forward` returns the output and a cache, `backward` takes the cache and dL/d(output) to dL/d(inputs) and to
dL/d(weights). `w` holds the node's own weights by role. Arrays are float64 with the samples first, channels last.
"""

from collections import namedtuple

import numpy as np

from .reference_functions import FUNCTIONS

Mode = namedtuple("Mode", "training random traits")
Mode.__doc__ = "How a pass is made: training or inference, where chance comes from, and an engine's named differences."


class Op(object):
    """Base of all layers: made from a lowered node's attributes."""

    def __init__(self, attrs):
        self.attrs = attrs

    def forward(self, w, inputs, mode):
        """(output, cache)"""
        raise NotImplementedError

    def backward(self, w, cache, dy):
        """([gradient of each input], {role: gradient}); an input without a gradient has None."""
        raise NotImplementedError

    def moved(self, w, cache):
        """New values of the weights that follow the data, not the gradient: {role: value}."""
        return {}


def rows(x):
    """All axes but the last as one."""
    return x.reshape(-1, x.shape[-1])


def all_but_last(x):
    return tuple(range(x.ndim - 1))


# --- dense, embedding, positions --------------------------------------------------------------------------------------


class Dense(Op):
    def forward(self, w, inputs, mode):
        (x,) = inputs
        y = x @ w["kernel"]
        return (y + w["bias"] if self.attrs["bias"] else y), x

    def backward(self, w, x, dy):
        gradients = {"kernel": rows(x).T @ rows(dy)}
        if self.attrs["bias"]:
            gradients["bias"] = rows(dy).sum(axis=0)
        return [dy @ w["kernel"].T], gradients


class Embedding(Op):
    def forward(self, w, inputs, mode):
        (tokens,) = inputs
        return w["table"][tokens], tokens

    def backward(self, w, tokens, dy):
        table = np.zeros_like(w["table"])
        np.add.at(table, tokens, dy)  # a token that occurs twice counts twice
        return [None], {"table": table}


class Positions(Op):
    def forward(self, w, inputs, mode):
        return inputs[0] + w["table"], None

    def backward(self, w, cache, dy):
        return [dy], {"table": dy.sum(axis=0)}


# --- windows that slide over images -----------------------------------------------------------------------------------


class Windows(object):
    """Where a window of `size` falls on images of `shape` (H, W), padded and then visited in strides."""

    def __init__(self, shape, size, stride, pads):
        self.shape, self.size, self.stride, self.pads = tuple(shape), tuple(size), tuple(stride), pads
        self.padded = [n + sum(pad) for n, pad in zip(shape, pads)]
        self.count = [(n - k) // s + 1 for n, k, s in zip(self.padded, size, stride)]

    def pad(self, x, value=0.0):
        if not np.any(self.pads):
            return x
        return np.pad(x, [(0, 0)] + [tuple(pad) for pad in self.pads] + [(0, 0)], "constant", constant_values=value)

    def unpad(self, x):
        (top, _), (left, _) = self.pads
        return x[:, top : top + self.shape[0], left : left + self.shape[1]]

    def taps(self):
        """For each place in the window, in reading order, the slices of the padded image that fall on it."""
        for row in range(self.size[0]):
            for column in range(self.size[1]):
                yield self._every(row, 0), self._every(column, 1)

    def _every(self, first, axis):
        return slice(first, first + self.count[axis] * self.stride[axis], self.stride[axis])

    def patches(self, padded):
        """(samples x windows, taps x channels): every window's contents as a row."""
        n, channels = padded.shape[0], padded.shape[-1]
        per_n, per_row, per_column, per_channel = padded.strides
        down, across = self.stride
        view = np.lib.stride_tricks.as_strided(
            padded,
            (n, *self.count, *self.size, channels),
            (per_n, per_row * down, per_column * across, per_row, per_column, per_channel),
            writeable=False,
        )
        return view.reshape(-1, self.size[0] * self.size[1] * channels)

    def scatter(self, parts, n, channels):
        """The reverse of cutting images up by taps: adds each tap's part, made as it is needed, back to its place."""
        dx = np.zeros((n, *self.padded, channels))
        for (rows_, columns), part in zip(self.taps(), parts):
            dx[:, rows_, columns] += part
        return self.unpad(dx)


class Conv2d(Op):
    """Cross-correlation, as one matrix product of all patches with the kernel."""

    def forward(self, w, inputs, mode):
        (x,) = inputs
        windows = Windows(x.shape[1:3], self.attrs["kernel"], self.attrs["stride"], self.attrs["pads"])
        padded = windows.pad(x)
        kernel = w["kernel"]
        y = windows.patches(padded) @ rows(kernel)
        if self.attrs["bias"]:
            y += w["bias"]
        return y.reshape(len(x), *windows.count, kernel.shape[-1]), (windows, padded)

    def backward(self, w, cache, dy):
        windows, padded = cache
        kernel = w["kernel"]
        gradients = {"kernel": (windows.patches(padded).T @ rows(dy)).reshape(kernel.shape)}
        if self.attrs["bias"]:
            gradients["bias"] = rows(dy).sum(axis=0)
        parts = (dy @ tap.T for tap in kernel.reshape(-1, *kernel.shape[2:]))
        return [windows.scatter(parts, len(dy), kernel.shape[2])], gradients


class _Pool(Op):
    def windows(self, x):
        return Windows(x.shape[1:3], self.attrs["window"], self.attrs["stride"], self.attrs["pads"])


def winners(values, mode):
    """Where the greatest along the first axis are. Of equal ones the first takes the whole gradient, or, with the
    trait `max_pool_ties: all`, each of them does."""
    if mode.traits.get("max_pool_ties") == "all":
        return values == values.max(axis=0)
    places = np.arange(len(values)).reshape((-1,) + (1,) * (values.ndim - 1))
    return values.argmax(axis=0) == places


class MaxPool(_Pool):
    """Padding never wins."""

    def forward(self, w, inputs, mode):
        (x,) = inputs
        windows = self.windows(x)
        padded = windows.pad(x, -np.inf)
        taps = np.stack([padded[:, rows_, columns] for rows_, columns in windows.taps()])
        return taps.max(axis=0), (windows, winners(taps, mode))

    def backward(self, w, cache, dy):
        windows, wins = cache
        parts = (dy * won for won in wins)
        return [windows.scatter(parts, len(dy), dy.shape[-1])], {}


class AvgPool(_Pool):
    """The mean of the real values: padding is not counted."""

    def forward(self, w, inputs, mode):
        (x,) = inputs
        windows = self.windows(x)
        values = self._sum(windows, x)
        real = self._sum(windows, np.ones((1, *x.shape[1:3], 1)))
        return values / real, (windows, real)

    def _sum(self, windows, x):
        padded = windows.pad(x)
        return sum(padded[:, rows_, columns] for rows_, columns in windows.taps())

    def backward(self, w, cache, dy):
        windows, real = cache
        share = dy / real
        parts = [share] * (windows.size[0] * windows.size[1])
        return [windows.scatter(parts, len(dy), dy.shape[-1])], {}


class GlobalAvgPool(Op):
    def forward(self, w, inputs, mode):
        (x,) = inputs
        return x.mean(axis=tuple(range(1, x.ndim - 1))), x.shape

    def backward(self, w, shape, dy):
        places = int(np.prod(shape[1:-1]))
        spread = dy.reshape((shape[0],) + (1,) * (len(shape) - 2) + (shape[-1],)) / places
        return [np.broadcast_to(spread, shape)], {}


class GlobalMaxPool(Op):
    def forward(self, w, inputs, mode):
        (x,) = inputs
        places = np.moveaxis(x.reshape(x.shape[0], -1, x.shape[-1]), 1, 0)
        return places.max(axis=0), (x.shape, winners(places, mode))

    def backward(self, w, cache, dy):
        shape, wins = cache
        return [np.moveaxis(dy * wins, 0, 1).reshape(shape)], {}


# --- normalisation ----------------------------------------------------------------------------------------------------


def normalised_backward(scale, normal, dn, axes):
    """Through n = (x - mean) * scale, whose mean and variance over `axes` depend on x too."""
    return scale * (dn - dn.mean(axis=axes, keepdims=True) - normal * (dn * normal).mean(axis=axes, keepdims=True))


class BatchNorm(Op):
    """Over all axes but the channels; the batch's variance is the biased one, divided by the number of values."""

    def forward(self, w, inputs, mode):
        (x,) = inputs
        axes = all_but_last(x)
        mean, variance = (x.mean(axis=axes), x.var(axis=axes)) if mode.training else (w["mean"], w["variance"])
        scale = 1.0 / np.sqrt(variance + self.attrs["epsilon"])
        normal = (x - mean) * scale
        count = x.size // x.shape[-1]
        unbiased = mode.traits.get("bn_variance") == "unbiased" and count > 1
        kept = variance * count / (count - 1) if unbiased else variance
        return normal * w["gamma"] + w["beta"], (normal, scale, mean, kept)

    def backward(self, w, cache, dy):
        normal, scale = cache[:2]
        axes = all_but_last(dy)
        dx = normalised_backward(scale, normal, dy * w["gamma"], axes)
        return [dx], {"gamma": (dy * normal).sum(axis=axes), "beta": dy.sum(axis=axes)}

    def moved(self, w, cache):
        momentum = self.attrs["momentum"]
        mean, variance = cache[2:]
        return {
            "mean": momentum * w["mean"] + (1.0 - momentum) * mean,
            "variance": momentum * w["variance"] + (1.0 - momentum) * variance,
        }


class LayerNorm(Op):
    """Over the last axis of each sample and place."""

    def forward(self, w, inputs, mode):
        (x,) = inputs
        scale = 1.0 / np.sqrt(x.var(axis=-1, keepdims=True) + self.attrs["epsilon"])
        normal = (x - x.mean(axis=-1, keepdims=True)) * scale
        return normal * w["gamma"] + w["beta"], (normal, scale)

    def backward(self, w, cache, dy):
        normal, scale = cache
        axes = all_but_last(dy)
        dx = normalised_backward(scale, normal, dy * w["gamma"], (-1,))
        return [dx], {"gamma": (dy * normal).sum(axis=axes), "beta": dy.sum(axis=axes)}


class LocalResponseNorm(Op):
    """y = x / s ** beta, s = bias + alpha * sum of squares over the channels within the radius."""

    def _over_neighbours(self, x):
        radius, channels = self.attrs["radius"], x.shape[-1]
        padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(radius, radius)], "constant")
        return sum(padded[..., i : i + channels] for i in range(2 * radius + 1))

    def forward(self, w, inputs, mode):
        (x,) = inputs
        s = self.attrs["bias"] + self.attrs["alpha"] * self._over_neighbours(x**2)
        return x * s ** -self.attrs["beta"], (x, s)

    def backward(self, w, cache, dy):
        x, s = cache
        alpha, beta = self.attrs["alpha"], self.attrs["beta"]
        through_s = self._over_neighbours(dy * x * s ** (-beta - 1.0))  # neighbourhood is mutual
        return [dy * s**-beta - 2.0 * alpha * beta * x * through_s], {}


# --- what only moves, drops, joins or bends numbers -------------------------------------------------------------------


class Flatten(Op):
    """Rows, columns, channels."""

    def forward(self, w, inputs, mode):
        (x,) = inputs
        return x.reshape(len(x), -1), x.shape

    def backward(self, w, shape, dy):
        return [dy.reshape(shape)], {}


class Dropout(Op):
    """In training each value is zero with probability `rate`, and the others are divided by 1 - rate."""

    def forward(self, w, inputs, mode):
        (x,) = inputs
        rate = self.attrs["rate"]
        if not mode.training or rate == 0:
            return x, 1.0
        factor = (mode.random.random_sample(x.shape) >= rate) / (1.0 - rate)
        return x * factor, factor

    def backward(self, w, factor, dy):
        return [dy * factor], {}


class Add(Op):
    def forward(self, w, inputs, mode):
        return sum(inputs[1:], inputs[0]), len(inputs)

    def backward(self, w, count, dy):
        return [dy] * count, {}


class Concat(Op):
    """Along the channels."""

    def forward(self, w, inputs, mode):
        return np.concatenate(inputs, axis=-1), [x.shape[-1] for x in inputs]

    def backward(self, w, widths, dy):
        return np.split(dy, np.cumsum(widths)[:-1], axis=-1), {}


class Activation(Op):
    def __init__(self, attrs):
        super(Activation, self).__init__(attrs)
        options = {name: value for name, value in attrs.items() if name != "function"}
        self.function = FUNCTIONS[attrs["function"]](**options)

    def forward(self, w, inputs, mode):
        (x,) = inputs
        y = self.function.forward(x)
        return y, (x, y)

    def backward(self, w, cache, dy):
        x, y = cache
        return [self.function.backward(x, y, dy)], {}


OPS = {
    "dense": Dense,
    "embedding": Embedding,
    "positions": Positions,
    "conv2d": Conv2d,
    "max_pool": MaxPool,
    "avg_pool": AvgPool,
    "global_avg_pool": GlobalAvgPool,
    "global_max_pool": GlobalMaxPool,
    "batch_norm": BatchNorm,
    "layer_norm": LayerNorm,
    "lrn": LocalResponseNorm,
    "flatten": Flatten,
    "dropout": Dropout,
    "add": Add,
    "concat": Concat,
    "activation": Activation,
}
