"""One dataset, made ready once for a network and its recipe: arrays that all engines and runs map into memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timetrial.data import baselines, fit, store
from timetrial.data.registry import Dataset, find
from timetrial.data.samples import Array, DataError, Samples, Wanted
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

FORM = 1  # counted up when the same request is to give other arrays


@dataclass(frozen=True)
class Prepared:
    """Four `.npy` files, C-contiguous, training and test in the order of the dataset: shuffling is the run's."""

    x_train: Path
    y_train: Path
    x_test: Path
    y_test: Path
    content: str  # SHA-256 of the arrays and of where they come from
    provenance: Mapping[str, Any]

    @property
    def synthetic(self) -> bool:
        return bool(self.provenance["synthetic"])


def prepare(
    dataset: str, network: Network, recipe: Recipe, seed: int, folder: Path, samples: int | None = None
) -> Prepared:
    """The prepared dataset in `folder`: made if it is not there or no longer intact.

    The seed makes a stand-in; a real dataset is the same for every seed. `samples` takes the first of the training
    samples, and at most as many of the test's.
    """
    described = find(dataset)
    if samples is not None and samples < 1:
        raise DataError(f"{samples} samples of dataset '{dataset}' cannot be prepared; ask for at least one")
    wanted = Wanted(network, recipe, seed, samples)
    request = _request(described, wanted)
    kept = store.look_up(folder, request) or store.keep(folder, request, *_make(described, wanted))
    files = {name: kept.folder / f"{name}.npy" for name in store.NAMES}
    return Prepared(**files, content=kept.content, provenance=kept.provenance)


def _request(dataset: Dataset, wanted: Wanted) -> dict[str, Any]:
    """Everything that the arrays depend on, and nothing else: networks of the same shapes share them."""
    network, recipe = wanted.network, wanted.recipe
    return {
        "form": FORM,
        "dataset": dataset.name,
        "sha256": dataset.sha256,
        "input": network.input.shape,
        "tokens": network.input.tokens,
        "output": network.output_shape,
        "loss": recipe.loss,
        "labels": recipe.labels,
        "samples": wanted.samples,
        "seed": wanted.seed if dataset.made_to_measure else None,
        "batch": recipe.batch if dataset.made_to_measure else None,
        "state": dataset.state,
    }


def _make(dataset: Dataset, wanted: Wanted) -> tuple[dict[str, Array], dict[str, Any]]:
    read = _cut(dataset, wanted, dataset.read(dataset, wanted))
    arrays = {
        "x_train": fit.inputs(dataset, wanted.network, read.x_train),
        "y_train": fit.labels(dataset, wanted.network, wanted.recipe, read.y_train),
        "x_test": fit.inputs(dataset, wanted.network, read.x_test),
        "y_test": fit.labels(dataset, wanted.network, wanted.recipe, read.y_test),
    }
    return arrays, {**_provenance(dataset, wanted, arrays), **_scored(read, arrays["y_test"])}


def _scored(read: Samples, y_test: Array) -> dict[str, Any]:
    """What a network's error is to be held against, where the dataset knows such a thing."""
    if not read.guesses:
        return dict(read.facts)
    guesses = {name: guess[: len(y_test)] for name, guess in read.guesses.items()}
    unit, size = read.unit
    return {**read.facts, "baselines": baselines.errors(guesses, y_test), "unit": {"name": unit, "size": size}}


def _cut(dataset: Dataset, wanted: Wanted, read: Samples) -> Samples:
    if wanted.samples is None:
        return read
    if wanted.samples > len(read.x_train):
        raise DataError(
            f"dataset '{dataset.name}' has {len(read.x_train):,} training samples, but {wanted.samples:,} were asked "
            "for; ask for fewer, or use the dataset 'synthetic', which has as many as are asked for"
        )
    return read.first(wanted.samples)


def _provenance(dataset: Dataset, wanted: Wanted, arrays: dict[str, Array]) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "synthetic": dataset.synthetic,
        "summary": dataset.summary,
        "source": dataset.source,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "sha256": dataset.sha256,
        "seed": wanted.seed if dataset.made_to_measure else None,
        "train": len(arrays["x_train"]),
        "test": len(arrays["x_test"]),
        "arrays": {name: f"{array.dtype} {list(array.shape)}" for name, array in arrays.items()},
    }
