"""The events of a kineto trace as columns, without what nobody needs. What cannot be is refused here."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.profiling.readers import chrome
from timetrial.profiling.schema import TraceError

HOST, ANNOTATION, DEVICE, LAUNCH, MEMORY = range(5)
_KINDS = {
    "cpu_op": HOST,
    "user_annotation": ANNOTATION,
    "kernel": DEVICE, "gpu_memcpy": DEVICE, "gpu_memset": DEVICE,
    "cuda_runtime": LAUNCH, "cuda_driver": LAUNCH,
}  # fmt: skip
_NUMBERS = {HOST: "Sequence number", DEVICE: "correlation", LAUNCH: "correlation"}
_LATEST = 2**53  # microseconds: beyond, they could not be told apart
_MOST_NUMBER = 2**63


class Codes(dict[Any, int]):
    """Small numbers for things in the order in which they first come."""

    def __missing__(self, key: Hashable) -> int:
        self[key] = found = len(self)
        return found


@dataclass(frozen=True)
class Columns:
    kind: NDArray[np.int8]
    name: NDArray[np.int64]
    thread: NDArray[np.int64]
    start: NDArray[np.int64]  # nanoseconds from some moment of this file
    duration: NDArray[np.int64]
    number: NDArray[np.int64]  # sequence number, correlation or bytes, as the kind has it; -1 for none
    peaks: dict[str, int]  # most bytes alive, above what was at the beginning, by device


def columns(path: Path, names: Codes, threads: Codes) -> Columns:
    kinds, codes, places = array("b"), array("q"), array("q")
    starts, lengths, numbers = array("d"), array("d"), array("q")
    memory = _Memory()
    for event in chrome.events(path):
        try:
            kind = _kind(event)
            if kind is None:
                continue
            arguments = event.get("args") or {}
            start = event["ts"]
            if kind == MEMORY:
                length, number = 0, arguments["Bytes"]
                memory.meet(arguments)
            else:
                length, number = event["dur"], arguments.get(_NUMBERS.get(kind), -1)
            starts.append(start)
            lengths.append(length)
            numbers.append(number if -_MOST_NUMBER <= number < _MOST_NUMBER else -1)
            codes.append(names[intern(event["name"])])  # refuses what is no text
            places.append(threads[event.get("pid"), event["tid"], kind == DEVICE])
            kinds.append(kind)
        except KeyError as error:
            raise _strange(path, event, f"has no {error}") from None
        except (TypeError, AttributeError, OverflowError) as error:
            raise _strange(path, event, f"has a value that cannot be ({error})") from None
    start_ns, length_ns = _nanoseconds(path, np.array(starts), np.array(lengths), list(names), codes)
    name, thread, number = (np.array(column, np.int64) for column in (codes, places, numbers))
    return Columns(np.array(kinds, np.int8), name, thread, start_ns, length_ns, number, memory.peaks)


def _kind(event: dict[str, Any]) -> int | None:
    """None for what is of no use here: names of threads, arrows from forward to backward, frames of Python."""
    if event.get("ph") == "X":
        return _KINDS.get(event.get("cat", ""))
    return MEMORY if event.get("ph") == "i" and event.get("name") == "[memory]" else None


def _strange(path: Path, event: dict[str, Any], what: str) -> TraceError:
    name = str(event.get("name", "an event"))[:60]
    return TraceError(f"{path}: '{name}' {what}: written by another version of torch? {chrome.REMEDY}")


def _nanoseconds(
    path: Path, start: NDArray[np.float64], length: NDArray[np.float64], names: list[str], codes: array[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """From microseconds with decimals. The difference to a time nearby is exact, the time itself is not."""
    wrong = np.flatnonzero(~(np.abs(start) < _LATEST) | ~((length >= 0) & (length < _LATEST)))
    if len(wrong):
        row = wrong[0]
        what = f"begins at {start[row]:g} and lasts {length[row]:g} µs, which cannot be"
        raise TraceError(f"{path}: '{names[codes[row]][:60]}' {what}; {chrome.REMEDY}")
    if not len(start):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    since = start - np.floor(start.min())
    return np.rint(since * 1000).astype(np.int64), np.rint(length * 1000).astype(np.int64)


class _Memory:
    """What the allocators say is alive. They count only what was asked for while tracing, and go on from round to
    round: so the first figure of a round is its zero."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._zero: dict[str, int] = {}

    def meet(self, arguments: dict[str, Any]) -> None:
        alive = arguments.get("Total Allocated")
        if alive is None:
            return
        device = "cuda" if arguments.get("Device Type") == 1 else "cpu"
        zero = self._zero.setdefault(device, alive - arguments["Bytes"])
        self.peaks[device] = max(self.peaks.get(device, 0), alive - zero)
