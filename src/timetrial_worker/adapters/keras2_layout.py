"""Where the language's parameters live in a Keras 2 model, and how images lie in it.

Theano and CNTK want channels first. A flattened image then has its numbers in another order than the language's; the
dense kernels behind it absorb that order, so that nothing is transposed while the clock runs.
"""

from collections import namedtuple

import numpy as np

# The order of a flat tensor's numbers: native = canonical[order.native] and canonical = native[order.canonical].
Order = namedtuple("Order", "native canonical")
AS_IS = Order(slice(None), slice(None))
TURNED = Order(*[(slice(None, None, -1), slice(None, None, -1))] * 2)  # rows and columns of a kernel, back to front

# Layers that treat every number of a flat tensor alike, so that its order passes through them.
_TRANSPARENT = ("activation", "dropout", "batch_norm", "layer_norm")


class Slot(object):
    """One parameter of the language: the variable that holds it, and the order of its numbers there. `order` picks
    along its first axes: permuted rows behind flattened images, or kernels that are turned around."""

    def __init__(self, name, variable, shape, order=AS_IS):
        self.name, self.variable, self.shape, self.order = name, variable, tuple(shape), order

    def native(self, values, dtype):
        return np.ascontiguousarray(np.asarray(values, dtype).reshape(self.shape)[self.order.native])

    def canonical(self, values, dtype):
        return np.array(np.asarray(values, dtype).reshape(self.shape)[self.order.canonical])


def channels_first(shape):
    """The order in which an image of the canonical shape (H, W, C) is flattened when its channels come first."""
    native = np.arange(int(np.prod(shape))).reshape(shape).transpose(2, 0, 1).ravel()
    return Order(native, np.argsort(native))


def flat_orders(network):
    """Node name -> Order, of the flat tensors that may keep the native order because dense kernels absorb it."""
    readers = {}
    for node in network["nodes"]:
        for name in node["inputs"]:
            readers.setdefault(name, []).append(node)
    orders = {}
    for node in network["nodes"]:
        if node["op"] == "flatten" and len(node["in_shapes"][0]) == 3 and _absorbed(node["name"], readers, network):
            orders[node["name"]] = channels_first(node["in_shapes"][0])
        elif node["op"] in _TRANSPARENT and node["inputs"][0] in orders:
            orders[node["name"]] = orders[node["inputs"][0]]
    return orders


def _absorbed(name, readers, network):
    if name == network["output"]:
        return False
    return all(
        reader["op"] == "dense" or (reader["op"] in _TRANSPARENT and _absorbed(reader["name"], readers, network))
        for reader in readers.get(name, [])
    )


def image_to_native(array, first):
    return np.ascontiguousarray(array.transpose(0, 3, 1, 2)) if first else array


def image_to_canonical(array, first):
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if first else array
