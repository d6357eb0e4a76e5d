"""What a `fit` reads: placed batches joined end to end, so that it can run over any stretch of them without a copy a
lap, or Keras' own dataset, whose threads gather ahead of it."""

import numpy as np


class Reel(object):
    """The last list of batches that was asked for, as whole arrays. `size` is the batch size that cuts them up."""

    def __init__(self):
        self._batches, self._joined, self._arrays, self.size = None, 0, (), 0

    def cut(self, batches, first, count):
        """Arrays (x, y) for `count` batches from the `first`, round and round.

        One piece, but where the last batch is smaller: a piece then ends with it, as an epoch does.
        """
        self.size, cycle = len(batches[0][0]), len(batches)
        start = first % cycle
        if count == 1:
            return [batches[start]]
        if len(batches[-1][0]) != self.size:
            pieces, needed = list(_within_cycle(start, start + count, cycle)), cycle
        else:
            # Joined once for every start that may follow, so that no later lap pays for a copy.
            aligned = cycle % count == 0 and start % count == 0
            pieces, needed = [(start, start + count)], cycle if aligned else cycle - 1 + count
        if self._batches is not batches or self._joined < needed:
            self._join(batches, needed)
        return [self._view(*piece) for piece in pieces]

    def _join(self, batches, needed):
        self._batches, self._joined = batches, needed
        turns = [batches[i % len(batches)] for i in range(needed)]
        self._arrays = [None if parts[0] is None else np.concatenate(parts) for parts in zip(*turns)]

    def _view(self, start, stop):
        return [array if array is None else array[start * self.size : stop * self.size] for array in self._arrays]


def _within_cycle(start, stop, cycle):
    while start < stop:
        end = min(stop, (start // cycle + 1) * cycle)
        yield start % cycle, (end - 1) % cycle + 1
        start = end


def make_dataset(keras, arrays, picks, cast, workers, prefetch):
    """Keras starts threads from two workers on; one, or none, gathers between the steps."""

    class Picked(keras.utils.PyDataset):
        def __len__(self):
            return len(picks)

        def __getitem__(self, i):
            return tuple(cast(array[picks[i]]) for array in arrays)

    return Picked(workers=max(workers, 1), use_multiprocessing=False, max_queue_size=max(workers, 1) * prefetch)
