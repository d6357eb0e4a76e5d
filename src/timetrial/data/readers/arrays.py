"""NumPy arrays: one `.npz` with x_train, y_train, x_test and y_test (or x and y), or `.npy` files of these names."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.data.readers.files import bounded, every, one
from timetrial.data.readers.splitting import split
from timetrial.data.samples import Array, DataError, Samples

_NAMES = ("x_train", "y_train", "x_test", "y_test")


def read(folder: Path, test: float = 0.2) -> Samples:
    found = _packed(one(folder, "*.npz")) if every(folder, "*.npz") else _single(folder)
    found = {name.lower(): _plain(folder, name, array) for name, array in found.items()}
    if all(name in found for name in _NAMES):
        return Samples(*(found[name] for name in _NAMES))
    if {"x", "y"} <= found.keys():
        if len(found["x"]) != len(found["y"]):
            raise DataError(f"{folder}: x has {len(found['x']):,} samples and y {len(found['y']):,}")
        return split(folder, found["x"], found["y"], test)
    raise DataError(
        f"{folder}: should have the arrays {', '.join(_NAMES)}, or x and y; it has {', '.join(found) or 'none'}"
    )


def _single(folder: Path) -> dict[str, Array]:
    paths = every(folder, "*.npy")
    return {path.stem: _tried(path, partial(np.load, path, allow_pickle=False)) for path in paths}


def _packed(path: Path) -> dict[str, Array]:
    def load() -> dict[str, Array]:
        with zipfile.ZipFile(path) as archive:
            bounded(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    return _tried(path, load)  # type: ignore[no-any-return]


def _tried(path: Path, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except DataError:
        raise
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise DataError(f"{path}: is no whole file of NumPy arrays without objects ({error})") from None


def _plain(folder: Path, name: str, array: Array) -> Array:
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise DataError(f"{folder}: {name} is {array.dtype} {list(array.shape)}; it should be an array of numbers")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype.kind == "f" and array.dtype != np.float32:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused with its place
            array = array.astype(np.float32)
    if not name.lower().startswith("y"):
        return array
    return array.ravel() if array.dtype.kind in "iu" and array.shape[1:] == (1,) else _column(array)


def _column(targets: Array) -> Array:
    return targets.reshape(-1, 1) if targets.dtype.kind == "f" and targets.ndim == 1 else targets
