"""Placed batches joined end to end, so that one `fit` can run over any stretch of them without a copy a lap."""

import numpy as np


class Reel(object):
    """The last list of batches that was asked for, as whole arrays. `size` is the batch size that cuts them up again."""

    def __init__(self):
        self._batches, self._repeats = None, 0

    def cut(self, batches, first, count):
        """Arrays (x, y) for `count` batches from the `first`, round and round.

        One piece, but where the last batch is smaller: a piece then ends with it, as an epoch does.
        """
        self.size, cycle = len(batches[0][0]), len(batches)
        if count == 1:
            return [batches[first % cycle]]
        start, stop = first % cycle, first % cycle + count
        if len(batches[-1][0]) != self.size:
            return [self._view(batches, 1, *piece) for piece in _within_cycle(start, stop, cycle)]
        if stop <= cycle:
            return [self._view(batches, 1, start, stop)]
        # Enough for every start, so that a later stretch makes no new copy.
        return [self._view(batches, -(-(cycle - 1 + count) // cycle), start, stop)]

    def _view(self, batches, repeats, start, stop):
        if self._batches is not batches or self._repeats < repeats:
            self._join(batches, repeats)
        return [array if array is None else array[start * self.size : stop * self.size] for array in self._arrays]

    def _join(self, batches, repeats):
        self._batches, self._repeats = batches, repeats
        self._arrays = [
            None if parts[0] is None else np.concatenate(parts * repeats) for parts in map(list, zip(*batches))
        ]


def _within_cycle(start, stop, cycle):
    while start < stop:
        end = min(stop, (start // cycle + 1) * cycle)
        yield start % cycle, (end - 1) % cycle + 1
        start = end
