"""What stands inside the clock: steps or whole epochs, whose batches were placed before, are given at each step, or
come from the engine's own pipeline; and what else belongs to an epoch, where a study wants it timed.

A work has `run(first, count)` turns, `steps` of a turn, `waited` (seconds that its steps waited for their batches; None
where they wait for none, or inside a loop of the framework's own), `first` (the first step, where a turn is more than
one) and `batches` (those that can be met again and again, for the test of a repeated input).
"""

import itertools
import time

import numpy as np

from timetrial_worker.adapters.base import Unsupported

BATCHES = 8  # different inputs cycle through the laps, so that nothing can be remembered


def work(adapter, feed, task, settings, clock=time.perf_counter):
    """As the settings draw the line. Whatever is not to be timed is done here, or in `prepare`."""
    kind, fits = settings.get("feed", "resident"), settings.get("loop") == "fit"
    if kind == "queue":
        return Queued(adapter, feed, task)
    loader = None
    if kind == "loader":
        y = feed.y_train if task == "train" else None
        loader = adapter.loader(feed.x_train, y, settings["workers"], settings["prefetch"])
    if settings.get("lap") == "epoch":
        return Epochs(adapter, feed, settings, loader, Wait(clock))
    if kind == "resident" or (fits and not loader):
        train = task == "train"
        return Resident(adapter, [adapter.place(x, y if train else None) for x, y in feed.cycle(BATCHES)], task)
    if fits:
        return Fitted(adapter, feed, loader)
    return Fed(adapter, feed, task, loader, Wait(clock))


class Wait(object):
    """Counts the seconds in which a step waits for its batch."""

    def __init__(self, clock):
        self._clock, self.seconds = clock, 0.0

    def over(self, batches):
        batches = iter(batches)
        while True:
            start = self._clock()
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self.seconds += self._clock() - start
            yield batch


class Steps(object):
    """A turn is a step."""

    steps, waited, first, batches = 1, None, None, ()


class Resident(Steps):
    """Batches placed before the clock starts take turns; a `fit` has its arrays on the host and cuts them itself."""

    def __init__(self, adapter, batches, task):
        self.batches, self._one = batches, batches[:1] * len(batches)
        self._go = adapter.run_steps if task == "train" else adapter.run_predictions

    def run(self, first, count):
        self._go(self.batches, first, count)

    def repeated(self, first, count):
        self._go(self._one, first, count)


class Fed(Steps):
    """Each step is given its batch: host arrays placed inside the clock, or the next of a loader that never ends."""

    def __init__(self, adapter, feed, task, loader, wait):
        train = task == "train"
        self._wait, self._step = wait, adapter.step if train else adapter.predict
        if loader:
            self._coming = iter(loader(itertools.cycle(feed.cycling(BATCHES))))
        else:
            turns = itertools.cycle(feed.cycle(BATCHES))  # gathered now; each is placed when its step asks for it
            self._coming = (adapter.place(x, y if train else None) for x, y in turns)

    @property
    def waited(self):
        return self._wait.seconds

    def run(self, first, count):
        step = self._step
        for batch in self._wait.over(itertools.islice(self._coming, count)):
            step(batch)


class Queued(Steps):
    """Evaluation steps that take their batches out of a queue in the framework's own graph."""

    def __init__(self, adapter, feed, task):
        if task != "infer":
            raise Unsupported("feed: queue is of an evaluation; use it with the task infer")
        self._step = adapter.evaluation(feed.x_test, feed.y_test, feed.batch)

    def run(self, first, count):
        for _ in range(count):
            self._step()


class Fitted(Steps):
    """A lap is one `fit` over a loader; how long it waits is known to the framework alone."""

    def __init__(self, adapter, feed, loader):
        self._adapter, self._loader, self._picks = adapter, loader, feed.cycling(BATCHES)

    def run(self, first, count):
        picks = self._picks
        self._adapter.fit(self._loader([picks[i % len(picks)] for i in range(first, first + count)]))


