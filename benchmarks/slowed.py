"""PyTorch's adapter, and the same with a slow-down put in on purpose, for benchmarks of the method."""

import time

from timetrial_worker.adapters.torch_native import Torch

SLOW_DOWN = 0.03


class Plain(Torch):
    pass


class Again(Torch):
    """The same under another name."""


class Slowed(Torch):
    """After each step it is idle for 3 % of the time that the step took."""

    def step(self, batch):
        start = time.perf_counter()
        Torch.step(self, batch)
        end = time.perf_counter()
        until = end + SLOW_DOWN * (end - start)
        while time.perf_counter() < until:
            pass
