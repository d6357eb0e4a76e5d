"""Dropout, which the gate leaves out because no two frameworks draw the same masks: what it must do all the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests import engines
from tests.contract.prepare import clean_environment
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

pytestmark = pytest.mark.engines
RATE, WIDTH, STEP = 0.4, 20000, 0.01
PROBE = Path(__file__).with_name("probe_dropout.py")


@pytest.mark.parametrize("engine", [*engines.TODAY, *engines.ORIGINALS, "reference"])
def test_dropout_keeps_the_mean_and_follows_the_seed(engine: str, tmp_path: Path) -> None:
    located = engines.find(engine)
    network = Network.model_validate(
        {"input": {"shape": [WIDTH]}, "layers": [{"dropout": {"rate": RATE}}, {"dense": {"units": 1}}]}
    )
    recipe = Recipe.model_validate({"batch": 1, "loss": "mse", "optimiser": {"kind": "sgd", "rate": STEP}})
    settings = {"device": "cpu", "threads": 1, "seed": 5, "precision": "float32", "loop": "step"}
    job = {"network": network.lowered("mse"), "recipe": recipe.model_dump(mode="json"), "settings": settings}
    (tmp_path / "job.json").write_text(json.dumps(job))
    done = subprocess.run(
        [str(located.interpreter), str(PROBE), engine, str(tmp_path / "job.json")],
        env=clean_environment(located.variables), capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    first, second, again_first, again_second = (np.array(change) for change in answer["changes"])

    # The first step starts from zero weights, so every kept value moves by exactly 2 rate / (1 - dropout).
    kept = first != 0
    assert np.allclose(first[kept], -STEP * 2 / (1 - RATE), rtol=1e-5)
    assert abs(1 - kept.mean() - RATE) < 5 * np.sqrt(RATE * (1 - RATE) / WIDTH)
    assert not np.array_equal(kept, second != 0), "the same mask twice"
    assert np.array_equal(first, again_first), "load() starts the same stream of masks again"
    assert np.array_equal(second, again_second)
    assert answer["predicted"] == pytest.approx(WIDTH, rel=1e-4), "prediction must not drop anything"
