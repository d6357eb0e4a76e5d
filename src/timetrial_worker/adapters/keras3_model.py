"""What a Keras 3 adapter is made of: the functional graph, the loss, and what Keras has no switch for."""

from collections import OrderedDict

import numpy as np

from .base import Unsupported
from .keras3_layers import Builder


def make_nodes(keras, network):
    """(symbolic input, {node: symbolic output}, [(parameter, canonical shape, variable)])."""
    spec, builder = network["input"], Builder(keras)
    dtype = "int32" if spec["tokens"] else keras.config.floatx()
    inputs = keras.Input(shape=builder.shape(spec["shape"]), dtype=dtype, name="input")
    found, parameters = OrderedDict([("input", inputs)]), []
    for node in network["nodes"]:
        found[node["name"]], layer = builder(node, [found[name] for name in node["inputs"]])
        if node["parameters"]:
            parameters += _pair_up(node["parameters"], layer.weights)
    del found["input"]
    return inputs, found, parameters


def _pair_up(parameters, variables):
    """Keras makes its variables in the language's order, and in shapes that hold the same numbers in the same order."""
    pairs = [(p["name"], tuple(p["shape"]), variable) for p, variable in zip(parameters, variables)]
    sizes = [(np.prod(shape), np.prod(tuple(variable.shape))) for _, shape, variable in pairs]
    if len(parameters) != len(variables) or any(ours != theirs for ours, theirs in sizes):
        names = ", ".join(p["name"] for p in parameters)
        raise Unsupported("this version of Keras keeps other variables than {}: use another version".format(names))
    return pairs


def make_loss(keras, recipe):
    losses, kind = keras.losses, recipe["loss"]
    if kind == "cross_entropy":
        one_hot = recipe["labels"] == "one_hot"
        return (losses.CategoricalCrossentropy if one_hot else losses.SparseCategoricalCrossentropy)(from_logits=True)
    if kind == "binary_cross_entropy":
        return losses.BinaryCrossentropy(from_logits=True)
    if kind in ("mse", "mae"):
        return losses.MeanSquaredError() if kind == "mse" else losses.MeanAbsoluteError()
    raise Unsupported("Keras has no loss {!r} here: use cross_entropy, binary_cross_entropy, mse or mae".format(kind))


def last_loss_model(keras):
    """`fit` tells the mean loss of all its batches; this model keeps that of the last one too."""

    class LastLossModel(keras.Model):
        def __init__(self, *args, **kwargs):
            super(LastLossModel, self).__init__(*args, **kwargs)
            self.last_loss = self.add_weight(shape=(), initializer="zeros", trainable=False, name="last_loss")

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            loss = super(LastLossModel, self).compute_loss(x, y, y_pred, sample_weight, training)
            self.last_loss.assign(loss)
            return loss

    class EagerLastLossModel(keras.Model):
        """Where nothing is traced, the loss itself can be kept: a variable's assignment takes 2 % of a small step."""

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            loss = super(EagerLastLossModel, self).compute_loss(x, y, y_pred, sample_weight, training)
            self.__dict__["last_loss"] = loss.detach()
            return loss

    return EagerLastLossModel if keras.backend.backend() == "torch" else LastLossModel


def allow_double(keras):
    """Off TensorFlow, Keras narrows every result of two doubles to single precision, whatever its floatx says.

    That rule is a private table with no public switch: it is lifted here, and only where double precision was asked
    for. Says whether it had to be.
    """
    if keras.backend.result_type("float64", "float64") == "float64":
        return False
    try:
        from keras.src.backend.common import dtypes

        dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"
    except (ImportError, AttributeError):
        pass
    if keras.backend.result_type("float64", "float64") != "float64":
        raise Unsupported("this Keras computes in single precision on {}: use float32".format(keras.backend.backend()))
    return True
