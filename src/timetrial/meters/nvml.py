"""Energy of NVIDIA GPUs: the driver's counter of millijoules, or where a GPU has none (before Volta) its power.

The driver's library is asked directly, for five functions: no package has to be installed for them.
"""

from __future__ import annotations

import ctypes
from typing import Any

from timetrial.meters.power_source import PowerSource, Unreadable

LIBRARY = "libnvidia-ml.so.1"
_MILLI = 1e-3
_WORDS = {3: "not supported", 4: "no permission", 9: "no driver is loaded", 15: "the GPU is lost"}


def find(name: str = LIBRARY) -> tuple[list[PowerSource], list[str]]:
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return [], [f"no NVIDIA driver ({name} is not there)"]
    return ask(library)


def ask(library: Any) -> tuple[list[PowerSource], list[str]]:
    """`library` as ctypes shows it."""
    try:
        _call(library, "nvmlInit_v2")
        count = _value(library, "nvmlDeviceGetCount_v2", ctypes.c_uint())
    except Unreadable as error:
        return [], [f"NVIDIA driver: {error}"]
    found, problems = [], []
    for index in range(count):
        try:
            found.append(_gpu(library, index))
        except Unreadable as error:
            problems.append(f"GPU {index}: {error}")
    return found, problems if count else ["no NVIDIA GPU"]


def _gpu(library: Any, index: int) -> PowerSource:
    handle = ctypes.c_void_p()
    _call(library, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))

    def energy() -> float:
        return _MILLI * _value(library, "nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong(), handle)

    def power() -> float:
        return _MILLI * _value(library, "nvmlDeviceGetPowerUsage", ctypes.c_uint(), handle)

    name = f"cuda:{index}"
    try:
        energy()
        return PowerSource("NVML", name, name, "counter", energy)
    except Unreadable:
        power()
        return PowerSource("NVML", name, name, "power", power)


def _value(library: Any, function: str, target: Any, *before: Any) -> int:
    _call(library, function, *before, ctypes.byref(target))
    return int(target.value)


def _call(library: Any, function: str, *arguments: Any) -> None:
    try:
        code = getattr(library, function)(*arguments)
    except AttributeError:
        raise Unreadable(f"this driver has no {function}") from None
    if code:
        raise Unreadable(f"{function} says {_WORDS.get(code, f'error {code}')}")
