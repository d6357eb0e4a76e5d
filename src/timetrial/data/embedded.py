"""The dataset that comes with the package, so that the first measurement needs no download."""

from __future__ import annotations

import hashlib
import io
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from timetrial.data.samples import DataError, Samples

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from timetrial.data.registry import Dataset


def read(dataset: Dataset, folder: Traversable | None = None) -> Samples:
    name = dataset.name.replace("-", "_") + ".npz"
    content = _bytes((folder or resources.files("timetrial.data") / "embedded") / name)
    found = hashlib.sha256(content).hexdigest()
    if found != dataset.sha256:
        raise DataError(
            f"the data file {name} of dataset '{dataset.name}' is damaged: its SHA-256 is {found}, "
            f"but must be {dataset.sha256}; install Timetrial again"
        )
    with np.load(io.BytesIO(content)) as arrays:
        return Samples(arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"])


def _bytes(file: Traversable) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise DataError(f"the data file {file} is missing; install Timetrial again") from None
