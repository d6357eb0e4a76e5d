"""From the starting weights through all epochs of a recipe, then over the test set; and how it goes meanwhile."""

import math
import os
import time

import numpy as np

from timetrial_worker import schedules
from timetrial_worker.timed import predict, score
from timetrial_worker.wire import resident


class Diverged(Exception):
    """The loss is not a finite number: this training is not a time."""


class Progress(object):
    """Tells about once a second how a training goes. To ask for a loss is to wait for the device: so not at each step.

    `pieces` cuts an epoch; a framework's own loop over an epoch is left whole.
    """

    seconds_apart = 1.0

    def __init__(self, wire, recipe, whole=False, clock=time.perf_counter):
        self._wire, self._epochs, self._whole, self._clock = wire, recipe["epochs"], whole, clock
        self._begun, self._count, self.done = clock(), 1, 0

    def pieces(self, steps):
        """(first, count) of runs of steps, each of which takes about as long as lies between two words."""
        first = 0
        while first < steps:
            count = steps if self._whole else min(self._count, steps - first)
            start = self._clock()
            yield first, count
            seconds = self._clock() - start
            first, self.done = first + count, self.done + count
            if seconds < self.seconds_apart / 2:
                self._count *= 2
            elif seconds > 2 * self.seconds_apart:
                self._count = max(self._count // 2, 1)

    def told(self, epoch, steps, seconds, loss):
        so_far = self._clock() - self._begun
        self._wire.tell(
            "progress", epoch=epoch + 1, epochs=self._epochs, step=self.done + steps, seconds=so_far,
            step_seconds=seconds / steps, loss=loss, resident=resident(),
        )  # fmt: skip

    def passed(self, epoch, loss, scores):
        self._wire.tell("epoch", epoch=epoch + 1, epochs=self._epochs, step=self.done, loss=loss, **scores)


def train_and_test(adapter, weights, feed, wire, job):
    recipe, losses = feed.recipe, []
    adapter.load(weights)
    progress = Progress(wire, recipe, whole=job["settings"].get("loop") == "fit")
    for epoch in range(recipe["epochs"]):
        with wire.phase("train"):
            losses.append(train_epoch(adapter, feed, epoch, progress))
        scores = _test(adapter, feed) if job["accuracy"] == "each-epoch" else {}
        progress.passed(epoch, losses[-1], scores)
    with wire.phase("predict"):
        predicted = predict(adapter, feed)
    with wire.phase("evaluate"):
        scores = score(predicted, np.asarray(feed.y_test), recipe["loss"])
    wire.tell("trained", losses=losses, epochs=recipe["epochs"], **scores)
    with wire.phase("save"):
        saved = adapter.save(os.path.join(job["folder"], "saved"))
    wire.tell("saved", bytes=_size(saved))


def _test(adapter, feed):
    return score(predict(adapter, feed), np.asarray(feed.y_test), feed.recipe["loss"])


def train_epoch(adapter, feed, epoch, progress):
    """Returns the loss of the epoch's last batch; without a loss that is a number there is no sense in going on."""
    recipe = feed.recipe
    batches = [adapter.place(x, y) for x, y in feed.epoch(epoch)]
    done, loss = epoch * len(batches), None
    changing = schedules.changes_per_iteration(recipe)
    set_pace(adapter, recipe, epoch, done)
    for first, count in progress.pieces(len(batches)):
        start = time.perf_counter()
        if changing:
            for i in range(first, first + count):
                set_pace(adapter, recipe, epoch, done + i)
                adapter.run_steps(batches, i, 1)
        else:
            adapter.run_steps(batches, first, count)
        adapter.sync()
        loss = check_loss(adapter.loss(), "in epoch {}".format(epoch + 1))
        progress.told(epoch, count, time.perf_counter() - start, loss)
    return loss


def set_pace(adapter, recipe, epoch, iteration):
    adapter.set_rate(schedules.rate_at(recipe, epoch, iteration), schedules.momentum_at(recipe, epoch, iteration))


def check_loss(loss, where):
    if not math.isfinite(loss):
        raise Diverged("the loss is {} {}".format(loss, where))
    return loss


def _size(path):
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(path) for name in names)
