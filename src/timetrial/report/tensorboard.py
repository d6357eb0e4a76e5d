"""Event files that TensorBoard reads: a header, then scalars, each a protocol message in a record with checksums.

The format is small enough to be written by hand: TFRecord frames (length, masked CRC-32C of it, data, masked CRC-32C
of them) around messages `Event{wall_time=1, step=2, file_version=3, summary=5{value=1{tag=1, simple_value=2}}}`.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from timetrial.records.store import cannot_write

_POLYNOMIAL = 0x82F63B78  # Castagnoli, reflected


def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        found.append(byte)
    return tuple(found)


_CRC = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def scalar(tag: str, value: float, step: int, when: float) -> bytes:
    name = tag.encode()
    inner = _bytes(1, name) + _key(2, 5) + struct.pack("<f", value)
    return _key(1, 1) + struct.pack("<d", when) + _key(2, 0) + _varint(step) + _bytes(5, _bytes(1, inner))


def _header(when: float) -> bytes:
    return _key(1, 1) + struct.pack("<d", when) + _bytes(3, b"brain.Event:2")


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _bytes(number: int, data: bytes) -> bytes:
    return _key(number, 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


class EventFile:
    """`FOLDER/events.out.tfevents.…`, flushed after each event, so that TensorBoard can follow it."""

    def __init__(self, folder: Path, clock: Any = time.time) -> None:
        self._clock = clock
        self.path = folder / f"events.out.tfevents.{int(clock())}.timetrial.{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = open(self.path, "ab")  # noqa: SIM115  closed by `close`
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self._write(_header(clock()))

    def hear(self, event: Mapping[str, Any]) -> None:
        """The worker's events of a training."""
        if event["event"] == "progress":
            known = {"train/loss": event["loss"], "train/step_seconds": event["step_seconds"]}
            if event.get("resident"):
                known["memory/resident_bytes"] = event["resident"]
            self._scalars(known, int(event["step"]))
        elif event["event"] == "epoch":
            scores = {f"test/{name}": event[name] for name in ("accuracy", "mse", "mae") if event.get(name) is not None}
            self._scalars({"epoch/loss": event["loss"], **scores}, int(event["step"]))

    def _scalars(self, values: Mapping[str, float], step: int) -> None:
        when = self._clock()
        for tag, value in values.items():
            self._write(scalar(tag, float(value), step, when))

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(framed(data))
            self._file.flush()
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def close(self) -> None:
        self._file.close()
