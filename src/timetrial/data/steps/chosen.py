"""Which steps a dataset goes through on its way to a network: those asked for, or what its kind of samples needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timetrial.data import fit
from timetrial.data.samples import Samples
from timetrial.data.steps.base import StepError
from timetrial.data.steps.chain import Chain, read_chain
from timetrial.spec.network import Network

if TYPE_CHECKING:
    from timetrial.data.registry import Dataset


def chain_for(dataset: Dataset, network: Network, texts: Sequence[str] | None) -> Chain | None:
    """Read and checked without loading anything. None: nothing asked for, nothing published, the dataset has none."""
    texts = texts or dataset.preprocessing
    if not texts:
        return None
    chain = read_chain(texts).completed(network)
    if dataset.input_shape is not None:
        fit.check(dataset, network, chain.shape(dataset.input_shape), chain.texts)
    elif dataset.synthetic:
        raise StepError(
            f"dataset '{dataset.name}' is made in the network's own form, so no steps come before it; leave out "
            "`preprocessing`, or name the shape of the raw samples as in 'synthetic:32x32x3:10'"
        )
    return chain


def default_chain(samples: Samples, network: Network) -> Chain:
    """Texts become words, streams of bytes characters, sequences of different lengths one length; all else stays."""
    x = samples.x_train
    texts: tuple[str, ...] = ()
    if x.dtype.kind in "OU" and len(x):
        spoken = isinstance(x[0], str)
        texts = ("group", "impute") if not spoken else ("words",) if network.input.tokens else ()
    elif x.ndim == 1 and x.dtype == np.uint8:
        texts = ("next-character",)
    return read_chain(texts).completed(network)
