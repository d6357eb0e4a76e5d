"""Torch's own input pipeline: a DataLoader whose dataset gives whole batches, in an order that is handed over."""

import torch
from torch.utils.data import DataLoader, Dataset


class Batches(Dataset):
    """Indexed by the places of a batch's samples, and ready for a step but for the device."""

    def __init__(self, x, y, place):
        self.x, self.y, self.place = x, y, place

    def __getitem__(self, places):
        return self.place(self.x[places], None if self.y is None else self.y[places])


class Loader(object):
    """A DataLoader that keeps its workers, and is told the order of each pass."""

    def __init__(self, batches, target, workers, prefetch):
        self._gpu, self._target, self._picks = target.type == "cuda", target, ()
        # Forked, so that they need not import the engine again. Their seeds are drawn apart: the network's own random
        # numbers are then the same with every feed.
        kept = {"prefetch_factor": prefetch, "persistent_workers": True, "multiprocessing_context": "fork"}
        self._loader = DataLoader(
            batches, batch_size=None, sampler=self, num_workers=workers, pin_memory=self._gpu,
            generator=torch.Generator(), **(kept if workers else {})
        )  # fmt: skip

    def __iter__(self):
        """As the sampler: what comes next."""
        return iter(self._picks)

    def __call__(self, picks):
        self._picks = picks
        return map(self._moved, self._loader) if self._gpu else iter(self._loader)

    def _moved(self, batch):
        return [None if part is None else part.to(self._target, non_blocking=True) for part in batch]
