"""The reference's activations and losses: plain functions of float64 arrays, each with its derivative."""

import math

import numpy as np

_erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has none


def erf(x):
    return np.asarray(_erf(x), np.float64)


def sigmoid(x):
    return np.exp(-np.logaddexp(0.0, -x))  # exact far into both tails, where 1 / (1 + exp(-x)) overflows


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


# --- activations ------------------------------------------------------------------------------------------------------


class Function(object):
    """y = f(x). `backward` takes x, y and dL/dy to dL/dx; most functions need only their slope."""

    def forward(self, x):
        raise NotImplementedError

    def slope(self, x, y):
        raise NotImplementedError

    def backward(self, x, y, dy):
        return dy * self.slope(x, y)


class Identity(Function):
    def forward(self, x):
        return x

    def slope(self, x, y):
        return 1.0


class Relu(Function):
    def forward(self, x):
        return np.maximum(x, 0.0)

    def slope(self, x, y):
        return (x > 0).astype(np.float64)  # 0 at the kink


class LeakyRelu(Function):
    def __init__(self, slope=0.01):
        self.negative = slope

    def forward(self, x):
        return np.where(x > 0, x, self.negative * x)

    def slope(self, x, y):
        return np.where(x > 0, 1.0, self.negative)


class Tanh(Function):
    def forward(self, x):
        return np.tanh(x)

    def slope(self, x, y):
        return 1.0 - y**2


class ScaledTanh(Function):
    HEIGHT, STEEPNESS = 1.7159, 2.0 / 3.0

    def forward(self, x):
        return self.HEIGHT * np.tanh(self.STEEPNESS * x)

    def slope(self, x, y):
        return self.STEEPNESS * (self.HEIGHT - y**2 / self.HEIGHT)


class Sigmoid(Function):
    def forward(self, x):
        return sigmoid(x)

    def slope(self, x, y):
        return y * (1.0 - y)


class HardSigmoid(Function):
    def forward(self, x):
        return np.clip(0.2 * x + 0.5, 0.0, 1.0)

    def slope(self, x, y):
        return np.where((y > 0) & (y < 1), 0.2, 0.0)


class Gelu(Function):
    """x times the probability that a normal variable is below x."""

    def below(self, x):
        return 0.5 * (1.0 + erf(x / math.sqrt(2.0)))

    def forward(self, x):
        return x * self.below(x)

    def slope(self, x, y):
        return self.below(x) + x * np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi)


class Softmax(Function):
    """Over the last axis: every output depends on every input there."""

    def forward(self, x):
        return softmax(x)

    def backward(self, x, y, dy):
        return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


FUNCTIONS = {
    "identity": Identity,
    "relu": Relu,
    "leaky_relu": LeakyRelu,
    "tanh": Tanh,
    "scaled_tanh": ScaledTanh,
    "sigmoid": Sigmoid,
    "hard_sigmoid": HardSigmoid,
    "gelu": Gelu,
    "softmax": Softmax,
}


# --- losses: (output, labels) -> (mean loss, its gradient at the output) ----------------------------------------------


def cross_entropy(logits, labels):
    """Mean over samples (and places) of -sum(label x log softmax); labels are class numbers or distributions."""
    if np.issubdtype(labels.dtype, np.integer):
        labels = np.eye(logits.shape[-1])[labels]
    _same_shape(logits, labels)
    count = labels[..., 0].size
    loss = -(labels * log_softmax(logits)).sum() / count
    return loss, (softmax(logits) * labels.sum(axis=-1, keepdims=True) - labels) / count


def binary_cross_entropy(logits, labels):
    _same_shape(logits, labels)
    loss = labels * np.logaddexp(0.0, -logits) + (1.0 - labels) * np.logaddexp(0.0, logits)
    return loss.mean(), (sigmoid(logits) - labels) / labels.size


def mse(output, labels):
    _same_shape(output, labels)
    difference = output - labels
    return (difference**2).mean(), 2.0 * difference / labels.size


def mae(output, labels):
    _same_shape(output, labels)
    difference = output - labels
    return np.abs(difference).mean(), np.sign(difference) / labels.size


def _same_shape(output, labels):
    if output.shape != labels.shape:  # NumPy would broadcast, and the mean would be over the wrong thing
        raise ValueError("labels of shape {} do not fit an output of shape {}".format(labels.shape, output.shape))


LOSSES = {"cross_entropy": cross_entropy, "binary_cross_entropy": binary_cross_entropy, "mse": mse, "mae": mae}
