"""Traces of the original engines written by hand, apart from what reads them: protocol buffers field by field."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def varint(number: int) -> bytes:
    number %= 1 << 64
    found = b""
    while number > 127:
        found += bytes([number % 128 + 128])
        number //= 128
    return found + bytes([number])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number * 8) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number * 8 + 2) + varint(len(content)) + content


def node(
    name: str,
    kind: str,
    start: int,
    length: int,
    *,
    inputs: str = "",
    asked: int = 0,
    room: int = 0,
    held: int = 0,
    out: int = 0,
) -> bytes:
    """A NodeExecStats; times in nanoseconds."""
    content = field(1, name) + field(2, start // 1000) + field(4, length // 1000)
    if asked:
        content += field(6, field(1, "cpu") + field(2, asked) + field(3, asked))
    if out:
        content += field(7, field(1, 0) + field(3, field(1, 1) + field(4, field(1, out))))
    content += field(8, f"{name} = {kind}({inputs})" if kind else "")
    content += field(12, field(1, room) + field(3, held))
    return content + field(13, start) + field(15, length)


def metadata(*devices: tuple[str, list[bytes]]) -> bytes:
    """A RunMetadata with the nodes of each device, and a field that nobody reads."""
    stats = b"".join(field(1, field(1, name) + b"".join(field(2, made) for made in nodes)) for name, nodes in devices)
    return field(1, stats) + field(2, b"a graph of costs")


def pack(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content))
    return path


def pack_json(path: Path, content: Any) -> Path:
    return pack(path, json.dumps(content).encode())


def write_rounds(folder: Path, rounds: list[list[tuple[int, int, bytes]]]) -> Path:
    """Each step as its beginning, its end and its RunMetadata."""
    number = 0
    for at, steps in enumerate(rounds):
        pack(folder / f"round{at}.pb.gz", b"".join(varint(len(message)) + message for *_, message in steps))
        told = [{"step": number + i, "start_ns": begin, "end_ns": end} for i, (begin, end, _) in enumerate(steps)]
        number += len(steps)
        pack_json(folder / f"round{at}.json.gz", told)
    return folder
