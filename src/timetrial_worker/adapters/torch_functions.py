"""Activations and losses of the language as torch functions."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from .base import Unsupported


class Apply(nn.Module):
    """A node without parameters: a function of its inputs."""

    def __init__(self, function):
        super(Apply, self).__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def identity(x):
    return x


def scaled_tanh(x):
    return 1.7159 * torch.tanh(x * (2.0 / 3.0))


def hard_sigmoid(x):
    return torch.clamp(0.2 * x + 0.5, 0.0, 1.0)  # torch's own has a slope of 1/6


_FUNCTIONS = {
    "gelu": F.gelu,
    "hard_sigmoid": hard_sigmoid,
    "identity": identity,
    "leaky_relu": F.leaky_relu,
    "relu": torch.relu,
    "scaled_tanh": scaled_tanh,
    "sigmoid": torch.sigmoid,
    "softmax": torch.softmax,
    "tanh": torch.tanh,
}


def activation(attrs, rank=1):
    """The function over native tensors of samples of that rank; an image's channels are its first axis."""
    name = attrs["function"]
    if name not in _FUNCTIONS:
        raise Unsupported("torch has no activation '{}'".format(name))
    if name == "softmax":
        return partial(torch.softmax, dim=1 if rank == 3 else -1)
    if name == "leaky_relu" and "slope" in attrs:
        return partial(F.leaky_relu, negative_slope=attrs["slope"])
    return _FUNCTIONS[name]


# --- losses -----------------------------------------------------------------------------------------------------------


def sequence_cross_entropy(logits, labels):
    """Of (N, T, C) with the labels of all places in one row, as they are placed."""
    return F.cross_entropy(logits.flatten(0, 1), labels)


_LOSSES = {
    "binary_cross_entropy": F.binary_cross_entropy_with_logits,
    "cross_entropy": F.cross_entropy,
    "mae": F.l1_loss,
    "mse": F.mse_loss,
}


def loss_function(name, rank):
    if name not in _LOSSES:
        raise Unsupported("torch has no loss '{}'".format(name))
    return sequence_cross_entropy if name == "cross_entropy" and rank == 2 else _LOSSES[name]
