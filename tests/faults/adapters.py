"""Engines that are broken on purpose, each in one way: the reference under another name, with one fault.

The worker loads them by this file's path. Where a fault is to strike in the timed laps only, it waits until several
batches cycle: the equivalence gate hands over one at a time.
"""

import contextlib
import copy
import ctypes
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict

import numpy as np

from timetrial_worker.adapters.base import Unsupported
from timetrial_worker.adapters.reference import Reference

CHILD = "import time; time.sleep(60)"


class Honest(Reference):
    """No fault at all."""

    name = "honest"

    def start(self):
        return OrderedDict([("honest", "1.0"), ("numpy", np.__version__)])

    def run_steps(self, batches, first, count):
        if len(batches) > 1:
            self.in_the_laps()
        Reference.run_steps(self, batches, first, count)

    def in_the_laps(self):
        """Where the faults of the timed part strike."""


# --- ends that no engine should come to ------------------------------------------------------------------------------


class HangsInImport(Honest):
    def start(self):
        time.sleep(60)


class HangsInLaps(Honest):
    def in_the_laps(self):
        time.sleep(60)


class SlowLaps(Honest):
    """Long enough to be interrupted, short enough to be measured."""

    def in_the_laps(self):
        time.sleep(0.04)


class Segfaults(Honest):
    def in_the_laps(self):
        ctypes.string_at(0)


class SegfaultsInBuild(Honest):
    def build(self, network, recipe, weights):
        ctypes.string_at(0)


class EatsMemory(Honest):
    def in_the_laps(self):
        self.hoard = []
        while True:
            self.hoard.append(np.ones(2**22))
            time.sleep(0.01)  # 32 MiB each: far beyond the limit within a second, never the whole machine


class AllocatesTooMuch(Honest):
    def in_the_laps(self):
        raise MemoryError("std::bad_alloc")


class Leaves(Honest):
    def in_the_laps(self):
        sys.stderr.write("about to leave\n")
        sys.stderr.flush()
        os._exit(3)


class LeavesQuietly(Honest):
    def in_the_laps(self):
        os._exit(0)


class Raises(Honest):
    def in_the_laps(self):
        raise RuntimeError("the kernel could not be launched")


class NotImportable(Honest):
    def start(self):
        import a_framework_that_nobody_has  # noqa: F401


class ClosesItsPipe(Honest):
    """Closes every descriptor but the standard three, and goes on as if nothing had happened."""

    def in_the_laps(self):
        os.closerange(3, 256)
        time.sleep(60)


# --- noise and company -----------------------------------------------------------------------------------------------


class Rubbish(Honest):
    """Writes to every descriptor that it finds, the events' own among them, half lines and no text included."""

    def in_the_laps(self):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                os.write(int(name), b'I0000 log {"event": 1 \xff\xfe [[[[ no end of line')


class Talks(Honest):
    """Once, and more than a disk that is nearly full can take."""

    silent = False

    def in_the_laps(self):
        if not self.silent:
            self.silent = True
            print("x" * 2**18, flush=True)


class LeavesChild(Honest):
    """Starts one child in its own group and one in a session of its own; neither ends by itself in time."""

    def start(self):
        for apart in (False, True):
            subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=apart, close_fds=False)
        return Honest.start(self)


class ManyThreads(Honest):
    """Takes all cores of the machine, whatever it was given."""

    def start(self):
        os.sched_setaffinity(0, range(os.cpu_count()))
        for _ in range(24):
            threading.Thread(target=self.spin, daemon=True).start()
        return Honest.start(self)

    @staticmethod
    def spin():
        block = bytes(2**20)
        while True:
            hashlib.sha256(block)  # works without Python's lock


class TwoClocks(Honest):
    """Its CPU clock runs as if three threads were at work all the time: for machines too busy to give it three."""

    def start(self):
        time.process_time = lambda: 3 * time.perf_counter()
        return Honest.start(self)


class Remembers(Honest):
    """Gives the last answer again where the input is the same again; nobody sees it but in the time."""

    seen = None

    def predict(self, batch):
        if batch is self.seen:
            return self.answer
        time.sleep(0.002)
        self.seen, self.answer = batch, Honest.predict(self, batch)
        return self.answer


