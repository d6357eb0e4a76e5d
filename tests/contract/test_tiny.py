"""What today's engines do with numbers below the normal range on a CPU, and which of them can be told otherwise."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import engines
from tests.contract.prepare import clean_environment

PROBE = Path(__file__).with_name("probe_tiny.py")
CAN_BE_SET = ("torch", "keras-torch")


def answer(engine: str, wish: str) -> object:
    located = engines.find(engine)
    found = subprocess.run(
        [str(located.interpreter), str(PROBE), engine, wish], check=True, capture_output=True, text=True,
        env=clean_environment(located.engine.backend_env), stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.engines
@pytest.mark.parametrize("wish", ["as-it-comes", "true", "false"])
@pytest.mark.parametrize("engine", engines.TODAY)
def test_what_an_engine_does_with_tiny_numbers(engine: str, wish: str) -> None:
    """PyTorch does as it is told and keeps them otherwise; TensorFlow and XLA set each thread to flush, always."""
    assert answer(engine, wish) is (wish == "true" if engine in CAN_BE_SET else True)