class Epochs(object):
    """A turn is a pass over the training data. What the settings leave outside is done by `prepare`."""

    batches = ()

    def __init__(self, adapter, feed, settings, loader, wait):
        self._adapter, self._feed, self._loader, self._wait = adapter, feed, loader, wait
        self._fits, self._resident = settings.get("loop") == "fit", settings.get("feed", "resident") == "resident"
        self._inside = settings.get("shuffle") == "inside"
        self._evaluate = settings.get("evaluate") == "inside"
        self._counts = not self._fits and not self._resident
        self._ready = {}
        self.steps = feed.steps
        self.scores = None  # of the last epoch, where it is evaluated
        if self._evaluate:
            self._test = [(adapter.place(x) if self._resident else x, real) for x, real in feed.test()]

    @property
    def waited(self):
        return self._wait.seconds if self._counts else None

    def first(self):
        """One step, so that compiling and tracing are a phase of their own."""
        batch = self._adapter.place(*self._feed.take(self._feed.picks(0)[0]))
        self._adapter.run_steps([batch], 0, 1)
        self._adapter.sync()

    def prepare(self, first, count):
        """Order, batches and places of the epochs to come, where they are not to be timed. Without shuffling one is
        like the other, and is made once."""
        if self._inside:
            return
        wanted = range(first, first + count) if self._feed.recipe["shuffle"] else (0,)
        self._ready = {epoch: self._ready[epoch] if epoch in self._ready else self._made(epoch) for epoch in wanted}

    def _made(self, epoch):
        picks = self._feed.picks(epoch)
        if self._loader:
            return picks
        if self._fits:
            return self._feed.take(np.concatenate(picks))
        hosts = [self._feed.take(pick) for pick in picks]
        return [self._adapter.place(x, y) for x, y in hosts] if self._resident else hosts

    def run(self, first, count):
        for epoch in range(first, first + count):
            self._train(epoch, None if self._inside else self._ready[epoch if self._feed.recipe["shuffle"] else 0])
            if self._evaluate:
                self.scores = score(self._predicted(), np.asarray(self._feed.y_test), self._feed.recipe["loss"])

    def _train(self, epoch, ready):
        adapter = self._adapter
        if self._fits:
            ready = self._made(epoch) if ready is None else ready
            adapter.fit(self._loader(ready)) if self._loader else adapter.fit(*ready, size=self._feed.batch)
        elif self._resident:
            adapter.run_steps(ready, 0, len(ready))
        else:
            step = adapter.step
            for batch in self._wait.over(self._coming(epoch, ready)):
                step(batch)

    def _coming(self, epoch, ready):
        """Batch by batch, so that drawing the order, gathering and placing are all waited for."""
        feed, place = self._feed, self._adapter.place
        picks = feed.picks(epoch) if ready is None else ready
        if self._loader:
            for batch in self._loader(picks):
                yield batch
        else:
            for pick in picks:
                yield place(*(feed.take(pick) if ready is None else pick))

    def _predicted(self):
        if self._fits:
            return self._adapter.predict_arrays(np.asarray(self._feed.x_test), self._feed.batch)
        place = (lambda x: x) if self._resident else self._adapter.place
        return answers(self._adapter, ((place(x), real) for x, real in self._test))


# --- the test set -----------------------------------------------------------------------------------------------------


def predict(adapter, feed):
    """The answers to the whole test set, on the host."""
    return answers(adapter, ((adapter.place(x), real) for x, real in feed.test()))


def answers(adapter, batches):
    predicted = [adapter.output(adapter.predict(batch))[:real] for batch, real in batches]
    return np.concatenate(predicted).astype(np.float64)


def score(predicted, truth, loss):
    """Accuracy for classes; mean squared and absolute error for values."""
    if loss in ("mse", "mae"):
        difference = predicted - truth.reshape(predicted.shape)
        return {"mse": float(np.mean(difference**2)), "mae": float(np.mean(np.abs(difference)))}
    if loss == "binary_cross_entropy":
        return {"accuracy": float(np.mean((predicted > 0.5) == (truth.reshape(predicted.shape) > 0.5)))}
    if truth.ndim == predicted.ndim:
        truth = truth.argmax(-1)
    return {"accuracy": float(np.mean(predicted.argmax(-1) == truth))}
