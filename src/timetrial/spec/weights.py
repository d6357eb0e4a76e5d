"""Starting weights: drawn once per network and seed, so that every engine begins with the same numbers."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from timetrial.spec.network import Network

if TYPE_CHECKING:
    import numpy as np


def initial_weights(network: Network, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Each parameter has a stream of its own, by its name: another layer more does not move the others."""
    import numpy as np

    weights = {}
    for parameter in network.parameters:
        rng = np.random.default_rng([seed, zlib.crc32(parameter.name.encode())])
        values = parameter.initialiser.draw(rng, parameter.shape, *parameter.reach)
        weights[parameter.name] = np.ascontiguousarray(values, dtype=np.float32)
    return weights
