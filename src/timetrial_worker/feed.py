"""Batches from prepared arrays, in an order that depends on the seed alone: the same for every engine."""

import numpy as np


class Feed(object):
    """`data` holds the paths of x_train, y_train, x_test, y_test; the files are mapped, not read."""

    def __init__(self, data, recipe, seed):
        self.recipe, self.seed, self.batch = recipe, seed, recipe["batch"]
        self.x_train, self.y_train = self._open(data, "train")
        self.x_test, self.y_test = self._open(data, "test")

    @staticmethod
    def _open(data, part):
        return tuple(np.load(data[side + "_" + part], mmap_mode="r") for side in ("x", "y"))

    @property
    def steps(self):
        """Of one epoch."""
        return len(self._cut(len(self.x_train)))

    def picks(self, epoch):
        """Which samples each batch of an epoch holds. The partial last batch is dropped or kept as the recipe says."""
        order = self._order(epoch)
        return [order[start:end] for start, end in self._cut(len(order))]

    def _cut(self, end):
        if self.recipe["last_batch"] == "drop" and end >= self.batch:
            end -= end % self.batch
        return [(start, min(start + self.batch, end)) for start in range(0, end, self.batch)]

    def cycling(self, count):
        """Picks of `count` different training batches for the laps; fewer where the data hold fewer."""
        order = self._order(0)
        have = max(len(order) // self.batch, 1)
        picks = [order[i * self.batch : (i + 1) * self.batch] for i in range(min(count, have))]
        return [np.resize(pick, self.batch) for pick in picks]

    def cycle(self, count):
        return [self.take(pick) for pick in self.cycling(count)]

    def epoch(self, number):
        """All batches of one epoch."""
        return [self.take(pick) for pick in self.picks(number)]

    def test(self):
        """(x, number of real samples) pairs; the last batch is filled up so that every engine sees one shape."""
        for start in range(0, len(self.x_test), self.batch):
            x = np.asarray(self.x_test[start : start + self.batch])
            real = len(x)
            yield np.concatenate([x] + [x[:1]] * (self.batch - real)), real

    def _order(self, epoch):
        if not self.recipe["shuffle"]:
            return np.arange(len(self.x_train))
        return np.random.RandomState((self.seed * 100003 + epoch) % 2**32).permutation(len(self.x_train))

    def take(self, places):
        """(x, y) of these training samples, in this order, as arrays of their own."""
        return np.ascontiguousarray(self.x_train[places]), np.ascontiguousarray(self.y_train[places])
