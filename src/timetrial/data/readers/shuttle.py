"""The Statlog Shuttle table: as a data frame of R (`Shuttle.rda`), or as its two text files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from timetrial.data.readers.files import every, one
from timetrial.data.readers.rda import frame
from timetrial.data.readers.table import numbers
from timetrial.data.samples import Array, DataError, Samples

TRAIN = 43_500
INPUTS = 9
NAMES = ("Rad.Flow", "Fpv.Close", "Fpv.Open", "High", "Bypass", "Bpv.Close", "Bpv.Open")


def read(folder: Path, train: int = TRAIN) -> Samples:
    parts = _from_r(one(folder, "Shuttle.rda"), train) if every(folder, "Shuttle.rda") else _from_text(folder)
    both = [part for rows in parts for part in _split(rows)]
    return Samples(*both, class_names=NAMES)


def _from_r(path: Path, train: int) -> tuple[Array, Array]:
    columns = frame(path, "Shuttle")
    names = [*(f"V{number}" for number in range(1, INPUTS + 1)), "Class"]
    if list(columns) != names:
        raise DataError(f"{path}: the columns are {', '.join(columns)}; they should be {', '.join(names)}")
    if len({len(column.values) for column in columns.values()}) > 1:
        raise DataError(f"{path}: its columns are not of one length")
    table = np.stack([column.values.astype(np.float64) for column in columns.values()], axis=1)
    return table[:train], table[train:]


def _from_text(folder: Path) -> tuple[Array, Array]:
    train, test = (numbers(one(folder, f"shuttle.{end}"), columns=INPUTS + 1, separator=" ") for end in ("trn", "tst"))
    return train, test


def _split(rows: Array) -> tuple[Array, Array]:
    return rows[:, :INPUTS].astype(np.float32), rows[:, INPUTS].astype(np.int64) - 1
