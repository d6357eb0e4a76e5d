"""Which datasets there are. A dataset is a description and a reader; adding one is one call of `register`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from timetrial.data.shelf import Kept, look_up
from timetrial.data.sources import Source
from timetrial.spec.shapes import Shape

if TYPE_CHECKING:
    from timetrial.data.samples import Samples, Wanted

SYNTHETIC = "synthetic"
_SHAPED = re.compile(r"synthetic:([1-9]\d*(?:x[1-9]\d*)*):([1-9]\d*)")


class UnknownDataset(ValueError):
    """No dataset has this name. Carries the names that are close to it."""

    def __init__(self, name: str, close: list[str], advice: str) -> None:
        self.name, self.close = name, close
        super().__init__(f"there is no dataset '{name}'; {advice}")


@dataclass(frozen=True)
class Dataset:
    name: str
    summary: str
    classes: int | None  # None: numbers as targets, or whatever the network gives out
    input_shape: Shape | None  # of one sample as it is stored; None: whatever the network takes
    licence: str
    citation: str
    source: str  # where it comes from and how it was chosen, in words
    read: Callable[[Dataset, Wanted], Samples] = field(repr=False, compare=False)
    synthetic: bool = False
    sha256: str | None = None  # of what is read; None: nothing is, or it is not there yet
    state: str | None = None  # what its samples depend on beside its name and file
    preprocessing: tuple[str, ...] = ()  # its own steps, where a study asks for none and the model has none
    aliases: tuple[str, ...] = ()
    # Of those that are kept on the shelf:
    shelf: str | None = None  # the name there; two datasets may be views of one
    dropped: tuple[int, ...] = ()  # columns that this view leaves out
    train: int | None = None
    test: int | None = None
    reader: str = ""  # a module of `readers`
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()  # tried in this order
    md5: tuple[tuple[str, str], ...] = ()  # of the published files, by name
    content: str | None = None  # what the checksum of all arrays must be, whichever source they came from
    gaps: bool = False  # inputs may be missing (NaN)
    how: str = ""  # to get it by hand
    present: bool = True  # of those that are not: False where a file of the user's is named nowhere
    show: Callable[[Dataset], tuple[str, ...]] | None = field(default=None, repr=False, compare=False)  # in lines

    @property
    def download(self) -> int:
        """Bytes to fetch, of the first source whose size is known."""
        return next((source.size for source in self.sources if source.size), 0)

    @property
    def made_to_measure(self) -> bool:
        """A stand-in of the seed and batch that ask for it; any other dataset is the same for all."""
        return self.synthetic and self.state is None


_datasets: dict[str, Dataset] = {}
_SETS = ("images", "tables", "texts")
# Datasets with options after `?` in their names: found by the `find` of a module, loaded when first asked for.
_families = dict.fromkeys(("solar-synthetic", "hope-melpitz", "oahu"), "timetrial.data.solar.entries")


def register(dataset: Dataset) -> Dataset:
    _datasets[dataset.name] = dataset
    return dataset


def every() -> dict[str, Dataset]:
    for module in _SETS:
        import_module(f"timetrial.data.sets.{module}")
    return _datasets


def names() -> list[str]:
    return sorted([*every(), *_families])


def known(name: str) -> Dataset | None:
    """A dataset that Timetrial knows, by its name or another that is used for it."""
    datasets = every()
    if family := _families.get(name.partition("?")[0]):
        of_options: Dataset = import_module(family).find(name)
        return of_options
    return datasets.get(name) or next((found for found in datasets.values() if name in found.aliases), None)


def find(name: str) -> Dataset:
    """A dataset by name: a known one, one that was imported, or a stand-in."""
    if found := known(name):
        return _as_kept(found)
    if kept := look_up(name):
        return imported(kept)
    if shaped := _SHAPED.fullmatch(name):
        return _shaped(name, tuple(map(int, shaped[1].split("x"))), int(shaped[2]))
    if name.startswith(f"{SYNTHETIC}:") and _is_name(name.partition(":")[2]):
        return _stand_in(find(name.partition(":")[2]))
    raise _unknown(name)


def _is_name(name: str) -> bool:
    return known(name) is not None or look_up(name) is not None


def _as_kept(dataset: Dataset) -> Dataset:
    """With what the shelf knows better: a user may have imported another version, or other sizes of images."""
    kept = look_up(dataset.shelf) if dataset.shelf else None
    if kept is None:
        return dataset
    shape = tuple(kept.facts.get("input_shape") or ()) or None
    if shape and dataset.dropped:
        shape = (shape[0] - len(dataset.dropped),)
    classes = kept.facts.get("classes") or dataset.classes
    return replace(dataset, sha256=kept.content, input_shape=shape or dataset.input_shape, classes=classes)


def imported(kept: Kept) -> Dataset:
    """A dataset that only the shelf knows."""
    shape = kept.facts.get("input_shape")
    return Dataset(
        name=kept.name,
        summary=str(kept.facts.get("summary", "")),
        classes=kept.facts.get("classes"),
        input_shape=tuple(shape) if shape else None,
        licence=str(kept.facts.get("licence", "not stated")),
        citation=str(kept.facts.get("citation", "not stated")),
        source=str(kept.facts.get("from", "imported")),
        read=read_shelf,
        sha256=kept.content,
        shelf=kept.name,
    )


def is_here(dataset: Dataset) -> bool:
    return look_up(dataset.shelf) is not None if dataset.shelf else dataset.present


def absent(dataset: Dataset) -> str:
    if dataset.shelf is None:
        return f"dataset '{dataset.name}' does not come with Timetrial: {dataset.how}"
    get = (
        f"`timetrial data get {dataset.shelf}`" if dataset.sources else f"`timetrial data import {dataset.shelf} PATH`"
    )
    return f"dataset '{dataset.name}' is not on this machine; {get} brings it, or use 'synthetic:{dataset.name}'"


def _unknown(name: str) -> UnknownDataset:
    if name.startswith(SYNTHETIC):
        advice = (
            "write 'synthetic', a shape and a number of classes as in 'synthetic:28x28x1:10', "
            "or the name of a dataset as in 'synthetic:cifar10'"
        )
        return UnknownDataset(name, [SYNTHETIC], advice)
    close = difflib.get_close_matches(name.lower(), names(), n=3, cutoff=0.5)
    quoted = " or ".join(f"'{match}'" for match in close)
    listed = f"known: {', '.join(names())}."
    advice = f"did you mean {quoted}?" if close else listed
    return UnknownDataset(name, close, f"{advice} Your own files: `timetrial data import {name} PATH`")


# The readers' modules load NumPy, which listing the datasets must not wait for.


def _read_embedded(dataset: Dataset, wanted: Wanted) -> Samples:
    from timetrial.data import embedded

    return embedded.read(dataset)


def _read_synthetic(dataset: Dataset, wanted: Wanted) -> Samples:
    from timetrial.data import synthetic

    return synthetic.read(dataset, wanted)


def read_shelf(dataset: Dataset, wanted: Wanted) -> Samples:
    from timetrial.data import kept

    return kept.read(dataset, wanted)


def _stand_in(dataset: Dataset) -> Dataset:
    """Of the same shape and classes; where these are the network's choice, of what the network takes."""
    named = f"{SYNTHETIC}:{dataset.name}"
    if dataset.input_shape is None or dataset.classes is None:
        return replace(find(SYNTHETIC), name=named, summary=f"synthetic: a random stand-in for {dataset.name}")
    shaped = _shaped(named, dataset.input_shape, dataset.classes)
    return replace(shaped, summary=f"synthetic: random samples of the shape and classes of {dataset.name}")


