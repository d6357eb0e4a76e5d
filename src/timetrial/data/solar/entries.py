"""The solar datasets. A name takes options after `?`: `hope-melpitz?horizon=30&rule=leave-target-out`."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from timetrial.data.registry import Dataset
from timetrial.data.shelf import GRIDS
from timetrial.disk.home import data_home

if TYPE_CHECKING:
    from timetrial.data.samples import Samples, Wanted
    from timetrial.data.solar.grid import Grid

FORM = "1"  # counted up when a synthetic grid of the same options is to come out otherwise


def find(name: str) -> Dataset:
    """The dataset of a name with its options, which are written in one way whatever way they were given in."""
    base = name.partition("?")[0]
    dataset = _DATASETS[base]
    if "?" in name:
        from timetrial.data.solar.settings import COMPOSING, PAINTING, parse, settings, title

        options = (*COMPOSING, *PAINTING) if dataset.synthetic else COMPOSING
        values = parse(name, options)
        settings(values)
        dataset = replace(dataset, name=title(base, options, values))
    if dataset.synthetic:
        return dataset
    path = _path(base)
    state = _state(path) if base == "oahu" else None
    return replace(dataset, state=state, present=path is not None, how=_how(dataset, base))


def open_grid(name: str) -> Grid:
    """The grid of a dataset that is read from a file of the user's."""
    from timetrial.data.registry import absent
    from timetrial.data.samples import DataError
    from timetrial.data.solar import melpitz, midc

    base = name.partition("?")[0]
    path = _path(base)
    if path is None:
        raise DataError(absent(find(base)))
    if base == "oahu":
        return midc.read(path)
    _verify(path, _DATASETS[base])
    return melpitz.read(path)


def _read(dataset: Dataset, wanted: Wanted) -> Samples:
    from timetrial.data.solar.samples import samples_of

    return samples_of(dataset, wanted)


def _show(dataset: Dataset) -> tuple[str, ...]:
    from timetrial.data.solar.shown import shown

    return shown(dataset)


def _how(dataset: Dataset, base: str) -> str:
    what = "its file or folder" if base == "oahu" else "its file"
    return (
        f"get it ({dataset.source}), and set {_variable(base)} to {what}, or put it at {_kept(base)}; "
        "or use the dataset 'solar-synthetic'"
    )


def _variable(base: str) -> str:
    return "TIMETRIAL_" + base.upper().replace("-", "_")


def _path(base: str) -> Path | None:
    """Where the variable says, or where imported data are kept."""
    if chosen := os.environ.get(_variable(base)):
        return Path(chosen).expanduser()
    kept = _kept(base)
    return kept if kept.exists() else None


def _kept(base: str) -> Path:
    return data_home() / GRIDS / (base + (".h5" if base == "hope-melpitz" else ""))


def _state(path: Path | None) -> str:
    """Changes when a file does; looking at names, sizes and times is enough, and quick for a year of seconds."""
    if path is None or not path.exists():
        return "absent"
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    facts = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _verify(path: Path, dataset: Dataset) -> None:
    from timetrial.data.samples import DataError

    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if found != dataset.sha256:
        raise DataError(
            f"{path}: is not the file of dataset '{dataset.name}': its SHA-256 is {found}, but must be {dataset.sha256}"
        )


_DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="solar-synthetic",
            summary="synthetic: irradiance of a grid of sensors every second, under moving synthetic clouds",
            classes=None,
            input_shape=None,
            licence="none needed: computed from a seed",
            citation="none: synthetic",
            source="synthetic: the sun of the place and day, and random clouds that the wind carries over the sensors",
            read=_read,
            show=_show,
            synthetic=True,
            state=FORM,
        ),
        Dataset(
            name="hope-melpitz",
            summary="irradiance of 50 pyranometers at Melpitz every second, 2013-09-08 09:15 to 10:15 UTC",
            classes=None,
            input_shape=None,
            licence="CC BY-SA 3.0 (TROPOS); not redistributed with Timetrial",
            citation="A. Macke et al.: The HD(CP)2 Observational Prototype Experiment (HOPE), Atmospheric Chemistry "
            "and Physics 17, 2017",
            source="hope_melpitz_1s.h5 of the demonstrations of the software solarspatialtools",
            read=_read,
            show=_show,
            sha256="c87fe2558cb0efbdb84df0807613eb22d0877fada30fd7f56086539193720383",
        ),
        Dataset(
            name="oahu",
            summary="irradiance of the 17 level sensors of NREL's Oahu grid every second, 2010-03 to 2011-10",
            classes=None,
            input_shape=None,
            licence="NREL MIDC: free with acknowledgement; not redistributed with Timetrial",
            citation="M. Sengupta, A. Andreas: Oahu Solar Measurement Grid (1-Year Archive): 1-Second Solar "
            "Irradiance; Oahu, Hawaii (Data), NREL DA-5500-56506, 2010, doi:10.5439/1052451",
            source="daily files of the Oahu archive, or a download with a header, from NREL's MIDC",
            read=_read,
            show=_show,
            state="absent",
        ),
    )
}
