"""The wire format of Protocol Buffers: fields of one long message, one after the other, or of many short ones at once.

Traces hold up to millions of small messages of a few fields each: those are taken apart field by field for all messages
together, with arrays. Nothing is known here of what the fields mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
VARINT, WIDE, LENGTH, NARROW = 0, 1, 2, 5  # wire types: the others have not been written for a decade
LONGEST = 10  # bytes of a variable-length integer
WORD = (1 << 64) - 1
_FIXED = {WIDE: 8, NARROW: 4}


class Damaged(ValueError):
    """The bytes are no such message."""


class Span(NamedTuple):
    """Where the bytes of a length-delimited field lie."""

    start: int
    end: int


def walk(data: bytes, span: Span) -> Iterator[tuple[int, int | Span]]:
    """Number and value of each field of one message; a fixed-width value comes as its bits."""
    at, end = span.start, span.end
    while at < end:
        key, at = _varint(data, at, end)
        kind = key & 7
        value: int | Span
        if kind == LENGTH:
            size, at = _varint(data, at, end)
            value, at = Span(at, at + size), at + size
        elif kind == VARINT:
            value, at = _varint(data, at, end)
        elif kind in _FIXED:
            value, at = int.from_bytes(data[at : at + _FIXED[kind]], "little"), at + _FIXED[kind]
        else:
            raise Damaged(f"a field of the unknown kind {kind} at byte {at}")
        if at > end:
            raise Damaged(f"a field ends {at - end} bytes behind its message, at byte {end}")
        yield key >> 3, value


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & WORD, at
        shift += 7
        if shift >= 7 * LONGEST:
            break
    raise Damaged(f"a number without end at byte {at}")


def numbers(data: bytes, value: int | Span) -> list[int]:
    """A repeated number: packed, or one of the single ones."""
    if not isinstance(value, Span):
        return [value]
    found, at = [], value.start
    while at < value.end:
        number, at = _varint(data, at, value.end)
        found.append(number)
    return found


def text(data: bytes, value: int | Span) -> str:
    if not isinstance(value, Span):
        raise Damaged("a number where a text belongs")
    return data[value.start : value.end].decode("utf-8", "replace")


def signed(value: int | Span) -> int:
    """As an int64 field was meant."""
    if isinstance(value, Span):
        raise Damaged("a text where a number belongs")
    return value - (1 << 64) if value >> 63 else value


@dataclass(frozen=True)
class Fields:
    """Of many messages, a row for each field. `value` is the number (the bits of a fixed-width one), or where a
    length-delimited field begins; `end` is where that ends, else zero."""

    message: Ints
    number: Ints
    value: Ints
    end: Ints

    def only(self, number: int) -> Fields:
        rows = self.number == number
        return Fields(self.message[rows], self.number[rows], self.value[rows], self.end[rows])

    def column(self, number: int, count: int, missing: int = 0) -> Ints:
        """The field's value in each message; the last counts, as the format has it."""
        found, rows = np.full(count, missing, dtype=np.int64), self.number == number
        found[self.message[rows]] = self.value[rows]
        return found


def scan(data: Bytes, start: Ints, end: Ints) -> Fields:
    """The fields of all messages: the first of each, then the second of each that has one, and so on."""
    message, at = np.arange(len(start)), start.astype(np.int64)
    rounds: list[tuple[Ints, Ints, Ints, Ints]] = []
    while True:
        more = at < end
        message, at, end = message[more], at[more], end[more]
        if not len(message):
            break
        key, at = _varints(data, at, end)
        value, stop, at = _values(data, key & 7, at, end)
        if np.any(at > end):
            raise Damaged("a field ends behind its message")
        rounds.append((message, key >> 3, value, stop))
    if not rounds:
        nothing = np.zeros(0, dtype=np.int64)
        return Fields(nothing, nothing, nothing, nothing)
    return Fields(*(np.concatenate(parts) for parts in zip(*rounds, strict=True)))


def _values(data: Bytes, kind: Ints, at: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Value, where a length-delimited one ends, and where the next field begins."""
    value, stop, following = np.zeros_like(at), np.zeros_like(at), at.copy()
    plain = (kind == VARINT) | (kind == LENGTH)
    value[plain], following[plain] = _varints(data, at[plain], end[plain])
    long = kind == LENGTH
    if np.any(value[long] < 0) or np.any(value[long] > len(data)):
        raise Damaged("a field is longer than the file")
    stop[long] = following[long] + value[long]
    value[long], following[long] = following[long], stop[long]
    for wire, size in _FIXED.items():
        rows = kind == wire
        if np.any(at[rows] + size > end[rows]):
            raise Damaged("a field ends behind its message")
        for i in range(size):
            value[rows] |= data[at[rows] + i].astype(np.int64) << (8 * i)
        following[rows] += size
        plain |= rows
    if not np.all(plain):
        raise Damaged("a field of an unknown kind")
    return value, stop, following


def _varints(data: Bytes, at: Ints, end: Ints) -> tuple[Ints, Ints]:
    value, at = np.zeros(len(at), dtype=np.uint64), at.copy()
    open_ = np.arange(len(at))
    for i in range(LONGEST):
        if not len(open_):
            break
        if np.any(at[open_] >= end[open_]):
            raise Damaged("a number without end")
        byte = data[at[open_]]
        value[open_] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * i)
        at[open_] += 1
        open_ = open_[byte >= 0x80]
    if len(open_):
        raise Damaged("a number without end")
    return value.view(np.int64), at