def _shaped(name: str, shape: Shape, classes: int) -> Dataset:
    return Dataset(
        name=name,
        summary=f"synthetic: random samples of a given shape, {classes} classes",
        classes=classes,
        input_shape=shape,
        licence="none needed: computed from a seed",
        citation="none: synthetic",
        source="synthetic: a pattern for each class, half hidden in noise",
        read=_read_synthetic,
        synthetic=True,
    )


register(
    Dataset(
        name="fashion-mnist-6000",
        summary="photographs of clothes in grey, a balanced sample of Fashion-MNIST (5,000 train, 1,000 test)",
        classes=10,
        input_shape=(28, 28),
        licence="MIT",
        citation="H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms, 2017, arXiv:1708.07747",
        source="comes with Timetrial: of each class the first 500 training and the first 100 test images of "
        "Fashion-MNIST (Zalando), in the order of its files",
        read=_read_embedded,
        train=5_000,
        test=1_000,
        sha256="d04b305c5bc1b63d1dc5b4098e79bb7b98d02f3469f51a1721f3d2b3621fafda",
    )
)
register(
    Dataset(
        name=SYNTHETIC,
        summary="synthetic: a random stand-in of whatever shapes and loss the network has",
        classes=None,
        input_shape=None,
        licence="none needed: computed from a seed",
        citation="none: synthetic",
        source="synthetic: a hidden cause that both input and label depend on, half hidden in noise",
        read=_read_synthetic,
        synthetic=True,
    )
)
