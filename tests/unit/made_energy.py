"""A made machine with energy counters: a powercap tree, and an NVIDIA library that answers as one in C does."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RANGE = 262_143.328850  # joules, of a counter of 32 bits

PACKAGE, DRAM, CORE, PSYS, SECOND = (
    "intel-rapl:0", "intel-rapl:0:1", "intel-rapl:0:0", "intel-rapl:2", "intel-rapl:1",
)  # fmt: skip
NAMES = {PACKAGE: "package-0", CORE: "core", DRAM: "dram", SECOND: "package-1", PSYS: "psys"}


class Powercap:
    """The folder that Linux would show below /sys/class/powercap, its counters set by hand."""

    def __init__(self, root: Path, zones: Mapping[str, str], wraps_at: float = RANGE) -> None:
        self.root, self.wraps_at = root, wraps_at
        self._vanished: set[str] = set()
        self._lock = threading.Lock()
        self.base = root / "class" / "powercap"
        (self.base / "intel-rapl").mkdir(parents=True)  # the driver itself: no zone
        for zone, name in zones.items():
            (self.base / zone).mkdir()
            (self.base / zone / "name").write_text(f"{name}\n")
            (self.base / zone / "max_energy_range_uj").write_text(f"{wraps_at * 1e6:.0f}\n")
            self.set(zone, 0.0)

    def set(self, zone: str, joules: float) -> None:
        """Whole at once, and around its end."""
        temporary = self.base / zone / ".energy_uj"
        temporary.write_text(f"{int(joules * 1e6) % int(self.wraps_at * 1e6)}\n")
        os.replace(temporary, self.base / zone / "energy_uj")

    def vanish(self, zone: str) -> None:
        with self._lock:
            self._vanished.add(zone)
            (self.base / zone / "energy_uj").unlink()

    @contextmanager
    def running(self, watts: Mapping[str, float], start: float = 0.0) -> Iterator[None]:
        """The counters go on by themselves, every few milliseconds."""
        ended, begun = threading.Event(), time.monotonic()

        def go_on() -> None:
            while not ended.wait(0.002):
                with self._lock:
                    for zone in watts.keys() - self._vanished:
                        self.set(zone, start + watts[zone] * (time.monotonic() - begun))

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


class Library:
    """Stands where ctypes shows libnvidia-ml.so.1. GPUs are (millijoules or None, milliwatts or None)."""

    def __init__(self, *gpus: tuple[int | None, int | None], init: int = 0) -> None:
        self.gpus, self.init = list(gpus), init

    def nvmlInit_v2(self) -> int:
        return self.init

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self.gpus)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, handle: Any) -> int:
        handle._obj.value = index.value + 1
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: ctypes.c_void_p, energy: Any) -> int:
        return self._tell(handle, 0, energy)

    def nvmlDeviceGetPowerUsage(self, handle: ctypes.c_void_p, power: Any) -> int:
        return self._tell(handle, 1, power)

    def _tell(self, handle: ctypes.c_void_p, which: int, target: Any) -> int:
        value = self.gpus[(handle.value or 0) - 1][which]
        if value is None:
            return 3
        target._obj.value = value
        return 0


# As Library, in C: GPU 0 has a counter that goes on by 150 W, GPU 1 only a power of 30 W.
LIBRARY_IN_C = """
#include <time.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **handle) { *handle = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) { *milliwatts = (long)handle == 1 ? 150000 : 30000; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
    struct timespec now;
    if ((long)handle == 2) return 3;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules = (unsigned long long)((now.tv_sec + now.tv_nsec * 1e-9) * 150000.0);
    return 0;
}
"""


class Clock:
    """Goes on only when it is told to, or slept on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.beside: Callable[[float], None] = lambda now: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.beside(self.now)
