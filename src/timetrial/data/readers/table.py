"""Tables of numbers as text: a line a sample, one column the class or the target."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from timetrial.data.readers.files import content, every
from timetrial.data.readers.splitting import split
from timetrial.data.samples import Array, DataError, Samples

MOST_CLASSES = 1000
MOST = float(np.finfo(np.float32).max)
_Table = tuple[Array, Array]
_Column = list[tuple[int, str]]  # of targets: the line and the word


def read(folder: Path, target: str | None = None, test: float = 0.2, numeric: bool = False) -> Samples:
    """One CSV file, split here, or `train.csv` and `test.csv`. The target is the last column unless it is named.

    It is a class where it holds words or whole numbers (`numeric`: whole numbers are targets too).
    """
    pair = [every(folder, f"{part}.csv")[:1] for part in ("train", "test")]
    if all(pair):
        names, (train, held) = _together([found[0] for found in pair], target, numeric)
        return Samples(*train, *held, class_names=names)
    paths = every(folder, "*.csv", "*.tsv", "*.data")
    if len(paths) != 1:
        raise DataError(f"{folder}: should hold one .csv file, or train.csv and test.csv; it holds {len(paths)}")
    names, [(x, y)] = _together(paths, target, numeric)
    return split(paths[0], x, y, test, names)


def numbers(path: Path, columns: int, separator: str = ",") -> Array:
    """A table of nothing but numbers, without a heading."""
    rows = []
    for line, row in _rows(path, separator):
        cells = [cell for cell in row if cell]  # a blank at the end of a line is no column
        if len(cells) != columns:
            raise DataError(f"{path}, line {line}: has {len(cells)} columns; there should be {columns}")
        rows.append([_number(path, line, place, cell) for place, cell in enumerate(cells)])
    return np.array(rows, np.float64).reshape(-1, columns)


def _together(paths: list[Path], target: str | None, numeric: bool) -> tuple[tuple[str, ...], list[_Table]]:
    tables = [_table(path, target) for path in paths]
    names, coded = _targets([(path, column) for path, (_, column) in zip(paths, tables, strict=True)], numeric)
    return names, [(x, y) for (x, _), y in zip(tables, coded, strict=True)]


def _table(path: Path, target: str | None) -> tuple[Array, _Column]:
    rows = _rows(path, "\t" if ".tsv" in path.name else ",")
    first_line, first = next(rows, (0, []))
    if len(first) < 2:
        raise DataError(f"{path}: is no table with inputs and a target")
    heading = not all(_is_number(cell) for cell in first[:-1]) or (target is not None and target in first)
    chosen = _column(path, first if heading else [], target, len(first))
    inputs, words = [], []
    for line, row in rows if heading else _chained(first_line, first, rows):
        if len(row) != len(first):
            raise DataError(f"{path}, line {line}: has {len(row)} columns, the first line has {len(first)}")
        inputs.append([_number(path, line, place, cell) for place, cell in enumerate(row) if place != chosen])
        words.append((line, row[chosen].strip()))
        if not words[-1][1]:
            raise DataError(f"{path}, line {line}: the target, column {chosen + 1}, is empty")
    if not inputs:
        raise DataError(f"{path}: has a heading and no rows")
    return np.array(inputs, np.float32), words


def _chained(line: int, row: list[str], rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield line, row
    yield from rows


def _rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    try:
        text = content(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not a text file in UTF-8") from None
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        yield from ((reader.line_num, row) for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from None


def _column(path: Path, heading: list[str], target: str | None, count: int) -> int:
    if target is None:
        return count - 1
    names = [name.strip() for name in heading]
    if target in names:
        return names.index(target)
    if target.isdigit() and 1 <= int(target) <= count:
        return int(target) - 1
    raise DataError(f"{path}: has no column '{target}'; it has {', '.join(names) or f'columns 1 to {count}'}")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(path: Path, line: int, place: int, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = np.nan
    if not _fits(number):
        fault = _fault(cell, number) if cell.strip() else "is empty; fill or remove it"
        raise DataError(f"{path}, line {line}, column {place + 1}: {fault}")
    return number


def _fits(number: float) -> bool:
    """Finite, and so as float32 too."""
    return abs(number) <= MOST


def _fault(cell: str, number: float) -> str:
    reason = "too large for float32; scale" if np.isfinite(number) else "no finite number; fill"
    return f"'{cell.strip()[:40]}' is {reason} or remove it"


def _targets(columns: list[tuple[Path, _Column]], numeric: bool) -> tuple[tuple[str, ...], list[Array]]:
    """Classes in the order of their numbers or letters, the same in every file; or numbers."""
    every_word = {word for _, column in columns for _, word in column}
    are_numbers = all(_is_number(word) for word in every_word)
    if are_numbers and (numeric or not all(float(word).is_integer() for word in every_word)):
        return (), [_numbers(path, column) for path, column in columns]
    if len(every_word) > MOST_CLASSES:
        advice = "if it is a number to predict, say --numeric" if are_numbers else "name another column with --target"
        raise DataError(f"{columns[0][0]}: the target has {len(every_word):,} different values; {advice}")
    names = sorted(every_word, key=float if are_numbers else str)
    codes = {name: code for code, name in enumerate(names)}
    return tuple(names), [np.array([codes[word] for _, word in column]) for _, column in columns]


def _numbers(path: Path, column: _Column) -> Array:
    found = [float(word) for _, word in column]
    for (line, word), number in zip(column, found, strict=True):
        if not _fits(number):
            raise DataError(f"{path}, line {line}: the target {_fault(word, number)}")
    return np.array(found, np.float32).reshape(-1, 1)
