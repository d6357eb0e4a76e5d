"""Rules of the method that no single module is responsible for."""

from __future__ import annotations

import ast
import inspect
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit import made_records as made
from tests.unit.test_laps import PLAN, constant
from tests.unit.test_study import trials
from timetrial.records.digest import Digest, briefs, digests
from timetrial.records.record import Laps, Record
from timetrial.records.store import Store
from timetrial.report.comparison import side
from timetrial.report.summary import summarise
from timetrial.runner.surroundings import surroundings
from timetrial.runner.work import settings_of
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Settings
from timetrial.stats.intervals import process_value
from timetrial.stats.outliers import outliers
from timetrial.stats.tails import tails
from timetrial_worker import adapters
from timetrial_worker.adapters.base import Adapter, Unsupported
from timetrial_worker.feed import Feed
from timetrial_worker.laps import Stopwatch, steady

ENGINES = ("torch", "tensorflow", "jax", "keras-torch", "keras-tensorflow", "keras-jax")
OTHER: dict[str, Any] = {
    "loop": "fit", "compile": "none", "allocator": "as-shipped", "tf32": True, "deterministic": True,
    "flush": True,
}  # fmt: skip


# --- settings ----------------------------------------------------------------------------------------------------------


def test_settings_are_equal_by_default_and_part_of_the_trial() -> None:
    found = trials(engines=list(ENGINES))
    assert len(found) == 6
    assert len({trial.settings for trial in found}) == len({trial.recipe for trial in found}) == 1
    settings = found[0].settings
    assert (settings.tf32, settings.allocator, found[0].recipe.precision) == (False, "tuned", "float32")
    for name, value in OTHER.items():
        (changed,) = trials(engines=["torch"], settings={name: value})
        assert changed.id != found[0].id and changed.coordinates[name] == value
    assert set(OTHER) <= set(Settings.model_fields)
    assert (
        settings_of(found[0]).items()
        >= {**settings.model_dump(exclude={"threads"}), "threads": 1, "precision": "float32", "seed": 1}.items()
    )


def modules(engine: str) -> list[ast.Module]:
    kinds = [kind for kind in type(adapters.load(engine, {})).__mro__ if kind not in (Adapter, object)]
    return [ast.parse(text) for text in {inspect.getsource(sys.modules[kind.__module__]) for kind in kinds}]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_tells_what_it_was_set_to(engine: str) -> None:
    told = set()
    for tree in modules(engine):
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and function.name in ("readback", "_read_backend"):
                told |= {
                    n.value for n in ast.walk(function) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                }
                told |= {n.arg for n in ast.walk(function) if isinstance(n, ast.keyword)}
    assert {"device", "threads", "tf32"} <= told
    assert {"compile", "jit_compile"} & told
    assert {"dtype", "compute_dtype"} & told


def test_the_allocator_is_a_setting_that_reaches_the_run() -> None:
    tuned, shipped = (
        surroundings(Placement(), Settings.model_validate({"allocator": word}), {}, {})
        for word in ("tuned", "as-shipped")
    )
    assert set(tuned) - set(shipped) == {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "OMP_WAIT_POLICY"}
    assert int(tuned["MALLOC_TRIM_THRESHOLD_"]) > 2**40
    assert Settings().allocator == "tuned"
    ids = {trials(settings={"allocator": word})[0].id for word in ("tuned", "as-shipped")}
    assert len(ids) == 2


# --- nothing is replaced in silence --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_device_that_is_not_there_is_refused_and_not_replaced(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = adapters.load(engine, {"device": "cuda:0"})
    monkeypatch.setattr(sys.modules[type(adapter).__module__], "torch", WITHOUT_GPU, raising=False)
    adapter.tf = adapter._jax = WITHOUT_GPU
    with pytest.raises(Unsupported, match="cuda:0"):
        _find_device(adapter)


def no_such_backend(kind: str) -> None:
    raise RuntimeError(kind)


# Of each framework, what its adapter asks for the devices that there are.
WITHOUT_GPU = SimpleNamespace(
    cuda=SimpleNamespace(is_available=lambda: False),
    config=SimpleNamespace(list_physical_devices=lambda kind: []),
    devices=no_such_backend,
)


