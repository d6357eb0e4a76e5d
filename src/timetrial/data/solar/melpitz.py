"""The grid of the HOPE campaign at Melpitz: 50 pyranometers, one hour, every second.

The file was written by an old pandas. Its numbers are plain tables, but the names of the columns are pickled: they are
looked up in the pickle's own listing, without ever running it.
"""

from __future__ import annotations

import pickletools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.data.samples import DataError
from timetrial.data.solar.grid import Grid

if TYPE_CHECKING:
    import h5py

_NAMES = {"INT", "BININT", "BININT1", "BININT2", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "STRING"}


def read(path: Path) -> Grid:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return _grid(path, file)
    except FileNotFoundError:
        raise DataError(f"{path}: is not there") from None
    except OSError as error:
        raise DataError(f"{path}: is no HDF5 file that can be read ({error})") from None


def _grid(path: Path, file: h5py.File) -> Grid:
    rows = _table(path, file, "data")
    sensors = _columns(path, file["data"], rows["values_block_0"].shape[1])
    position = _positions(path, file, sensors)
    return Grid(
        source=str(path),
        times=rows["index"].astype(np.int64),
        sensors=sensors,
        values=np.ascontiguousarray(rows["values_block_0"], np.float32),
        latitude=position[:, 0],
        longitude=position[:, 1],
        station={"place": "Melpitz, Germany", "network": "TROPOS pyranometers, HOPE campaign 2013"},
    )


def _table(path: Path, file: h5py.File, name: str) -> Any:
    try:
        rows = file[name]["table"][:]
    except KeyError:
        raise DataError(f"{path}: has no table '{name}/table'; it is not the file of HOPE-Melpitz") from None
    if rows.dtype.names != ("index", "values_block_0"):
        raise DataError(f"{path}: the table '{name}/table' has other fields than index and values")
    return rows


def _columns(path: Path, group: h5py.Group, count: int) -> tuple[str, ...]:
    """From the pickled list [(axis, [names])]."""
    pickled = group.attrs.get("non_index_axes", b"")
    try:
        listed = [str(value) for code, value, _ in pickletools.genops(bytes(pickled)) if code.name in _NAMES]
    except (ValueError, TypeError, IndexError):
        listed = []
    if len(listed) != count + 1:
        raise DataError(f"{path}: {count} columns of measurements, but names for {max(len(listed) - 1, 0)}")
    return tuple(listed[1:])


def _positions(path: Path, file: h5py.File, sensors: tuple[str, ...]) -> Any:
    rows = _table(path, file, "latlon")
    known = {str(sensor): place for sensor, place in zip(rows["index"], rows["values_block_0"], strict=True)}
    if missing := [sensor for sensor in sensors if sensor not in known]:
        raise DataError(f"{path}: 'latlon/table' has no position of sensor {', '.join(missing)}")
    return np.array([known[sensor] for sensor in sensors], np.float64)
