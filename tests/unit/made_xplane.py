"""Writes small traces as the profilers of TensorFlow and JAX do, apart from the reader: an encoder of its own.

Times are microseconds. Field numbers are written out, as the published `.proto` files have them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Value = int | float | str | bytes


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def part(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


@dataclass(frozen=True)
class Event:
    name: str
    start: float
    length: float = 0.0
    stats: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Ref:
    """A text that is told by its number, as the names of instructions are."""

    text: str


class Names:
    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known) + 1)

    def entries(self, number: int) -> bytes:
        return b"".join(
            part(number, part(1, key) + part(2, part(1, key) + part(2, name))) for name, key in self.known.items()
        )


def _stat(names: Names, name: str, value: object) -> bytes:
    head = part(1, names(name))
    if isinstance(value, Ref):
        return head + part(7, names(value.text))
    if isinstance(value, bytes):
        return head + part(6, value)
    return head + (part(5, value) if isinstance(value, str) else part(4, int(value)))  # type: ignore[call-overload]


def host(threads: Mapping[str, Iterable[Event]], since: int = 1000) -> bytes:
    """The plane of the machine's own threads."""
    events, stats, lines = Names(), Names(), b""
    for thread, content in threads.items():
        told = b"".join(
            part(
                4,
                part(1, events(event.name))
                + part(2, round(event.start * 1e6))
                + part(3, round(event.length * 1e6))
                + b"".join(part(4, _stat(stats, name, value)) for name, value in event.stats.items()),
            )
            for event in content
        )
        lines += part(3, part(2, thread) + part(3, since) + told)
    return part(1, part(2, "/host:CPU") + lines + events.entries(4) + stats.entries(5))


def programs(content: Mapping[str, bytes]) -> bytes:
    """The plane that holds compiled programs, by `module(number)`."""
    stats, told = Names(), b""
    for key, (name, program) in enumerate(content.items(), 1):
        meta = part(1, key) + part(2, name) + part(5, _stat(stats, "Hlo Proto", program))
        told += part(4, part(1, key) + part(2, meta))
    return part(1, part(2, "/host:metadata") + told + stats.entries(5))


@dataclass(frozen=True)
class Instruction:
    name: str
    opcode: str
    reads: tuple[int, ...] = ()
    op_name: str = ""
    calls: tuple[int, ...] = ()
    shape: tuple[int, ...] = (4,)
    number: int = 0  # of a parameter


def hlo(module: str, computations: Mapping[int, Mapping[int, Instruction]], entry: int) -> bytes:
    told = b""
    for key, instructions in computations.items():
        content = b"".join(part(2, _instruction(number, one)) for number, one in instructions.items())
        told += part(3, part(1, f"c{key}") + content + part(5, key))
    return part(1, part(1, module) + part(6, entry) + told)


def _instruction(number: int, one: Instruction) -> bytes:
    shape = part(2, 11) + part(3, b"".join(map(varint, one.shape)))
    found = part(1, one.name) + part(2, one.opcode) + part(3, shape) + part(9, one.number) + part(35, number)
    if one.op_name:
        found += part(7, part(2, one.op_name))
    if one.reads:
        found += part(36, b"".join(map(varint, one.reads)))
    return found + b"".join(part(38, called) for called in one.calls)


def steps(count: int, length: float = 1000.0, first: int = 0) -> list[Event]:
    return [Event("step", i * length, length - 10, {"step_num": first + i, "_r": 1}) for i in range(count)]


def write(folder: Path, *rounds: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(rounds):
        (folder / f"round{number}.xplane.pb.gz").write_bytes(gzip.compress(content, compresslevel=1, mtime=0))
    return folder
