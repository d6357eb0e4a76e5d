"""Percentiles, where the sample carries them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# With fewer values the true percentile lies beyond the largest of them in more than 0.13 % of all samples (the tail
# beyond three standard deviations), and what is printed would be a guess at what has not been seen.
LEAST = {50: 1, 90: 64, 95: 130, 99: 662}


@dataclass(frozen=True)
class Tails:
    """In the unit of the values. None: the sample is too small to say."""

    count: int
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


def tails(values: Sequence[float]) -> Tails:
    found = {
        f"p{percent}": float(np.percentile(values, percent)) for percent, least in LEAST.items() if len(values) >= least
    }
    return Tails(len(values), **found)
