"""The bytes that the published study's step asks for, from the network alone: an evaluation of classes in single
precision on TensorFlow 1, fed by a queue. Whatever works in place, or hands on what it was given, asks for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from timetrial.spec.layers import Node
from timetrial.spec.network import Network
from timetrial.spec.shapes import elements

BATCH, ROOM = 128, 4384  # of the study: samples of a step, and how many its queue holds
SIZE = 4  # of a number, and of a label
# What the queue's own handle takes depends on the build of TensorFlow. The study's figures, megabytes with two digits,
# do not show it.
HANDLES = {"1.15.5": 64}

Asked = Iterator[tuple[str, int]]


def requested(network: Network, batch: int = BATCH, room: int = ROOM, handle: int = 0) -> dict[str, int]:
    """By type of operation, of one step."""
    sample = elements(network.input.shape) * SIZE + SIZE  # and its label
    found = Counter({
        "FIFOQueueV2": room * sample + handle,
        "QueueDequeueManyV2": batch * sample,
        "Const": 3 * SIZE,  # how many to take out, the new shape of the labels, how many are on top
        "Reshape": 0,  # of the labels
        "InTopKV2": batch,  # one truth value each
    })  # fmt: skip
    executed = {node["name"] for node in network.lowered("cross_entropy")["nodes"]}
    for node in network.nodes:
        if node.name in executed:
            for kind, size in _asked(node, batch):
                found[kind] += size
    return dict(found)


def _asked(node: Node, batch: int) -> Asked:
    kind = node.attrs["function"] if node.op == "activation" else node.op
    if kind not in _ASKED:
        known = ", ".join(sorted(_ASKED))
        raise ValueError(f"'{node.name}': what {kind} asks for is not known, only of {known}; profile it instead")
    yield from _ASKED[kind](node, batch * elements(node.shape) * SIZE)
    for parameter in node.parameters:
        yield "VariableV2", parameter.size * SIZE
        yield "Identity", 0


def _convolution(node: Node, output: int) -> Asked:
    yield "Conv2D", output
    if node.attrs["bias"]:
        yield "BiasAdd", 0


def _dense(node: Node, output: int) -> Asked:
    yield "MatMul", output
    if node.attrs["bias"]:
        yield "Add", 0


def _flatten(_node: Node, _output: int) -> Asked:
    yield "Reshape", 0
    yield "Const", 2 * SIZE  # the new shape


def _one(kind: str, new: bool) -> Callable[[Node, int], Asked]:
    def asked(_node: Node, output: int) -> Asked:
        yield kind, output if new else 0

    return asked


_ASKED: Mapping[str, Callable[[Node, int], Asked]] = {
    "conv2d": _convolution,
    "dense": _dense,
    "flatten": _flatten,
    "lrn": _one("LRN", new=True),
    "max_pool": _one("MaxPool", new=True),
    "relu": _one("Relu", new=False),
}