class Recomputes(Remembers):
    """As slow as the other, and does its work each time."""

    def predict(self, batch):
        self.seen = None
        return Remembers.predict(self, batch)


class SeesItsSurroundings(Honest):
    """Tells what it was given: as the framework's own report of its settings, in the record."""

    def readback(self):
        given = {"asked_threads": self.settings["threads"], "cores": len(os.sched_getaffinity(0))}
        return OrderedDict(given, omp=os.environ.get("OMP_NUM_THREADS"))


class Pipes(Honest):
    """Has an input pipeline: each of its batches takes a millisecond."""

    def loader(self, x, y, workers, prefetch):
        def coming(picks):
            for pick in picks:
                time.sleep(0.001)
                yield self.place(x[pick], None if y is None else y[pick])

        return coming


# --- answers that are no times ---------------------------------------------------------------------------------------


class Diverges(Honest):
    def loss(self):
        return float("nan") if self.optimiser.steps > 5 else Honest.loss(self)


class NoConvolution(Honest):
    def build(self, network, recipe, weights):
        if any(node["op"] == "conv2d" for node in network["nodes"]):
            raise Unsupported("no conv2d in this engine")
        Honest.build(self, network, recipe, weights)


# --- sabotage: computes something else, which the gate must see --------------------------------------------------------


class WrongGradient(Honest):
    """One kernel's gradient is one hundredth too large."""

    def _backward(self, caches, at_output):
        gradients = Honest._backward(self, caches, at_output)
        gradients["conv2d_1/kernel"] = gradients["conv2d_1/kernel"] * 1.01
        return gradients


class OneWrongEntry(Honest):
    """The gradient of a single weight among hundreds is off, and only in the steps, not where gradients are asked for."""

    def step(self, batch):
        Honest.step(self, batch)
        self.values["dense_1/kernel"][5, 2] += 0.01


class TransposedKernel(Honest):
    """Rows and columns of the convolution are exchanged."""

    def load(self, weights):
        weights = dict(weights)
        weights["conv2d_1/kernel"] = np.transpose(weights["conv2d_1/kernel"], (1, 0, 2, 3))
        Honest.load(self, weights)


class MissingBias(Honest):
    def load(self, weights):
        Honest.load(self, dict(weights, **{"dense_1/bias": np.zeros_like(weights["dense_1/bias"])}))


class OtherPadding(Honest):
    """All padding after the image instead of around it: the same shapes, other numbers."""

    def build(self, network, recipe, weights):
        network = copy.deepcopy(network)
        for node in network["nodes"]:
            if node["op"] == "conv2d":
                node["attrs"]["pads"] = [[0, 2], [0, 2]]
        Honest.build(self, network, recipe, weights)


class ForgottenMomentum(Honest):
    def build(self, network, recipe, weights):
        optimiser = dict(recipe["optimiser"], momentum=0.0)
        Honest.build(self, network, dict(recipe, optimiser=optimiser), weights)


class NoUpdate(Honest):
    """The fastest training of all."""

    def step(self, batch):
        kept = self.values.copy()
        Honest.step(self, batch)
        self.values = kept


class ForgetsLayer(Honest):
    """Does not show one of its layers."""

    def activations(self, x):
        found = Honest.activations(self, x)
        del found[list(found)[1]]
        return found


# --- changes that help, hurt and break: for tuning ---------------------------------------------------------------------


class Tunable(Honest):
    """Slow as it comes, quick with images channels last; with the optimiser fused it forgets its momentum, and with
    `foreach` it crashes."""

    layouts = ("channels_first", "channels_last")
    updates = ("fused", "foreach")

    def build(self, network, recipe, weights):
        if self.settings.get("update") == "fused":
            recipe = dict(recipe, optimiser=dict(recipe["optimiser"], momentum=0.0))
        Honest.build(self, network, recipe, weights)

    def in_the_laps(self):
        if self.settings.get("update") == "foreach":
            raise RuntimeError("there is no such kernel")
        time.sleep(0.001 if self.settings.get("layout") == "channels_last" else 0.02)
