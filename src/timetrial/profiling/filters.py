"""Which operations a view is of: by a word in what they are called, by a column, or by their least share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from timetrial.engines.registry import advice
from timetrial.profiling.schema import Frame

COLUMNS = ("name", "type", "layer", "phase", "class", "thread", "attribution")
_WORDY = ("name", "type", "layer")  # where a word alone is looked for
_SHARE = re.compile(r"share\s*>=?\s*(\d+(?:\.\d+)?)\s*(%?)")


class ViewError(ValueError):
    """A view that there is not, or that shows nothing: says what there is."""


@dataclass(frozen=True)
class Filter:
    """`column` is empty where the pattern may be in any name; `*` and `?` stand for any letters."""

    text: str
    column: str
    pattern: str

    def of(self, ops: Frame) -> NDArray[np.bool_]:
        found = np.zeros(len(ops), dtype=bool)
        for name in (self.column,) if self.column else _WORDY:
            values = ops[name].astype("category").cat
            fitting = [code for code, value in enumerate(values.categories) if self._fits(str(value))]
            found |= np.isin(values.codes, fitting)
        return found

    def _fits(self, value: str) -> bool:
        return fnmatchcase(value, self.pattern) if self.column else self.pattern.lower() in value.lower()


@dataclass(frozen=True)
class Filters:
    """All must hold. Rows of less than `least` of the time are summed up in one."""

    of_operations: tuple[Filter, ...] = ()
    least: float = 0.0

    def keep(self, ops: Frame) -> NDArray[np.bool_]:
        kept = np.ones(len(ops), dtype=bool)
        for one in self.of_operations:
            kept &= one.of(ops)
        return kept

    def check(self, tables: Sequence[Frame]) -> None:
        """A filter that nothing passes in any table is a mistake."""
        for one in self.of_operations:
            if not any(one.of(ops).any() for ops in tables):
                raise ViewError(f"filter '{one.text}': no operation is so{_there(one, tables)}")
        if not any(self.keep(ops).any() for ops in tables):
            raise ViewError("the filters together leave no operation; leave one of them out")


def parse(texts: Iterable[str]) -> Filters:
    """`conv` (a word), `phase=backward`, `layer=conv*`, `class=matmul`, `share>1%`."""
    found, least = list[Filter](), 0.0
    for text in texts:
        if share := _SHARE.fullmatch(text.strip()):
            least = float(share[1]) / (100 if share[2] else 1)
            continue
        if re.match(r"\s*share\b", text):
            raise ViewError(f"filter '{text}': write the least share as share>1%")
        column, equals, pattern = text.partition("=")
        if equals and column not in COLUMNS:
            raise ViewError(f"filter '{text}': there is no '{column}' to choose by; {advice(column, COLUMNS)}")
        if not (pattern if equals else text).strip():
            raise ViewError(f"filter '{text}': is empty; write a word, or phase=backward, layer=conv1, share>1%")
        found.append(Filter(text, column, pattern) if equals else Filter(text, "", text))
    return Filters(tuple(found), least)


def _there(one: Filter, tables: Sequence[Frame]) -> str:
    if not one.column:
        return " in its name, type or layer"
    values = dict.fromkeys(str(value) for ops in tables for value in ops[one.column].dropna().unique())
    return f"; {advice(one.pattern, list(values))}" if values else f"; none has a {one.column}"
