"""Readings of a weather radar, an hour over one rain gauge each: rows that share an `Id`, and what the gauge held.

The published test file has no gauge in it, so both parts come out of `train.csv`. An hour without its gauge, or with
more rain in it than falls on earth, is left as it is: what to do about that is preprocessing. Missing readings are NaN.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from timetrial.data.readers.files import bounded, one
from timetrial.data.readers.splitting import places
from timetrial.data.samples import Array, DataError, Samples, objects

_QUANTITIES = ("Ref", "RefComposite", "RhoHV", "Zdr", "Kdp")
_PLACES = ("", "_5x5_10th", "_5x5_50th", "_5x5_90th")
INPUTS = ("minutes_past", "radardist_km", *(name + place for name in _QUANTITIES for place in _PLACES))
COLUMNS = ("Id", *INPUTS, "Expected")
_CHUNK = 500_000  # rows


def read(folder: Path, test: float = 0.2) -> Samples:
    path = one(folder, "train.csv")
    rows, hours, rain = _table(path)
    starts = np.flatnonzero(np.r_[True, hours[1:] != hours[:-1]])
    if len(np.unique(hours[starts])) != len(starts):
        raise DataError(f"{path}: the rows of an Id do not follow each other; sort the file by Id")
    ends = np.r_[starts[1:], len(rows)]
    changed = np.flatnonzero((rain != rain[starts].repeat(ends - starts)) & ~np.isnan(rain))
    if len(changed):
        raise DataError(f"{path}, line {changed[0] + 2}: Expected differs within Id {hours[changed[0]]:g}")
    sequences = objects([rows[start:end] for start, end in zip(starts, ends, strict=True)])
    train, held = places(path, rain[starts], test)
    targets = rain[starts].reshape(-1, 1)
    return Samples(sequences[train], targets[train], sequences[held], targets[held])


def _table(path: Path) -> tuple[Array, Array, Array]:
    """Read in pieces: the published file is 1.2 GB of text."""
    import pandas as pd

    types = dict.fromkeys(COLUMNS[1:], np.float32)
    pieces: list[tuple[Array, Array, Array]] = []
    try:
        with pd.read_csv(path, dtype=types, chunksize=_CHUNK) as table:
            for piece in table:
                if tuple(piece.columns) != COLUMNS:
                    raise DataError(f"{path}: {_difference(tuple(piece.columns))}")
                parts = (piece[list(INPUTS)].to_numpy(np.float32), piece["Id"].to_numpy(np.float64))
                pieces.append((*parts, piece["Expected"].to_numpy(np.float32)))
                bounded(path, sum(rows.nbytes for rows, _, _ in pieces))
    except DataError:
        raise
    except (ValueError, EOFError, UnicodeDecodeError) as error:  # a parser's error is a ValueError
        raise DataError(f"{path}: cannot be read as a table of numbers: {str(error).strip()}") from None
    if not sum(len(rows) for rows, _, _ in pieces):
        raise DataError(f"{path}: has no rows")
    rows, hours, rain = (np.concatenate(part) for part in zip(*pieces, strict=True))
    if np.isnan(hours).any():
        raise DataError(f"{path}, line {np.flatnonzero(np.isnan(hours))[0] + 2}: has no Id")
    return rows, hours, rain


def _difference(found: tuple[str, ...]) -> str:
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        return f"has no column {missing[0]}" + (" (the test file has none)" if missing == ["Expected"] else "")
    return f"has {len(found)} columns in another order than {', '.join(COLUMNS[:3])}, …, Expected"
