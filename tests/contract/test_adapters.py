"""The contract: every adapter agrees with the reference on every case, layer by layer, gradient by gradient.

One process an engine runs all cases; each case is a test of its own. In float64 the tolerance is 1e-9: what passes
there is the same function, not a similar one. In float32 the same cases show that the engine's usual kernels agree.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import engines
from tests.contract.cases import ALL, LAYERS, RECIPES, Case
from tests.contract.prepare import Workbench
from timetrial_worker import adapters

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]  # the first case of an engine waits for all of them
ROOT: list[Path] = []

# What `fit` does differently from `step` (batching, metrics, state) does not depend on the layer: some cases suffice.
FIT = [*RECIPES, *(case for case in LAYERS if case.name in ("conv-same", "batch-norm-image", "lstm-last", "embedding"))]
RUNS = [
    *((engine, "float64", "step", ALL) for engine in engines.TODAY),
    *((engine, "float32", "step", ALL) for engine in engines.TODAY if not engine.startswith("keras-")),
    *((engine, "float32", "fit", FIT) for engine in engines.TODAY if engine.startswith("keras-")),
]
# Whether it is the same function does not depend on how hard XLA optimises; the runs in float32 use its defaults.
QUICKLY = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}


@pytest.fixture(scope="session", autouse=True)
def _root(tmp_path_factory: pytest.TempPathFactory) -> None:
    ROOT[:] = [tmp_path_factory.mktemp("contract")]


@cache
def bench(engine: str, precision: str, loop: str) -> Workbench:
    made = Workbench.make(ROOT[0] / f"{engine}-{precision}-{loop}", precision, loop)
    located = engines.find(engine)
    cases = [case.name for *run, wanted in RUNS if run == [engine, precision, loop] for case in wanted]
    hurry = QUICKLY if precision == "float64" else {}
    made.probe(engine, str(located.interpreter), *cases, **located.engine.backend_env, **hurry)
    return made


@cache
def reference(traits: str) -> Workbench:
    source = Workbench.make(ROOT[0] / f"source-{abs(hash(traits))}")
    made = source.with_traits(ROOT[0] / f"reference-{abs(hash(traits))}", json.loads(traits))
    made.probe("reference")
    return made


def traits_of(engine: str) -> dict[str, Any]:
    return dict(adapters.load(engine, {}).traits)


def _parameters() -> list[Any]:
    """One worker of a parallel test run gets all cases of an engine, because one process computes them all."""
    return [
        pytest.param(*run, case, id="-".join([*run, case.name]), marks=pytest.mark.xdist_group("-".join(run)))
        for *run, cases in RUNS
        for case in cases
    ]


@pytest.mark.parametrize(("engine", "precision", "loop", "case"), _parameters())
def test_agrees_with_the_reference(engine: str, precision: str, loop: str, case: Case) -> None:
    engines.find(engine)
    made = bench(engine, precision, loop)
    verdict = made.verdict(case.name, engine)
    assert verdict["outcome"] == "ok", verdict.get("message")
    proof = made.compare(case, engine, reference(json.dumps(traits_of(engine), sort_keys=True)))
    assert proof.checks
    assert proof.passed, proof.first_failure
