"""A folder of pictures: one folder a class, below `train` and `test` where there are these."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from timetrial.data.readers.files import MOST_BYTES
from timetrial.data.readers.pictures import ENDINGS, pixels
from timetrial.data.readers.splitting import places
from timetrial.data.samples import Array, DataError, Samples
from timetrial.spec.shapes import describe

_PARTS = {"train": ("train", "training"), "test": ("test", "testing", "val", "valid", "validation")}
MASKS = " GT"  # ends the names of folders that hold masks beside those that hold photographs
_Pictures = list[tuple[Path, int]]


def read(
    folder: Path, size: tuple[int, int] | None = None, grey: bool = False, masks: bool = False, test: float = 0.2
) -> Samples:
    """`size` makes all pictures of rows x columns; without it they must be of one size."""
    parts = {part: _named(folder, names) for part, names in _PARTS.items()}
    mode = "L" if grey else None
    if parts["train"] and parts["test"]:
        names = _classes(parts["train"], masks)
        train, held = (_listed(parts[part], names, masks) for part in ("train", "test"))  # type: ignore[arg-type]
        x, y = _loaded(folder, [*train, *held], size, mode)
        return Samples(x[: len(train)], y[: len(train)], x[len(train) :], y[len(train) :], class_names=names)
    names = _classes(folder, masks)
    listed = _listed(folder, names, masks)
    first, last = places(folder, np.array([label for _, label in listed]), test, names)
    # In this order the two parts are pieces of one array, and nothing is copied.
    x, y = _loaded(folder, [listed[place] for place in (*first, *last)], size, mode)
    return Samples(x[: len(first)], y[: len(first)], x[len(first) :], y[len(first) :], class_names=names)


def _named(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((child for name in names for child in _folders(folder) if child.name.lower() == name), None)


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise DataError(f"{folder}: is no folder of pictures")
    return sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith((".", "__")))


def _classes(folder: Path, masks: bool) -> tuple[str, ...]:
    """The names of the folders that hold pictures."""
    found = tuple(child.name for child in _folders(folder) if _pictures(child, masks))
    if len(found) < 2:
        kind = f"folders with a folder '…{MASKS}' of masks in each" if masks else "folders of pictures, one a class"
        raise DataError(f"{folder}: should hold two or more {kind}; it holds {len(found)}")
    return found


def _here(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.suffix.lower() in ENDINGS]


def _pictures(folder: Path, masks: bool) -> list[Path]:
    if not masks:
        return _here(folder)
    return [path for child in _folders(folder) if child.name.endswith(MASKS) for path in _here(child)]


def _listed(folder: Path, names: tuple[str, ...], masks: bool) -> _Pictures:
    strange = [child.name for child in _folders(folder) if child.name not in names and _pictures(child, masks)]
    if strange:
        raise DataError(f"{folder}: has a class '{strange[0]}' that is not among those for training")
    return [(path, label) for label, name in enumerate(names) if (folder / name).is_dir()
            for path in _pictures(folder / name, masks)]  # fmt: skip


def _loaded(folder: Path, listed: _Pictures, size: tuple[int, int] | None, mode: str | None) -> tuple[Array, Array]:
    first = pixels(listed[0][0], mode=mode, size=size)
    shape = (*first.shape, 1)[:3]
    needed = len(listed) * int(np.prod(shape))
    if needed > MOST_BYTES:
        raise DataError(
            f"{folder}: {len(listed):,} pictures of {describe(shape)} are {needed / 1e9:.1f} GB, more than the "
            f"{MOST_BYTES / 1e9:.1f} GB that are kept; give a smaller --size ROWSxCOLUMNS, or --grey"
        )
    x = np.empty((len(listed), *shape), np.uint8)
    wanted = "L" if shape[2] == 1 else "RGB"
    for place, (path, _) in enumerate(listed):
        picture = pixels(path, mode=mode, size=size)
        if picture.ndim == 2 and wanted == "RGB":
            picture = pixels(path, mode=wanted, size=size)
        if (*picture.shape, 1)[:3] != shape:
            raise DataError(
                f"{path}: is {describe(picture.shape)}, the first picture is {describe(first.shape)}; "
                "make them alike with --size ROWSxCOLUMNS, and --grey where only some have colours"
            )
        x[place] = picture.reshape(shape)
    return x, np.array([label for _, label in listed])
