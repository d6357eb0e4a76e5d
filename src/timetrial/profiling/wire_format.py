"""Protocol buffers without their library: the fields of a message by their numbers, and messages one after another.

Whoever reads knows which number means what. A field is an integer, or the bytes of a text or of a message within.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MOST = 1 << 63


class Malformed(ValueError):
    """No message of this kind can be these bytes."""


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where what follows it begins."""
    found = shift = 0
    while True:
        if at >= len(data):
            raise Malformed("it ends within a number")
        byte = data[at]
        found |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return found, at
        shift += 7
        if shift > 63:
            raise Malformed("a number in it does not end")


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of each field, in their order."""
    at, size = 0, len(data)
    while at < size:
        key, at = (data[at], at + 1) if data[at] < 128 else varint(data, at)  # most numbers are a byte long
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if kind == BYTES:
            length, at = (data[at], at + 1) if at < size and data[at] < 128 else varint(data, at)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise Malformed(f"it has a field of the unknown kind {kind}")
        end = at + length
        if end > size or not number:
            raise Malformed("it ends within a field" if number else "it has a field numbered 0")
        yield number, data[at:end] if kind == BYTES else int.from_bytes(data[at:end], "little")
        at = end


def messages(data: memoryview) -> Iterator[memoryview]:
    """Messages that each stand after their length."""
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        if at + length > len(data):
            raise Malformed("it ends within a message")
        yield data[at : at + length]
        at += length


def text(value: int | memoryview) -> str:
    return str(part(value), "utf-8", "replace")


def part(value: int | memoryview) -> memoryview:
    """A message within a message."""
    if isinstance(value, int):
        raise Malformed("it has a number where a message should be")
    return value


def whole(value: int | memoryview) -> int:
    """An int64: the upper half of the numbers are the negative ones."""
    if not isinstance(value, int):
        raise Malformed("it has a message where a number should be")
    return value - 2 * _MOST if value >= _MOST else value
