"""The error of a guess that needs no network, over the same test samples and in the same unit as a network's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from timetrial.data.samples import Array


def errors(guesses: Mapping[str, Array], truth: Array) -> dict[str, dict[str, float]]:
    found = {}
    for name, guess in guesses.items():
        difference = guess.astype(np.float64) - truth
        found[name] = {"mse": float(np.mean(difference**2)), "mae": float(np.mean(np.abs(difference)))}
    return found
