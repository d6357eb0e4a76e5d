"""From a folder of raw files to checked samples, by the reader that the dataset names."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.data.checking import checked
from timetrial.data.readers.files import content, one
from timetrial.data.samples import DataError, Samples

if TYPE_CHECKING:
    from timetrial.data.registry import Dataset

READERS = ("idx", "cifar", "shuttle", "table", "matlab", "norb", "images", "arrays", "characters", "reviews", "radar")


def read_folder(dataset: Dataset, folder: Path, options: Mapping[str, Any] | None = None) -> Samples:
    samples = apply(dataset.reader, folder, {**dataset.options, **(options or {})})
    _compare(dataset, folder)
    shape = None if options else dataset.input_shape
    return checked(folder, samples, dataset.classes or classes_of(samples), shape, gaps=dataset.gaps)


def facts(samples: Samples) -> dict[str, Any]:
    """What the samples say of themselves. A text's windows and a sequence's length are the network's choice."""
    of_one_shape = samples.x_train.ndim > 1
    return {
        "classes": classes_of(samples),
        "class_names": list(samples.class_names),
        "input_shape": list(samples.x_train.shape[1:]) if of_one_shape else None,
    }


def classes_of(samples: Samples) -> int | None:
    """Whole numbers, one a sample, are classes."""
    if samples.class_names:
        return len(samples.class_names)
    y = samples.y_train
    return int(y.max()) + 1 if y.size and y.ndim == 1 and y.dtype.kind in "iu" else None


def apply(reader: str, folder: Path, options: Mapping[str, Any]) -> Samples:
    if reader not in READERS:
        raise DataError(f"there is no reader '{reader}'; there are {', '.join(READERS)}")
    read = import_module(f"timetrial.data.readers.{reader}").read
    _, *has = inspect.signature(read).parameters
    if unknown := [name for name in options if name not in has]:
        raise DataError(f"the format '{reader}' has no option {unknown[0]}; it has {', '.join(has) or 'none'}")
    samples: Samples = read(folder, **options)
    return samples


def _compare(dataset: Dataset, folder: Path) -> None:
    """The published MD5s of files, after unpacking: another packer gives other packed bytes."""
    for name, wanted in dataset.md5:
        path = one(folder, name)
        found = hashlib.md5(content(path), usedforsecurity=False).hexdigest()
        if found != wanted:
            raise DataError(f"{path}: its MD5 is {found}, but that of the published {name} is {wanted}")
