"""The canary itself, a program of its own: reads a line with cores, sings on each, answers with the seconds.

The work is always the same, element by element, integer and sorting, in one thread, in arrays that the second-level
cache holds; then a copy that it does not hold. Nothing is allocated while the clock runs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

NUMBERS = 2**14
ROUNDS = 36  # of the work in one repetition
COPY_BYTES = 64 * 2**20  # read, and as much written
COMPUTE_REPETITIONS, COPY_REPETITIONS = 10, 6


class Song:
    """The arrays are made once and touched, so that no page fault falls into a repetition."""

    def __init__(self) -> None:
        random = np.random.default_rng(1)
        self.values, self.kept = random.random(NUMBERS), np.empty(NUMBERS)
        self.mixed, self.half = random.integers(0, 2**62, NUMBERS, dtype=np.uint64), np.zeros(NUMBERS, np.uint64)
        self.order, self.sorted = random.permutation(NUMBERS), np.zeros(NUMBERS, np.int64)
        self.source, self.target = np.ones(COPY_BYTES, np.uint8), np.ones(COPY_BYTES, np.uint8)

    def compute(self) -> None:
        for _ in range(ROUNDS):
            np.multiply(self.values, self.values, out=self.kept)
            np.add(self.kept, 1.0, out=self.kept)
            np.sqrt(self.kept, out=self.kept)
            np.right_shift(self.mixed, 7, out=self.half)
            np.bitwise_xor(self.mixed, self.half, out=self.half)
            np.multiply(self.half, 2862933555777941757, out=self.half)
            np.copyto(self.sorted, self.order)
            self.sorted.sort()

    def copy(self) -> None:
        np.copyto(self.target, self.source)

    def on(self, core: int) -> dict[str, Any]:
        os.sched_setaffinity(0, {core})
        return {
            "core": core,
            "compute": least(self.compute, COMPUTE_REPETITIONS),
            "copy": least(self.copy, COPY_REPETITIONS),
        }


def least(work: Callable[[], None], repetitions: int) -> float:
    """The least of several times: what the core can do now, without what happened to come between."""
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    song = Song()
    for line in sys.stdin:
        try:
            answer: Any = [song.on(core) for core in json.loads(line)]
        except OSError:  # a core that is not there, or not ours
            answer = []
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
