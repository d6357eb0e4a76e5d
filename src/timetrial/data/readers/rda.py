"""A data frame out of an R data file (`save()`, versions 2 and 3, XDR): https://cran.r-project.org/doc/manuals/r-release/R-ints.html

Only what a frame of numbers, words and factors is made of is understood; code, environments and the like are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from timetrial.data.readers.files import content
from timetrial.data.samples import Array, DataError

LIMIT = 2**30
_DEEPEST = 100
_NIL, _REFERENCE, _SYMBOL, _PAIRS, _CHARS = 254, 255, 1, 2, 9
_LOGICALS, _INTEGERS, _REALS, _TEXTS, _VALUES = _VECTORS = (10, 13, 14, 16, 19)
_HAS_ATTRIBUTES, _HAS_TAG = 0x200, 0x400


@dataclass(frozen=True)
class Column:
    values: Array
    levels: tuple[str, ...] = ()  # of a factor: the values are then 1 for the first level


@dataclass
class _Value:
    """What was read, with its attributes."""

    value: Any
    attributes: dict[str, Any] = field(default_factory=dict)


def frame(path: Path, name: str) -> dict[str, Column]:
    """The columns of one data frame of the file."""
    stored = _Stream(path, content(path, LIMIT)).objects()
    if name not in stored:
        raise DataError(f"{path}: has no object {name}; it has {', '.join(stored) or 'none'}")
    columns, names = stored[name].value, stored[name].attributes.get("names")
    if not isinstance(columns, list) or names is None or len(names.value) != len(columns):
        raise DataError(f"{path}: {name} is no data frame")
    return {word: _column(path, word, column) for word, column in zip(names.value, columns, strict=True)}


def _column(path: Path, name: str, column: _Value) -> Column:
    levels = column.attributes.get("levels")
    if not isinstance(column.value, np.ndarray):
        raise DataError(f"{path}: column {name} holds no numbers")
    return Column(column.value, tuple(levels.value) if levels else ())


class _Stream:
    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data, self.at = path, data, 0
        self.symbols: list[str] = []
        self.depth = 0

    def objects(self) -> dict[str, _Value]:
        head = self._bytes(7)
        if head not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise DataError(f"{self.path}: is no R data file in the XDR form")
        version = self._whole()
        self._bytes(8)  # which R wrote it, and which can read it
        if version == 3:
            self._bytes(self._length(1))  # the name of the encoding
        read = self._item()
        return read.attributes

    def _item(self) -> _Value:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise DataError(f"{self.path}: nested too deeply at byte {self.at:,}")
        flags = self._whole()
        kind = flags & 0xFF
        try:
            reader = self._KINDS[kind]
        except KeyError:
            raise DataError(
                f"{self.path}: at byte {self.at - 4:,} is an R value of kind {kind}, which no table of numbers has"
            ) from None
        value = reader(self, flags)
        # Only behind vectors: in the flags of a reference this bit is part of its number.
        if flags & _HAS_ATTRIBUTES and kind in _VECTORS:
            value.attributes = self._item().attributes
        self.depth -= 1
        return value

    def _nil(self, flags: int) -> _Value:
        return _Value(None)

    def _symbol(self, flags: int) -> _Value:
        self.symbols.append(self._item().value)
        return _Value(self.symbols[-1])

    def _reference(self, flags: int) -> _Value:
        place = (flags >> 8) or self._whole()
        if not 1 <= place <= len(self.symbols):
            raise DataError(f"{self.path}: refers to a name that is not there, at byte {self.at:,}")
        return _Value(self.symbols[place - 1])

    def _pairs(self, flags: int) -> _Value:
        """A linked list, followed in a loop: each element says whether another comes."""
        found: dict[str, _Value] = {}
        while flags & 0xFF == _PAIRS:
            if flags & _HAS_ATTRIBUTES:
                self._item()
            name = self._item().value if flags & _HAS_TAG else ""
            found[str(name)] = self._item()
            flags = self._whole()
        if flags & 0xFF != _NIL:
            raise DataError(f"{self.path}: a list of pairs does not end, at byte {self.at:,}")
        return _Value(None, found)

    def _chars(self, flags: int) -> _Value:
        length = self._whole()
        if length == -1:
            return _Value(None)
        return _Value(self._bytes(self._checked(length, 1)).decode("utf-8", "replace"))

    def _wholes(self, flags: int) -> _Value:
        return self._numbers(">i4")

    def _reals(self, flags: int) -> _Value:
        return self._numbers(">f8")

    def _numbers(self, kind: str) -> _Value:
        size = np.dtype(kind).itemsize
        count = self._length(size)
        return _Value(np.frombuffer(self._bytes(count * size), kind).astype(kind.replace(">", "=")))

    def _texts(self, flags: int) -> _Value:
        return _Value([self._item().value for _ in range(self._length(4))])

    def _values(self, flags: int) -> _Value:
        return _Value([self._item() for _ in range(self._length(4))])

    def _length(self, size: int) -> int:
        return self._checked(self._whole(), size)

    def _checked(self, count: int, size: int) -> int:
        """A count that the rest of the file has room for, so that a damaged one takes no memory."""
        if not 0 <= count * size <= len(self.data) - self.at:
            raise DataError(f"{self.path}: announces {count:,} values at byte {self.at:,}; it is cut off or damaged")
        return count

    def _whole(self) -> int:
        return int(struct.unpack(">i", self._bytes(4))[0])

    def _bytes(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise DataError(f"{self.path}: ends at byte {len(self.data):,} in the midst of a value; it is cut off")
        self.at += count
        return piece

    _KINDS: ClassVar[dict[int, Callable[[_Stream, int], _Value]]] = {
        _NIL: _nil, _REFERENCE: _reference, _SYMBOL: _symbol, _PAIRS: _pairs, _CHARS: _chars,
        _LOGICALS: _wholes, _INTEGERS: _wholes, _REALS: _reals, _TEXTS: _texts, _VALUES: _values,
    }  # fmt: skip
