"""Engines that work behind the caller's back have nothing left to do once their adapter has waited.

Only JAX does so on a CPU; it can also be asked for every array that there is, weights, optimiser state and outputs alike.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import engines
from tests.contract.cases import Case
from tests.contract.prepare import clean_environment, write

PROBE = Path(__file__).with_name("probe_awaited.py")
WIDE = Case(
    "wide",
    {"shape": [256]},
    [{"dense": {"units": 1024, "activation": "relu"}}, {"dense": {"units": 10, "activation": "softmax"}}],
    {"batch": 128, "optimiser": {"kind": "adam", "rate": 0.001}},
)


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["jax", "keras-jax"])
def test_no_array_is_left_unfinished(engine: str, tmp_path: Path) -> None:
    located = engines.find(engine)
    write(tmp_path, WIDE, "float32", "step")
    folder = tmp_path / WIDE.name
    subprocess.run(
        [str(located.interpreter), str(PROBE), engine, str(folder)],
        check=True, env=clean_environment(located.variables), stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    for arrays, unfinished in json.loads((folder / f"{engine}.json").read_text()).values():
        assert arrays >= 4 * 3  # two kernels, two biases, and Adam's two moments of each
        assert unfinished == 0
