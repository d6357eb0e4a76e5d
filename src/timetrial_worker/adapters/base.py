"""What an adapter is: one framework behind one small interface.

An adapter is made with the run's settings, then used in this order:

    start()                        import the framework, set threads, seeds and precision; returns versions
    build(network, recipe, w)      from the lowered network (see below) and the starting weights
    place(x, y) -> batch           host arrays to what a step takes; done outside the timed laps
    step(batch)                    one training step; may return before the device has finished
    predict(batch) -> output       the head applied; may return before the device has finished
    sync()                         wait for all outputs and updated weights

The lowered network is plain JSON: `nodes` in computing order, each with `name`, `op`, `inputs`, `in_shapes`, `shape`,
`attrs` and `parameters`. Shapes are per sample and channels last. Adapters keep whatever layout is native to them, but
everything that crosses this interface as an array is in the canonical form:

    images              (N, H, W, C)
    dense kernel        (in, out)
    conv2d kernel       (rows, columns, in, out), cross-correlation
    rnn, lstm, gru      kernel (in, gates x units), recurrent (units, gates x units), bias (gates x units);
                        lstm gates i, f, c, o; gru gates z, r, h with bias (2, 3 x units): input row, state row
    attention           query_kernel … output_kernel (C, C), heads side by side in the columns of q, k, v

`settings` is a dict: device ("cpu", "cuda:0"), threads (int or None), seed (int), precision ("float32", "float64",
"bfloat16"), loop ("step" or "fit"), compile ("default" or a word the adapter knows), deterministic (bool), tf32 (bool),
flush (whether numbers below the normal range are taken for zero; None: as the engine comes), layout (of images inside
the engine), update (how the optimiser is carried out), xla_flags (words for XLA). Without a number of threads the
engine sets none and takes as many as it does by itself.

Traits name where a framework's built-in differs from the language by definition, so that the reference can follow it
and the report can say it: {"bn_variance": "unbiased"} (moving variance with N - 1),
{"bn_moments": "after_update"} (moving mean and variance follow a second pass, with the weights of after the step),
{"sgd_velocity": "rate_inside"} (velocity holds the learning rate: differs while a schedule changes it),
{"max_pool_ties": "all"} (each of several equal maxima gets the whole gradient, not the first alone).
"""

import os
from collections import OrderedDict

import numpy as np


class Unsupported(Exception):
    """The engine has no such layer, precision, device or option: the cell's outcome is `unsupported`."""


