"""The order of flattened images, for frameworks that keep channels first.

A dense kernel that reads a flattened image can have its rows permuted once, when weights are loaded; then nothing is
transposed while the clock runs.
"""

from collections import namedtuple

import numpy as np

# The order of a flat tensor's numbers: native = canonical[order.native] and canonical = native[order.canonical].
Order = namedtuple("Order", "native canonical")
AS_IS = Order(slice(None), slice(None))

# Layers that treat every number of a flat tensor alike, so that its order passes through them.
TRANSPARENT = ("activation", "dropout", "batch_norm", "layer_norm")


def channels_first(shape):
    """The order in which an image of the canonical shape (H, W, C) is flattened with its channels first."""
    native = np.arange(np.prod(shape)).reshape(shape).transpose(2, 0, 1).ravel()
    return Order(native, np.argsort(native))


def flat_orders(network):
    """Node name -> Order, of the flat tensors that can stay in the native order because dense kernels absorb it."""
    readers = {}
    for node in network["nodes"]:
        for name in node["inputs"]:
            readers.setdefault(name, []).append(node)
    orders = {}
    for node in network["nodes"]:
        if node["op"] == "flatten" and len(node["in_shapes"][0]) == 3 and _absorbed(node["name"], readers, network):
            orders[node["name"]] = channels_first(node["in_shapes"][0])
        elif node["op"] in TRANSPARENT and node["inputs"][0] in orders:
            orders[node["name"]] = orders[node["inputs"][0]]
    return orders


def _absorbed(name, readers, network):
    if name == network["output"]:
        return False
    return all(
        reader["op"] == "dense" or (reader["op"] in TRANSPARENT and _absorbed(reader["name"], readers, network))
        for reader in readers.get(name, [])
    )
