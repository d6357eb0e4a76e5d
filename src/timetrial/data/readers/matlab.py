"""SVHN's cropped digits: MATLAB files with X, rows x columns x channels x images, and y, of which 10 means zero."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from timetrial.data.readers.files import bounded, one
from timetrial.data.samples import Array, DataError, Samples


def read(folder: Path) -> Samples:
    parts = [part for name in ("train", "test") for part in _digits(one(folder, f"{name}_32x32.mat"))]
    return Samples(*parts)


def _digits(path: Path) -> tuple[Array, Array]:
    found = _variables(path, ("X", "y"))
    images, labels = found["X"], found["y"].ravel()
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] != len(labels):
        raise DataError(f"{path}: X is {images.dtype} {list(images.shape)} for {len(labels):,} labels in y")
    if len(labels) and not (labels.min() >= 1 and labels.max() <= 10):
        place = int(np.flatnonzero((labels < 1) | (labels > 10))[0])
        raise DataError(f"{path}: label {place + 1} in y is {labels[place]}; digits are 1 to 10")
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels.astype(np.int64) % 10


def _variables(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    from scipy.io import loadmat, whosmat

    try:
        sizes = {name: shape for name, shape, _ in whosmat(path)}
        for name in names:
            if name not in sizes:
                raise DataError(f"{path}: has no variable {name}; it has {', '.join(sizes) or 'none'}, or is cut off")
            bounded(path, int(np.prod(sizes[name], dtype=object)))
        found: dict[str, Array] = loadmat(path, variable_names=names)
    except (DataError, FileNotFoundError, PermissionError):
        raise
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        OSError,
        NotImplementedError,
        zlib.error,
        OverflowError,
    ) as error:
        raise DataError(f"{path}: is no whole MATLAB file of version 5 ({error or type(error).__name__})") from None
    except Exception as error:  # SciPy's own kinds of error are not importable from its public modules
        raise DataError(f"{path}: is no whole MATLAB file of version 5 ({error})") from None
    return found