def _find_device(adapter: Any) -> None:
    if adapter.name.startswith("keras"):
        adapter._check_settings()
        adapter._pick([])
    elif adapter.name == "tensorflow":
        adapter._choose_device()
    else:
        adapter._find_device()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("change", [{"precision": "float8"}, {"compile": "warp"}, {"loop": "sideways"}])
def test_a_precision_or_mode_that_is_not_there_is_refused_and_not_replaced(engine: str, change: dict[str, str]) -> None:
    (word,) = change.values()
    with pytest.raises(Unsupported, match=word if engine != "tensorflow" or "loop" not in change else "loop"):
        adapters.load(engine, change)._check_settings()
    adapters.load(engine, {})._check_settings()


# --- inputs ------------------------------------------------------------------------------------------------------------


def test_a_lap_never_meets_the_same_input_twice_in_a_row(tmp_path: Path) -> None:
    """Whoever remembers the last answer gains nothing, within a lap and from one to the next."""
    data = {}
    for part, count in (("train", 100), ("test", 10)):
        for letter, values in (("x", np.arange(count, dtype=np.float32)), ("y", np.zeros(count))):
            data[f"{letter}_{part}"] = str(tmp_path / f"{letter}_{part}.npy")
            np.save(data[f"{letter}_{part}"], values)
    batches = [tuple(x) for x, _ in Feed(data, {"batch": 10, "shuffle": True}, seed=1).cycle(8)]
    assert len(set(batches)) == 8

    seen: list[tuple[float, ...]] = []
    adapter = Adapter({})
    adapter.step = seen.append  # type: ignore[method-assign]
    device = constant(0.5)
    watch = Stopwatch(lambda first, count: adapter.run_steps(batches, first, count), device.sync, device.clock)
    for count in (1, 3, 8, 5, 16):
        watch.lap(count)
    assert len(seen) == 33
    assert all(one != after for one, after in pairwise(seen))
    assert all(len(set(seen[i : i + 8])) == 8 for i in range(25))


# --- memory apart ------------------------------------------------------------------------------------------------------


def test_the_time_of_a_memory_run_counts_for_nothing(tmp_path: Path) -> None:
    runs = made.runs("jax", 1e-3)
    apart = made.record("jax", 1, 5e-2, role="memory", run="jax-1m", memory={"resident_after_steady": 900 * 2**20})
    both: list[Record] = [*runs, apart]
    assert summarise(both)[0].rows[0].step == summarise(runs)[0].rows[0].step
    for one in both:
        Store(tmp_path).write(one)
    found = [item for item in digests(tmp_path) if isinstance(item, Digest)]
    (brief,) = briefs(found)
    (cell,) = side("one", found).cells
    assert brief.seconds == cell.seconds == pytest.approx([0.995e-3, 1e-3, 1.005e-3])
    assert [run.run for run in cell.apart] == ["jax-1m"]


# --- tails and outliers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("percentile", "least"), [("p90", 64), ("p95", 130), ("p99", 662)])
def test_a_tail_is_said_where_the_sample_carries_it(percentile: str, least: int) -> None:
    values = np.linspace(1.0, 2.0, least)
    assert getattr(tails(values[1:]), percentile) is None
    assert getattr(tails(values), percentile) == pytest.approx(np.percentile(values, float(percentile[1:])))


def test_outliers_are_counted_and_stay() -> None:
    laps = (*([1.0, 1.01, 0.99] * 6), 2.0, 50.0)
    found = outliers(laps)
    assert (found.count, found.severe, found.warn) == (20, 2, True)
    run = made.record("jax", 0, 1.0, laps=Laps(seconds=laps, steps=1, warmup=(), stable=True))
    (row,) = summarise([run])[0].rows
    assert run.laps and len(run.laps.seconds) == 20
    assert row.process_seconds == (process_value(laps),) == (float(np.median(laps)),)
    device = constant(1.0)
    kept = steady(device.watch(), PLAN._replace(laps=20, seconds=0.0), 1, lambda event, seconds: None, device.clock)
    assert len(kept) == 20
