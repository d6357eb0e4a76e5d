"""The contract: every adapter agrees with the reference on every case, layer by layer, gradient by gradient.

One process an engine runs all cases; each case is a test of its own. In float64 the tolerance is 1e-9: what passes
there is the same function, not a similar one. In float32 the same cases show that the engine's usual kernels agree.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests import engines
from tests.contract.cases import ALL, LAYERS, RECIPES, Case
from tests.contract.prepare import Workbench
from timetrial_worker import adapters

ROOT = Path(tempfile.mkdtemp(prefix="timetrial-contract-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)

# What `fit` does differently from `step` (batching, metrics, state) does not depend on the layer: some cases suffice.
FIT = [*RECIPES, *(case for case in LAYERS if case.name in ("conv-same", "batch-norm-image", "lstm-last", "embedding"))]
# Whether it is the same function does not depend on how hard XLA optimises; the runs in float32 use its defaults.
QUICKLY = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}


@cache
def bench(
    engine: str, precision: str, loop: str, cases: tuple[str, ...], theano: str, settings: tuple[tuple[str, Any], ...]
) -> Workbench:
    folder = Path(tempfile.mkdtemp(prefix=f"{engine}-{precision}-{loop}-", dir=ROOT))
    made = Workbench.make(folder, precision, loop, dict(settings))
    located = engines.find(engine)
    variables = {**located.variables, **(QUICKLY if precision == "float64" else {})}
    if theano:
        variables["THEANO_FLAGS"] = ",".join(filter(None, (variables.get("THEANO_FLAGS"), theano)))
    made.probe(engine, str(located.interpreter), *cases, **variables)
    return made


@cache
def reference(traits: str) -> Workbench:
    source = Workbench.make(ROOT / f"source-{abs(hash(traits))}")
    made = source.with_traits(ROOT / f"reference-{abs(hash(traits))}", json.loads(traits))
    made.probe("reference")
    return made


def traits_of(engine: str) -> dict[str, Any]:
    return dict(adapters.load(engine, {}).traits)


def cases_of(loop: str) -> list[Case]:
    return FIT if loop == "fit" else ALL


def contract(
    engine: str,
    precision: str,
    loop: str,
    lacks: Mapping[str, str] = MappingProxyType({}),
    cases: Sequence[Case] | None = None,
    theano: str = "",
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Callable[[Case], None]:
    """The test of one engine. Each engine has a file of its own, so that a parallel run computes its cases once.

    `lacks` holds the cases that the engine must refuse, each with words of its refusal: those, and no others. `cases`
    are those of the loop unless they are given; `theano` is what Theano is told besides, `settings` what any engine is.
    """
    asked = cases_of(loop) if cases is None else cases
    names = tuple(case.name for case in asked)

    @pytest.mark.engines
    @pytest.mark.timeout(3300)  # the first case waits until the process has computed all; Theano compiles C++ for each
    @pytest.mark.parametrize("case", asked, ids=lambda case: case.name)
    def agrees(case: Case) -> None:
        engines.find(engine)
        made = bench(engine, precision, loop, names, theano, tuple(settings.items()))
        verdict = made.verdict(case.name, engine)
        if case.name in lacks:
            assert verdict["outcome"] == "unsupported", verdict.get("message", "it is not refused any more")
            assert lacks[case.name] in verdict["message"]
            return
        assert verdict["outcome"] == "ok", verdict.get("message")
        proof = made.compare(case, engine, reference(json.dumps(traits_of(engine), sort_keys=True)))
        assert proof.checks
        assert proof.passed, proof.first_failure

    return agrees
