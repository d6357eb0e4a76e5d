"""Whether samples are whole, whatever they were read from: lengths, labels, missing classes, numbers that are none."""

from __future__ import annotations

import numpy as np

from timetrial.data.samples import Array, DataError, Samples
from timetrial.spec.shapes import Shape, describe

_ROWS = 1_000_000  # looked at together, so that looking takes little memory


def checked(
    place: object, read: Samples, classes: int | None, shape: Shape | None = None, gaps: bool = False
) -> Samples:
    """The samples with their labels as int32, or the first thing that is wrong. `gaps`: inputs may be NaN."""
    stream = read.x_train.ndim == 1 and read.x_train.dtype == np.uint8
    parts = {"training": (read.x_train, read.y_train), "test": (read.x_test, read.y_test)}
    for part, (x, y) in parts.items():
        if not len(x) or (len(x) != len(y) and not stream):
            raise DataError(f"{place}: the {part} part has {len(x):,} samples and {len(y):,} labels")
        if shape is not None and tuple(x.shape[1:]) != shape:
            raise DataError(
                f"{place}: the {part} samples are {describe(x.shape[1:])}; they should be {describe(shape)}"
            )
        _finite(place, part, "input", x, gaps)
        _finite(place, part, "target", y, gaps)
        if classes is not None:
            _classes(place, part, y, classes, read.class_names)
    if read.x_train.shape[1:] != read.x_test.shape[1:]:
        both = (describe(x.shape[1:]) for x, _ in parts.values())
        raise DataError(f"{place}: training samples are {next(both)}, test samples {next(both)}")
    return Samples(read.x_train, _labels(read.y_train), read.x_test, _labels(read.y_test), class_names=read.class_names)


def _labels(y: Array) -> Array:
    return y.astype(np.int32) if np.issubdtype(y.dtype, np.integer) else y


def _classes(place: object, part: str, y: Array, classes: int, names: tuple[str, ...]) -> None:
    if not np.issubdtype(y.dtype, np.integer) or y.ndim != 1:
        raise DataError(f"{place}: the {part} labels are {y.dtype} {list(y.shape)}, not one whole number a sample")
    wrong = np.flatnonzero((y < 0) | (y >= classes))
    if len(wrong):
        raise DataError(
            f"{place}: {part} sample {wrong[0] + 1:,} has label {y[wrong[0]]}; labels are 0 to {classes - 1}"
        )
    missing = np.flatnonzero(np.bincount(y, minlength=classes) == 0)
    if len(missing):
        name = f" ({names[missing[0]]})" if names else ""
        raise DataError(f"{place}: the {part} part has no sample of class {missing[0]}{name}")


def _finite(place: object, part: str, what: str, values: Array, gaps: bool) -> None:
    if gaps or values.dtype.kind != "f":
        return
    for start in range(0, len(values), _ROWS):
        bad = np.argwhere(~np.isfinite(values[start : start + _ROWS]))
        if len(bad):
            raise DataError(f"{place}: the {what} of {part} sample {start + bad[0][0] + 1:,} holds NaN or infinity")
