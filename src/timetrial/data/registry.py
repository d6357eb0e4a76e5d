"""Which datasets there are. A dataset is a description and a reader; adding one is one call of `register`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

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
    sha256: str | None = None  # of the file that is read; None: there is no file
    state: str | None = None  # what its samples depend on beside its name and file

    @property
    def made_to_measure(self) -> bool:
        """A stand-in of the seed and batch that ask for it; any other dataset is the same for all."""
        return self.synthetic and self.state is None


_datasets: dict[str, Dataset] = {}
# Datasets with options after `?` in their names: found by the `find` of a module, loaded when first asked for.
_families = dict.fromkeys(("solar-synthetic", "hope-melpitz", "oahu"), "timetrial.data.solar.entries")


def register(dataset: Dataset) -> Dataset:
    _datasets[dataset.name] = dataset
    return dataset


def names() -> list[str]:
    return sorted([*_datasets, *_families])


def find(name: str) -> Dataset:
    if name in _datasets:
        return _datasets[name]
    if family := _families.get(name.partition("?")[0]):
        found: Dataset = import_module(family).find(name)
        return found
    if shaped := _SHAPED.fullmatch(name):
        return _shaped(name, tuple(map(int, shaped[1].split("x"))), int(shaped[2]))
    raise _unknown(name)


def _unknown(name: str) -> UnknownDataset:
    if name.startswith(SYNTHETIC):
        advice = "write 'synthetic', or a shape and a number of classes as in 'synthetic:28x28x1:10'"
        return UnknownDataset(name, [SYNTHETIC], advice)
    close = difflib.get_close_matches(name.lower(), names(), n=3, cutoff=0.5)
    quoted = " or ".join(f"'{match}'" for match in close)
    return UnknownDataset(name, close, f"did you mean {quoted}?" if close else "known: " + ", ".join(names()))


# The readers' modules load NumPy, which listing the datasets must not wait for.


def _read_embedded(dataset: Dataset, wanted: Wanted) -> Samples:
    from timetrial.data import embedded

    return embedded.read(dataset)


def _read_synthetic(dataset: Dataset, wanted: Wanted) -> Samples:
    from timetrial.data import synthetic

    return synthetic.read(dataset, wanted)


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