class Adapter(object):
    name = "base"
    traits = {}  # type: dict
    layouts = ()  # type: tuple  # that it can be told to keep images in
    updates = ()  # type: tuple  # ways to carry out its optimiser, besides its own choice
    runs_xla = False  # whether what XLA is told has an effect on it

    def __init__(self, settings):
        self.settings = dict(settings)
        self.precision = self.settings.get("precision", "float32")
        self.device = self.settings.get("device", "cpu")

    # --- life -------------------------------------------------------------------------------------------------------

    def check_choices(self):
        """What not every engine has is refused where it is not there, before anything is imported."""
        for setting, known in (("layout", self.layouts), ("update", self.updates)):
            word = self.settings.get(setting) or "default"
            if word != "default" and word not in known:
                has = "it has {}".format(", ".join(known)) if known else "leave it out"
                raise Unsupported("{} has no {}: {}; {}".format(self.name, setting, word, has))
        if self.settings.get("xla_flags") and not self.runs_xla:
            raise Unsupported("{} does not run through XLA with these settings: leave xla_flags out".format(self.name))

    def add_xla_flags(self, flags):
        """Before the framework is imported: XLA reads them once."""
        if flags:
            os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " " + flags).strip()

    def start(self):
        """Import the framework and make its global settings. Returns {distribution: version}."""
        raise NotImplementedError

    def build(self, network, recipe, weights):
        """Make the model, the optimiser and the (not yet run) step functions, and load the weights."""
        raise NotImplementedError

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        raise NotImplementedError

    def step(self, batch):
        raise NotImplementedError

    def predict(self, batch):
        raise NotImplementedError

    def sync(self):
        raise NotImplementedError

    def run_steps(self, batches, first, count):
        """`count` training steps over the placed batches in turn, from the `first`. Not synchronised."""
        step, cycle = self.step, len(batches)
        for i in range(first, first + count):
            step(batches[i % cycle])

    def run_predictions(self, batches, first, count):
        """`count` predictions likewise; the last output is returned."""
        predict, cycle, output = self.predict, len(batches), None
        for i in range(first, first + count):
            output = predict(batches[i % cycle])
        return output

    def fit(self, x, y=None, size=None):
        """The framework's own loop over the host arrays of a whole epoch, in this order and cut into batches of `size`,
        or over what its `loader` gave; only asked for with loop "fit". Not synchronised."""
        batches = [self.place(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]
        self.run_steps(batches, 0, len(batches))

    def predict_arrays(self, x, size):
        """All answers to host arrays by the framework's own loop; only asked for with loop "fit"."""
        cut = range(0, len(x), size)
        return np.concatenate([self.output(self.predict(self.place(x[i : i + size]))) for i in cut])

    def loader(self, x, y, workers, prefetch):
        """The framework's own input pipeline over host arrays (y is None where it is to predict): a function of index
        arrays, one for each batch and perhaps without end, whose answer gives the placed batches in that order."""
        raise Unsupported("{} has no input pipeline of its own: use feed: resident or feed: batch".format(self.name))

    def evaluation(self, x, y, size):
        """A function that takes the next batch of `size` out of a queue in the framework's own graph, which a thread
        keeps full from these host arrays, and tells for each sample whether its class came out on top."""
        raise Unsupported("{} has no queue in a graph: use another feed than queue".format(self.name))

    def set_rate(self, rate, momentum=None):
        """Learning rate (and momentum) from the next step on; never recompiles."""
        raise NotImplementedError

    def includes(self, task):
        """In words what a timed step or prediction contains, where that is not what the others' contains; else None."""
        return None

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        """Mean loss of the last step's batch, before its update, as a float."""
        raise NotImplementedError

    def output(self, predicted):
        """What `predict` returned, as a float array (N, …)."""
        raise NotImplementedError

    def weights(self):
        """All parameters, trained and moving, by canonical name and in canonical layout."""
        raise NotImplementedError

    def load(self, weights):
        """Set all parameters and forget the optimiser's state, as if freshly built. Compiled code is kept."""
        raise NotImplementedError

    def activations(self, x):
        """OrderedDict of node name -> output in canonical layout, inference mode, logits last (no head)."""
        raise NotImplementedError

    def gradients(self, x, y):
        """(loss, {parameter: gradient}) of one batch in training mode, without weight decay. Changes nothing."""
        raise NotImplementedError

    def readback(self):
        """Settings as the framework itself reports them: dtype, device, threads, tf32, layout, compile, …"""
        return OrderedDict()

    def memory(self):
        """Allocator figures in bytes where the framework keeps them: {"live_peak": …, "reserved_peak": …}."""
        return OrderedDict()

    def halved(self, values):
        """A float32 array times one half, computed on the device as a step computes; None where that cannot be asked.
        What becomes of numbers below the normal range is tried with it."""
        return None

    # --- the device's own clock, where it has one -------------------------------------------------------------------

    def mark(self):
        """A mark in the device's queue of work, or None where the device keeps no time of its own."""
        return None

    def between(self, first, last):
        """Seconds of the device from one mark to another; called after `sync`."""
        raise NotImplementedError

    def multiplier(self, dtype, size):
        """A function of a count: so many products of two square matrices, all of them done when it returns. What the
        machine can do at most is measured with it; `start` is all that comes before."""
        raise Unsupported("{} has no matrix product of its own: that of its backend is measured".format(self.name))

    def profiler(self, folder, task):
        """A collector (see `profiled`) that has the framework's own profiler write its traces under `folder`."""
        raise Unsupported("{} cannot be profiled operation by operation".format(self.name))

    def save(self, path):
        """Write the weights in the framework's own idiom; returns the path that was written."""
        raise NotImplementedError
