"""The reference: the network language in plain NumPy and double precision. All engines are held against it.

It is written to be checked by reading, not to be fast. Whatever precision is asked for, it works in float64.
"""

import os
import sys
from collections import OrderedDict

import numpy as np

from . import reference_ops, reference_sequences
from .base import Adapter, Unsupported
from .reference_functions import FUNCTIONS, LOSSES
from .reference_ops import Mode
from .reference_optimisers import OPTIMISERS

OPS = dict(reference_ops.OPS, **reference_sequences.OPS)


def known(table, kind, name):
    """What the table has under the name, or the word that the reference doesn't have it."""
    if name not in table:
        raise Unsupported("the reference has no {} '{}'; it has {}".format(kind, name, ", ".join(sorted(table))))
    return table[name]


class Node(object):
    """One operation of the network with the names of its weights by role."""

    def __init__(self, node):
        self.name = node["name"]
        self.inputs = list(node["inputs"])
        self.roles = OrderedDict((p["role"], p["name"]) for p in node["parameters"])
        if node["op"] == "activation":
            known(FUNCTIONS, "activation", node["attrs"]["function"])
        self.op = known(OPS, "layer", node["op"])(node["attrs"])

    def own(self, weights):
        return {role: weights[name] for role, name in self.roles.items()}


class Reference(Adapter):
    name = "reference"

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        if self.device != "cpu":
            raise Unsupported("the reference works on the cpu only, not on '{}'".format(self.device))
        return OrderedDict([("numpy", np.__version__), ("python", sys.version.split()[0])])

    def build(self, network, recipe, weights):
        self.recipe = recipe
        self.nodes = [Node(node) for node in network["nodes"]]
        self.last = network["output"]
        self.head = known(FUNCTIONS, "head", network["head"])()
        self.criterion = known(LOSSES, "loss", recipe["loss"])
        self.make_optimiser = known(OPTIMISERS, "optimiser", recipe["optimiser"]["kind"])
        self.tokens = bool(network["input"].get("tokens"))
        self.classes = recipe["loss"] == "cross_entropy" and recipe.get("labels", "integer") == "integer"
        self.names = [p["name"] for node in network["nodes"] for p in node["parameters"]]
        self.trainable = [p["name"] for node in network["nodes"] for p in node["parameters"] if p["trainable"]]
        self.load(weights)

    def load(self, weights):
        self.values = OrderedDict((name, np.array(weights[name], np.float64)) for name in self.names)
        self.optimiser = self.make_optimiser(self.recipe["optimiser"], self.traits)
        self.random = np.random.RandomState(self.settings.get("seed", 0))
        self.last_loss = float("nan")

    # --- passes -----------------------------------------------------------------------------------------------------

    def _forward(self, x, training):
        """Outputs and caches of all nodes by name, computed in order."""
        mode = Mode(training, self.random, self.traits)
        outputs, caches = OrderedDict([("input", x)]), {}
        for node in self.nodes:
            inputs = [outputs[name] for name in node.inputs]
            outputs[node.name], caches[node.name] = node.op.forward(node.own(self.values), inputs, mode)
        return outputs, caches

    def _backward(self, caches, at_output):
        """Gradients of all trainable weights. A node that feeds several others gets the sum of what they send back."""
        reached, gradients = {self.last: at_output}, {}
        for node in reversed(self.nodes):
            if node.name not in reached:
                continue
            dy = reached.pop(node.name)
            back, own = node.op.backward(node.own(self.values), caches[node.name], dy)
            for name, dx in zip(node.inputs, back):
                if dx is not None:
                    reached[name] = reached[name] + dx if name in reached else dx
            gradients.update((node.roles[role], gradient) for role, gradient in own.items())
        return OrderedDict((name, gradients[name]) for name in self.trainable)

    def _loss_and_gradients(self, x, y):
        outputs, caches = self._forward(x, training=True)
        loss, at_output = self.criterion(outputs[self.last], y)
        return float(loss), self._backward(caches, at_output), caches

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        x = np.asarray(x, np.int64 if self.tokens else np.float64)
        return x, (None if y is None else np.asarray(y, np.int64 if self.classes else np.float64))

    def step(self, batch):
        self.last_loss, gradients, caches = self._loss_and_gradients(*batch)
        updated = self.optimiser.step(self.values, gradients)
        if self.traits.get("bn_moments") == "after_update":
            self.values.update(updated)
            _, caches = self._forward(batch[0], training=True)
        for node in self.nodes:
            moved = node.op.moved(node.own(self.values), caches[node.name])
            self.values.update((node.roles[role], value) for role, value in moved.items())
        self.values.update(updated)

    def predict(self, batch):
        outputs, _ = self._forward(batch[0], training=False)
        return self.head.forward(outputs[self.last])

    def sync(self):
        """NumPy never runs ahead."""

    def set_rate(self, rate, momentum=None):
        self.optimiser.set_rate(rate, momentum)

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return self.last_loss

    def output(self, predicted):
        return np.asarray(predicted)

    def weights(self):
        return OrderedDict((name, value.copy()) for name, value in self.values.items())

    def activations(self, x):
        outputs, _ = self._forward(self.place(x)[0], training=False)
        del outputs["input"]
        return outputs

    def gradients(self, x, y):
        state = self.random.get_state()
        loss, gradients, _ = self._loss_and_gradients(*self.place(x, y))
        self.random.set_state(state)  # the next step drops what it would have dropped anyway
        return loss, gradients

    def readback(self):
        return OrderedDict(
            dtype="float64",
            device="cpu",
            threads=os.environ.get("OMP_NUM_THREADS"),
            layout="channels_last",
            compile="none",
            deterministic=True,
        )

    def halved(self, values):
        return values * np.float32(0.5)

    def multiplier(self, dtype, size):
        if dtype not in ("float32", "float64"):
            raise Unsupported("NumPy has no {}".format(dtype))
        a, b, c = (np.full((size, size), 1.0 / size, dtype) for _ in range(3))

        def multiply(count):
            for _ in range(count):
                np.matmul(a, b, out=c)

        return multiply

    def save(self, path):
        path = path if path.endswith(".npz") else path + ".npz"
        np.savez(path, **self.values)
        return path
