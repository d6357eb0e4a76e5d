"""What a dataset looks like: shapes, ranges, classes, first samples in words or as one picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.data import embedded, kept
from timetrial.data.registry import Dataset, find
from timetrial.data.samples import Array, DataError, Samples
from timetrial.data.shelf import PARTS

FIRST, TEXT, CLASSES_SHOWN = 3, 200, 100
_COLUMNS, _ROWS = 10, 5
_SHADES = " .:-=+*#%@"


@dataclass(frozen=True)
class Seen:
    name: str
    summary: str
    source: str
    licence: str
    citation: str
    sha256: str | None
    parts: tuple[str, ...]  # a line each
    classes: dict[str, tuple[int, int]]  # training and test samples
    first: tuple[str, ...]


def look(name: str) -> Seen:
    dataset = find(name)
    about = (dataset.name, dataset.summary, dataset.source, dataset.licence, dataset.citation, dataset.sha256)
    if dataset.show:
        return Seen(*about, dataset.show(dataset), {}, ())
    samples = _opened(dataset)
    parts = tuple(f"{part}: {_described(getattr(samples, part))}" for part in PARTS)
    return Seen(*about, parts, _classes(dataset, samples), tuple(_first(samples)))


def draw(name: str, path: Path) -> None:
    """The first training pictures side by side; of several channels that are no colours, the first."""
    from PIL import Image

    dataset = find(name)
    if dataset.show:
        raise DataError(f"dataset '{dataset.name}' holds no pictures")
    x = _opened(dataset).x_train
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        raise DataError(f"dataset '{dataset.name}' holds no pictures")
    if path.suffix.lower() != ".png":
        raise DataError(f"{path}: the picture is a PNG; end its name with .png")
    first = x[: _COLUMNS * _ROWS]
    first = first[..., None] if first.ndim == 3 else first if first.shape[3] == 3 else first[..., :1]
    rows, columns, channels = first.shape[1:]
    sheet = np.full((_ROWS * (rows + 1) - 1, _COLUMNS * (columns + 1) - 1, channels), 128, np.uint8)
    for place, picture in enumerate(first):
        top, left = place // _COLUMNS * (rows + 1), place % _COLUMNS * (columns + 1)
        sheet[top : top + rows, left : left + columns] = picture
    Image.fromarray(sheet.squeeze(2) if channels == 1 else sheet).save(path, "PNG")


def _opened(dataset: Dataset) -> Samples:
    if dataset.synthetic:
        raise DataError(f"dataset '{dataset.name}' is computed for each network; there is nothing to show before")
    return kept.raw(dataset) if dataset.shelf else embedded.read(dataset)


def _described(array: Array) -> str:
    if array.dtype == object:
        lengths = np.array([len(item) for item in array])
        what = "texts of" if isinstance(array[0], str) else "sequences of"
        unit = "characters" if isinstance(array[0], str) else f"x {array[0].shape[1]} {array[0].dtype} readings"
        low, middle, high = lengths.min(), np.median(lengths), lengths.max()
        return f"{len(array):,} {what} {low:,} to {high:,} {unit}, half of them below {middle:,.0f}"
    shape = "x".join(f"{size:,}" for size in array.shape)
    if not array.size:
        return "none: each byte's target is the next"
    return f"{shape} {array.dtype}, {array.min():g} to {array.max():g}"


def _classes(dataset: Dataset, samples: Samples) -> dict[str, tuple[int, int]]:
    if dataset.classes is None or dataset.classes > CLASSES_SHOWN:
        return {}
    both = [np.bincount(y, minlength=dataset.classes) for y in (samples.y_train, samples.y_test)]
    names = samples.class_names or tuple(map(str, range(dataset.classes)))
    return {name: (int(train), int(test)) for name, train, test in zip(names, *both, strict=True)}


def _first(samples: Samples) -> Iterator[str]:
    if samples.x_train.ndim == 1 and samples.x_train.dtype == np.uint8:
        yield _shortened(bytes(samples.x_train[:TEXT]).decode("utf-8", "replace"))
        return
    yield from (_in_words(samples, place) for place in range(min(FIRST, len(samples.x_train))))


def _in_words(samples: Samples, place: int) -> str:
    x, y = samples.x_train[place], samples.y_train[place : place + 1].ravel()
    label = samples.class_names[y[0]] if samples.class_names else " ".join(f"{value:g}" for value in y[:10])
    if isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim in (2, 3):
        return f"{label}\n{_characters(x)}"
    return f"{label}: {_shortened(x if isinstance(x, str) else _numbers(x))}"


def _characters(picture: Array) -> str:
    """A picture in characters, the brighter the fuller; a character is about twice as high as it is wide."""
    grey = picture if picture.ndim == 2 else picture.mean(2)
    step = max(1, grey.shape[1] // 48)
    small = grey[:: 2 * step, ::step].astype(int) * len(_SHADES) // 256
    return "\n".join("  " + "".join(_SHADES[shade] for shade in row).rstrip() for row in small)


def _numbers(x: Any) -> str:
    flat = np.asarray(x).ravel()
    return " ".join(f"{value:g}" for value in flat[: TEXT // 3])


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT else line[:TEXT] + " …"
