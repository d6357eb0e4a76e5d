"""Collects what the equivalence gate compares: one batch forward and backward, then a few optimiser steps.

The same function runs for every engine and for the reference; the parent compares what comes out.
"""

from collections import OrderedDict

import numpy as np


def collect(adapter, weights, batches):
    """Arrays by name. `batches` are (x, y) pairs of host arrays: the first is examined, all are trained on in turn.

    activation/NODE, output, loss, gradient/PARAMETER, losses, after/PARAMETER
    """
    found = OrderedDict()
    x, y = batches[0]
    adapter.load(weights)
    for node, values in adapter.activations(x).items():
        found["activation/" + node] = values
    found["output"] = adapter.output(adapter.predict(adapter.place(x)))
    loss, gradients = adapter.gradients(x, y)
    found["loss"] = loss
    for name, values in gradients.items():
        found["gradient/" + name] = values
    adapter.load(weights)
    losses = []
    for x, y in batches:
        placed = adapter.place(x, y)
        adapter.run_steps([placed], 0, 1)
        adapter.sync()
        losses.append(adapter.loss())
    found["losses"] = losses
    for name, values in adapter.weights().items():
        found["after/" + name] = values
    return OrderedDict((name, np.asarray(values)) for name, values in found.items())
