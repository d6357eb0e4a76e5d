"""What this machine can do at most: matrix products by each engine's own routine, and memory bandwidth.

A few sizes are tried and every attempt is told; the parent takes the best. One process has one number of threads.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from timetrial_worker import adapters
from timetrial_worker.adapters.base import Unsupported

LAP_SECONDS = 0.05
LAPS = 5
LONGEST_PRODUCT = 0.5  # seconds; a size that would take longer is left out

clock = time.perf_counter


def measure(job, wire):
    """`job`: adapter, settings, dtypes, sizes (rising), copy_bytes (0: no bandwidth)."""
    adapter = adapters.load(job["adapter"], job["settings"])
    with wire.phase("import"):
        versions = adapter.start()
    wire.tell("started", versions=versions, traits={})
    with wire.phase("products"):
        for dtype in job["dtypes"]:
            products(adapter, dtype, job["sizes"], wire.tell)
    if job["copy_bytes"]:
        with wire.phase("bandwidth"):
            bandwidth(job["settings"]["threads"], job["copy_bytes"], wire.tell)


def products(adapter, dtype, sizes, tell, clock=clock):
    """Square products of each size, until one would take too long."""
    last = None
    for size in sizes:
        if last is not None and last[1] * (float(size) / last[0]) ** 3 > LONGEST_PRODUCT:
            return
        try:
            multiply = adapter.multiplier(dtype, size)
        except Unsupported as error:
            tell("no_product", dtype=dtype, reason=str(error))
            return
        seconds = best(multiply, clock)
        tell("product", dtype=dtype, size=size, seconds=seconds, rate=2.0 * size**3 / seconds)
        last = size, seconds


def bandwidth(threads, size, tell, clock=clock):
    """Copy and add as in STREAM: bytes that the program reads and writes, shared out among the threads."""
    arrays = [np.full(size // 8, value, np.float64) for value in (1.0, 2.0, 3.0)]
    parts = list(zip(*[np.array_split(array, threads) for array in arrays]))
    with ThreadPoolExecutor(threads) as pool:
        for name, kernel, moved in (("copy", _copy, 2), ("add", _add, 3)):

            def sweep(count, kernel=kernel):
                for _ in range(count):
                    list(pool.map(kernel, parts))

            seconds = best(sweep, clock)
            tell("bandwidth", kernel=name, bytes=size, seconds=seconds, rate=moved * arrays[0].nbytes / seconds)


def _copy(part):
    np.copyto(part[2], part[0])


def _add(part):
    np.add(part[0], part[1], out=part[2])


def best(work, clock=clock):
    """Least seconds a repetition of several laps. The first call may compile, and is not timed."""
    work(1)
    count = 1
    while True:
        seconds = _lap(work, count, clock)
        if seconds >= LAP_SECONDS:
            break
        count *= 2
    return min([seconds] + [_lap(work, count, clock) for _ in range(LAPS - 1)]) / count


def _lap(work, count, clock):
    start = clock()
    work(count)
    return clock() - start
