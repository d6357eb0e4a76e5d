"""One dataset, made ready once for a network and its recipe: arrays that all engines and runs map into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timetrial.data import baselines, fit, store
from timetrial.data.registry import Dataset, find
from timetrial.data.samples import Array, DataError, Samples, Wanted, counted
from timetrial.data.steps import Chain
from timetrial.data.steps.chosen import chain_for, default_chain
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

FORM = 2  # counted up when the same request is to give other arrays


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
    dataset: str,
    network: Network,
    recipe: Recipe,
    seed: int,
    folder: Path,
    samples: int | str | None = None,
    preprocessing: Sequence[str] | None = None,
) -> Prepared:
    """The prepared dataset in `folder`: made if it is not there or no longer intact.

    The seed makes a stand-in and what steps draw; a real dataset without chance is the same for every seed. `samples`
    takes the first of the training samples, a number or a share of them such as `33%`, and at most as many of the
    test's. `preprocessing` are steps; without them the samples are only brought into the network's form.
    """
    described = find(dataset)
    share = samples if isinstance(samples, str) else None
    if isinstance(samples, int) and samples < 1:
        raise DataError(f"{samples} samples of dataset '{dataset}' cannot be prepared; ask for at least one")
    wanted = Wanted(network, recipe, seed, samples if isinstance(samples, int) else None)
    chain = chain_for(described, network, preprocessing)
    request = {**_request(described, wanted, chain), **({"share": share} if share else {})}
    kept = store.look_up(folder, request) or store.keep(folder, request, *_make(described, wanted, chain, share))
    files = {name: kept.folder / f"{name}.npy" for name in store.NAMES}
    return Prepared(**files, content=kept.content, provenance=kept.provenance)


def _request(dataset: Dataset, wanted: Wanted, chain: Chain | None) -> dict[str, Any]:
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
        "preprocessing": chain.texts if chain else None,
        "seed": wanted.seed if dataset.made_to_measure or (chain and chain.random) else None,
        "batch": recipe.batch if dataset.made_to_measure else None,
        "state": dataset.state,
    }


def _make(
    dataset: Dataset, wanted: Wanted, chain: Chain | None, share: str | None
) -> tuple[dict[str, Array], dict[str, Any]]:
    raw = dataset.read(dataset, wanted)
    chain = chain or default_chain(raw, wanted.network)

    def cut(samples: Samples) -> Samples:
        return _cut(dataset, counted(share, len(samples.x_train)) if share else wanted.samples, samples)

    read = chain.run(raw, wanted.seed, cut)
    arrays = {
        "x_train": fit.inputs(dataset, wanted.network, read.x_train),
        "y_train": fit.labels(dataset, wanted.network, wanted.recipe, read.y_train),
        "x_test": fit.inputs(dataset, wanted.network, read.x_test),
        "y_test": fit.labels(dataset, wanted.network, wanted.recipe, read.y_test),
    }
    # Steps make new samples; what a network is held against was read with the old ones.
    return arrays, {**_provenance(dataset, wanted, chain, arrays), **_scored(cut(raw), arrays["y_test"])}


def _scored(read: Samples, y_test: Array) -> dict[str, Any]:
    """What a network's error is to be held against, where the dataset knows such a thing."""
    if not read.guesses:
        return dict(read.facts)
    guesses = {name: guess[: len(y_test)] for name, guess in read.guesses.items()}
    unit, size = read.unit
    return {**read.facts, "baselines": baselines.errors(guesses, y_test), "unit": {"name": unit, "size": size}}


def _cut(dataset: Dataset, asked: int | None, read: Samples) -> Samples:
    if asked is None:
        return read
    if asked > len(read.x_train):
        raise DataError(
            f"dataset '{dataset.name}' has {len(read.x_train):,} training samples, but {asked:,} were asked "
            "for; ask for fewer, or use the dataset 'synthetic', which has as many as are asked for"
        )
    return read.first(asked)


def _provenance(dataset: Dataset, wanted: Wanted, chain: Chain, arrays: dict[str, Array]) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "synthetic": dataset.synthetic,
        "summary": dataset.summary,
        "source": dataset.source,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "sha256": dataset.sha256,
        "preprocessing": list(chain.texts),
        "seed": wanted.seed if dataset.made_to_measure or chain.random else None,
        "train": len(arrays["x_train"]),
        "test": len(arrays["x_test"]),
        "arrays": {name: f"{array.dtype} {list(array.shape)}" for name, array in arrays.items()},
    }
