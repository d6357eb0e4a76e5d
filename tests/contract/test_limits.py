"""Every engine's own matrix product, as the worker's mode `limits` runs it: tiny, in all dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import engines
from timetrial.meters.hardware import cores_for, inventory
from timetrial.meters.limits import NUMPY, Question, measure, questions
from timetrial.runner.process import Bounds, run
from timetrial.runner.surroundings import surroundings
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Settings

MACHINE = inventory(nvidia_smi="no-such-tool")


def start(question: Question, folder: Path) -> list[dict[str, Any]]:
    located = engines.find(question.engine)
    assert located.interpreter is not None
    small = {"sizes": (16, 32), "copy_bytes": question.job["copy_bytes"] and 2**20}
    cores = cores_for(question.placement.threads, MACHINE)
    job = {**question.job, **small, "adapter": located.engine.adapter, "cores": cores}
    variables = surroundings(question.placement, Settings(), located.variables)
    return run(located.interpreter, job, folder, variables, Bounds(120)).events


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["torch", "tensorflow", "jax"])
def test_an_engine_multiplies_in_every_dtype(engine: str, tmp_path: Path) -> None:
    asked = [question for question in questions([engine], [Placement()], MACHINE) if question.engine == engine]
    found = measure(asked, lambda question: start(question, tmp_path))
    assert found.missing == ()
    assert [(one.dtype, one.size) for one in found.attempts] == [
        (dtype, size) for dtype in ("float32", "float64", "bfloat16") for size in (16, 32)
    ]
    best = found.best("float32", 1)
    assert best is not None
    assert best.rate == max(one.rate for one in found.attempts if one.dtype == "float32")
    assert best.version == engines.find(engine).version


def test_numpy_multiplies_and_moves_memory(tmp_path: Path) -> None:
    asked = questions([], [Placement()], MACHINE)
    found = measure(asked, lambda question: start(question, tmp_path))
    assert found.missing == ("reference on cpu, bfloat16: NumPy has no bfloat16",)
    assert found.best("float64", 1) is not None
    copied = found.bandwidth(1, "copy")
    assert copied is not None and copied.engine == NUMPY and copied.size == 2**20
