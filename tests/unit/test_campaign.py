"""A study carried out with an engine that is right (the reference under another name), in real processes of its own."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.faults import bench
from tests.unit.test_study import trials
from timetrial.engines import registry
from timetrial.meters.hardware import Machine
from timetrial.records.record import Limit, Outcome, Record
from timetrial.records.store import Store
from timetrial.runner import executor, work
from timetrial.runner import gate as gates
from timetrial.runner.batches import proof_batches
from timetrial.runner.campaign import Campaign
from timetrial.runner.process import Finished
from timetrial.runner.steps import Notice
from timetrial.runner.surroundings import surroundings
from timetrial.spec.network import Network
from timetrial.spec.placement import Placement
from timetrial.spec.recipe import Recipe
from timetrial.spec.region import includes
from timetrial.spec.trial import Settings


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Record], list[Notice]]]:
    """A folder in which a study of two engines, two tasks and two blocks was carried out, with all that was told."""
    folder = tmp_path_factory.mktemp("done")
    told: list[Notice] = []
    with pytest.MonkeyPatch.context() as patch:
        bench.install(patch.setattr)
        going = bench.campaign(folder, "honest", "noconvolution", tasks=["train", "infer"], repeat=2, accuracy=True)
        records = list(going.go(told.append))
    return folder, records, told


@pytest.fixture
def folder(done: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Weights, data, reference and proofs are there; no record is."""
    bench.install(monkeypatch.setattr)
    shutil.copytree(done[0] / ".work", tmp_path / "records" / ".work")
    return tmp_path / "records"


# --- what is run, in what order -----------------------------------------------------------------------------------------


def test_every_cell_is_run_once_in_every_block(done: Any) -> None:
    _, records, _ = done
    runs = Counter((r.cell["engine"], r.cell["task"], r.block) for r in records)
    good = {("honest", task, block): 1 for task in ("train", "infer") for block in (0, 1)}
    bad = {("noconvolution", task, 0): 1 for task in ("train", "infer")}  # what has failed is not tried again
    assert runs == Counter(good | bad)
    assert [r.block for r in records] == sorted(r.block for r in records)
    assert len({r.run for r in records}) == 6
    assert len({r.trial for r in records}) == 4


def test_it_tells_what_it_does_while_it_does_it(done: Any) -> None:
    _, records, told = done
    ended = [notice.record for notice in told if notice.kind == "end"]
    assert ended == records
    of_one = [n for n in told if n.step.run == next(r.run for r in records if r.outcome.ok)]
    kinds = [n.kind for n in of_one]
    assert kinds[:2] == ["begin", "proved"]
    assert kinds[-1] == "end"
    assert set(kinds[2:-1]) == {"event"}
    assert {n.event["event"] for n in of_one if n.event} >= {
        "begin",
        "started",
        "end",
        "warm",
        "lap",
        "steady",
        "outcome",
    }


def test_the_names_of_runs_are_the_same_whenever_they_are_asked_for(folder: Path) -> None:
    one, other = (bench.campaign(folder, "honest", repeat=3) for _ in range(2))
    assert [s.run for s in one.all_steps] == [s.run for s in other.all_steps]
    longer = bench.campaign(folder, "honest", repeat=5)
    assert {s.run for s in one.all_steps} <= {s.run for s in longer.all_steps}
    thorough = bench.campaign(folder, "honest", repeat=3, profile="publish")
    assert not {s.run for s in one.all_steps} & {s.run for s in thorough.all_steps}


# --- what a record holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["train", "infer"])
def test_a_record_of_a_good_run_holds_everything(done: Any, task: str) -> None:
    _, records, _ = done
    record = next(r for r in records if r.outcome.ok and r.cell["task"] == task and r.block == 0)
    assert record.laps is not None
    assert len(record.laps.seconds) >= bench.TINY.laps
    assert record.laps.stable in (True, False)
    assert len(record.laps.warmup) >= bench.TINY.warmup_steps
    assert all(seconds > 0 for seconds in record.laps.seconds)
    assert record.effort is not None
    assert record.effort.cores_used <= 1.1
    assert record.effort.wall_seconds >= sum(record.laps.seconds) * record.laps.steps * 0.999
    assert {"import", "build", "place", "first_step", "warmup", "steady"} <= set(record.phases)
    assert record.memory["resident_after_import"] <= record.memory["resident_after_build"]
    assert record.memory["resident_after_build"] <= record.memory["resident_after_steady"]
    assert record.equivalence is not None
    assert record.equivalence.passed
    assert record.equivalence.forward == 0.0  # the reference against itself
    assert record.versions == {"honest": "1.0", "numpy": np.__version__}
    assert record.readback["dtype"] == "float64"
    assert record.readback["threads"] == "1"
    assert record.hashes.keys() == {"network", "recipe", "adapter"}
    assert record.cell["profile"] == "quick"
    assert record.includes.startswith("batches already on the device: forward")
    assert ("backward" in record.includes) is (task == "train")
    assert record.started.endswith("+00:00")
    assert record.wall_seconds is not None
    assert record.wall_seconds > sum(record.phases.values()) * 0.9


def test_training_to_the_end_happens_once_a_cell(done: Any) -> None:
    _, records, _ = done
    trained = [r for r in records if r.training]
    assert [(r.cell["engine"], r.cell["task"], r.block) for r in trained] == [("honest", "train", 0)]
    training = trained[0].training
    assert training is not None
    assert len(training.losses) == training.epochs == 1
    assert training.accuracy is not None
    assert 0 <= training.accuracy <= 1
    assert training.saved_bytes is not None
    assert training.saved_bytes > 8 * 500  # float64
    assert {"train", "evaluate", "save"} <= set(trained[0].phases)


def test_the_parent_sleeps_while_an_engine_is_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(bench.TINY, laps=10, lap_seconds=0.1, seconds=1.0)
    monkeypatch.setattr("timetrial.runner.profiles._PLANS", {"quick": plan})
    (record,) = bench.run(folder, "honest")
    assert record.parent_cpu_share is not None
    assert record.parent_cpu_share < 0.05


def test_a_failed_run_holds_no_figures(done: Any) -> None:
    _, records, _ = done
    for record in (r for r in records if r.cell["engine"] == "noconvolution"):
        assert record.outcome == Outcome(
            kind="unsupported", reason="no conv2d in this engine", stderr=record.outcome.stderr
        )
        assert (record.laps, record.effort, record.training, record.equivalence) == (None, None, None, None)


def test_the_machine_lies_beside_the_records(done: Any) -> None:
    folder, records, _ = done
    (fingerprint,) = {r.machine for r in records}
    machine = Store(folder).machine(fingerprint)
    assert machine is not None
    assert machine["cpu"]["logical_cores"] >= 1


def test_all_runs_of_a_network_start_from_the_same_weights_and_see_the_same_data(done: Any) -> None:
    folder, _, _ = done
    assert len(list((folder / ".work" / "weights").iterdir())) == 1
    assert len(list((folder / ".work" / "batches").iterdir())) == 1
    assert len(list((folder / ".work" / "references").iterdir())) == 1
    assert len(list((folder / ".work" / "data" / "requests").iterdir())) == 1


# --- resuming -----------------------------------------------------------------------------------------------------------


def test_what_is_measured_is_not_measured_again(folder: Path) -> None:
    first = bench.run(folder, "honest", "raises", repeat=2)
    again = bench.campaign(folder, "honest", "raises", repeat=2)
    assert again.todo == []
    assert list(again.go()) == []
    assert sorted(again.done.values(), key=lambda r: r.run) == sorted(first, key=lambda r: r.run)


def test_more_repetitions_add_to_what_there_is(folder: Path) -> None:
    first = bench.run(folder, "honest", repeat=1)
    more = bench.run(folder, "honest", repeat=3)
    assert [r.block for r in more] == [1, 2]
    assert Store(folder).records("faults") == sorted([*first, *more], key=lambda r: r.run)


def test_a_study_that_was_stopped_goes_on_with_what_is_left(folder: Path) -> None:
    going = bench.campaign(folder, "honest", repeat=3).go()
    first = next(going)
    going.close()
    again = bench.campaign(folder, "honest", repeat=3)
    assert [s.block for s in again.todo] == [1, 2]
    assert [r.block for r in again.go()] == [1, 2]
    assert Store(folder).runs("faults")[first.run] == first


def test_fresh_measures_all_again(folder: Path) -> None:
    (old,) = bench.run(folder, "honest")
    asked = bench.study("honest")
    fresh = Campaign(
        asked, [old_step.trial for old_step in bench.campaign(folder, "honest").all_steps], folder, fresh=True
    )
    (new,) = fresh.go()
    assert new.run == old.run
    assert new.laps != old.laps
    assert Store(folder).records("faults") == [new]
    (kept,) = (folder / "faults" / "replaced").iterdir()
    assert Record.model_validate_json(kept.read_text()) == old


def test_a_half_written_record_is_measured_again(folder: Path) -> None:
    (old,) = bench.run(folder, "honest")
    path = Store(folder).path("faults", old.run)
    path.write_bytes(path.read_bytes()[:100])
    (new,) = bench.run(folder, "honest")
    assert Store(folder).records("faults") == [new]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"machine": "another"}, 1),
        ({"versions": {"numpy": "0.1"}}, 1),
        ({"versions": {}}, 0),  # it did not come so far as to tell them
        ({"versions": {"numpy": np.__version__, "python": "3.11"}}, 0),
        ({"hashes": {"adapter": "older"}}, 1),
        ({"hashes": {}}, 1),
        ({"outcome": Outcome(kind="missing")}, 1),
        ({"outcome": Outcome(kind="crash")}, 0),
        ({"outcome": Outcome(kind="wrong")}, 0),
    ],
)
def test_what_was_measured_elsewhere_or_with_other_code_does_not_count(
    folder: Path, change: dict[str, Any], left: int
) -> None:
    (old,) = bench.run(folder, "honest")
    Store(folder).write(old.model_copy(update=change))
    assert len(bench.campaign(folder, "honest").todo) == left


# --- engines and machines that cannot -----------------------------------------------------------------------------------


def test_an_engine_that_is_not_installed_is_missing_with_its_remedy_and_looked_at_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = replace(bench.engine("Honest"), name="nowhere", needs=("a_package_that_nobody_has",))
    bench.install(monkeypatch.setattr, {**bench.fakes(), "nowhere": nowhere})
    found = {r.cell["engine"]: r for r in bench.run(folder, "nowhere", "honest")}
    assert found["honest"].outcome.ok
    outcome = found["nowhere"].outcome
    assert outcome.kind == "missing"
    assert "a_package_that_nobody_has is not installed beside timetrial" in outcome.reason
    assert outcome.remedy
    assert [step.trial.engine for step in bench.campaign(folder, "nowhere", "honest").todo] == ["nowhere"]


def test_more_threads_than_there_are_cores_is_unsupported_before_anything_is_run(folder: Path) -> None:
    (record,) = bench.run(folder, "honest", placements=["cpu:4096"])
    assert record.outcome.kind == "unsupported"
    assert record.outcome.reason.startswith("4096 threads are asked for, but this process may use")
    assert record.wall_seconds is None


def machine_with(folder: Path, free: int | None, limit: int | None) -> Machine:
    real = bench.campaign(folder, "honest").machine
    return replace(real, memory=replace(real.memory, available=free), limits=replace(real.limits, memory=limit))


@pytest.mark.parametrize(
    ("free", "limit", "asked", "allowed"),
    [
        (2**30, None, None, 0.9 * 2**30), (2**30, 2**29, None, 0.9 * 2**29), (None, 2**29, None, 0.9 * 2**29),
        (None, None, None, None), (2**30, None, "100M", 100 * 2**20),
    ],
)  # fmt: skip
def test_a_run_may_use_most_of_what_is_free_or_what_the_study_says(
    folder: Path, free: int | None, limit: int | None, asked: str | None, allowed: float | None
) -> None:
    limits = {"timeout": "2m", **({"memory": asked} if asked else {})}
    asked = bench.study("honest", limits=limits)
    bounds = executor.Executor(asked, folder, machine_with(folder, free, limit), "made")._bounds()
    assert (bounds.timeout, bounds.memory) == (120, allowed)


def test_the_steps_of_a_study_reach_the_data_of_its_runs(folder: Path) -> None:
    plain, stepped = (
        bench.study("honest", data="synthetic:6x6x2:4", **more) for more in ({}, {"preprocessing": ["gcn"]})
    )
    carrying = executor.Executor(plain, folder, machine_with(folder, 2**30, None), "made")
    x, chained = (carrying._data(bench.trials_of(asked)[0]) for asked in (plain, stepped))
    assert x.provenance["preprocessing"] == []
    assert chained.provenance["preprocessing"] == ["gcn?subtract=column&channels=apart&floor=1e-08"]
    assert np.allclose(np.load(chained.x_train).std((1, 2)), 1, atol=1e-4)
    assert not np.allclose(np.load(x.x_train).std((1, 2)), 1, atol=1e-2)


# --- the gate ---------------------------------------------------------------------------------------------------------


class Counting:
    """Stands in for `run` and counts the processes of the gate, by adapter."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proved: list[str] = []
        run = gates.run

        def counted(interpreter: Path, job: dict[str, Any], *rest: Any) -> Finished:
            self.proved.append(job["adapter"].rpartition(":")[2])
            return run(interpreter, job, *rest)

        monkeypatch.setattr(gates, "run", counted)


def test_a_proof_is_made_once_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder / ".work" / "proofs")
    counting = Counting(monkeypatch)
    bench.run(folder, "honest", repeat=3)
    assert counting.proved == ["Honest"]  # the reference was there already
    bench.run(folder, "honest", repeat=4)
    assert counting.proved == ["Honest"]


def test_the_reference_is_made_once_for_all_engines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder / ".work")
    counting = Counting(monkeypatch)
    bench.run(folder, "honest", "wronggradient", "slowlaps")
    assert sorted(counting.proved) == ["Honest", "SlowLaps", "WrongGradient", "reference"]


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"seed": 2}, True), ({"recipe": {**bench.STUDY["recipe"], "loss": "mse", "labels": "one_hot"}}, True),
        ({"recipe": {**bench.STUDY["recipe"], "optimiser": {"kind": "adam"}}}, True),
        ({"settings": {"deterministic": True}}, True), ({"settings": {"allocator": "as-shipped"}}, False),
        ({"recipe": {**bench.STUDY["recipe"], "batch": 32}}, False), ({"samples": 48}, False), ({"repeat": 2}, False),
        ({"recipe": {**bench.STUDY["recipe"], "epochs": 3}}, False),
    ],
)  # fmt: skip
def test_a_proof_holds_for_what_it_was_made_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], again: bool
) -> None:
    counting = Counting(monkeypatch)
    found = bench.run(folder, "honest", **change)
    assert all(r.outcome.ok for r in found), found[0].outcome
    assert ("Honest" in counting.proved) is again


def test_a_failure_is_found_once_in_a_campaign_and_looked_at_again_in_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(monkeypatch)
    assert {r.outcome.kind for r in bench.run(folder, "wronggradient", repeat=3)} == {"wrong"}
    assert counting.proved == ["WrongGradient"]
    shutil.rmtree(folder / "faults")
    bench.run(folder, "wronggradient")
    assert counting.proved == ["WrongGradient"] * 2


@pytest.mark.parametrize(
    "content",
    [
        '{"checks": [], "differences": [], "versions": {}}',
        "[1]",
        "null",
        '{"checks": [["step", "x", 5.0, 0.1, ""]], "differences": [], "versions": {}}',
    ],
)
def test_a_kept_proof_that_proves_nothing_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    for path in (folder / ".work" / "proofs").iterdir():
        path.write_text(content)
    counting = Counting(monkeypatch)
    (record,) = bench.run(folder, "honest")
    assert counting.proved == ["Honest"]
    assert record.equivalence is not None
    assert record.equivalence.passed


def test_where_the_reference_cannot_work_nothing_is_proved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder / ".work" / "references")
    shutil.rmtree(folder / ".work" / "proofs")
    fakes = bench.fakes()
    bench.install(
        monkeypatch.setattr, {**fakes, "reference": replace(fakes["raises"], adapter=f"{bench.FILE}:HangsInImport")}
    )
    (record,) = bench.run(folder, "honest", limits={"timeout": 1.5})
    assert record.outcome.kind == "crash"
    assert record.outcome.reason.startswith("the reference could not compute tiny: not finished after 1.5 s")
    assert record.outcome.limit == Limit(timeout=1.5)  # with more time it may
    assert record.laps is None


# --- parts ------------------------------------------------------------------------------------------------------------


def network(**keys: Any) -> Network:
    return Network.model_validate({**bench.NETWORK, **keys})


def test_proof_batches_are_seeded_and_fit_the_network() -> None:
    one, same, other = (proof_batches(network(), Recipe(batch=8), 5, seed) for seed in (1, 1, 2))
    assert list(one) == [f"{side}{i}" for i in range(5) for side in "xy"]
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["x0"], other["x0"])
    assert not np.array_equal(one["x0"], one["x1"])
    assert one["x0"].shape == (8, 6, 6, 2)
    assert one["x0"].dtype == np.float32
    assert len(np.unique(one["x0"])) == one["x0"].size  # no two values tie: a pooling has one answer
    assert set(np.concatenate([one[f"y{i}"] for i in range(5)])) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("recipe", "shape", "kind"),
    [
        ({"labels": "one_hot"}, (8, 4), "f"), ({"labels": "integer"}, (8,), "i"), ({"loss": "mse"}, (8, 4), "f"),
        ({"loss": "mae"}, (8, 4), "f"), ({"loss": "binary_cross_entropy"}, (8, 4), "f"),
    ],
)  # fmt: skip
def test_labels_fit_the_loss(recipe: dict[str, Any], shape: tuple[int, ...], kind: str) -> None:
    labels = proof_batches(network(), Recipe.model_validate({"batch": 8, **recipe}), 1, 1)["y0"]
    assert labels.shape == shape
    assert labels.dtype.kind == kind
    if recipe.get("labels") == "one_hot":
        assert labels.sum(1).tolist() == [1.0] * 8
    if recipe.get("loss") == "binary_cross_entropy":
        assert set(labels.ravel()) == {0.0, 1.0}


def test_tokens_are_below_the_vocabulary() -> None:
    tokens = Network.model_validate(
        {
            "input": {"shape": [9], "tokens": 5},
            "layers": [
                {"embedding": {"vocabulary": 5, "units": 2}},
                "flatten",
                {"dense": {"units": 3, "activation": "softmax"}},
            ],
        }
    )
    x = proof_batches(tokens, Recipe(batch=8), 1, 1)["x0"]
    assert x.dtype == np.int32
    assert set(x.ravel()) == {0, 1, 2, 3, 4}


def test_a_run_sees_a_cleaned_environment_with_its_threads_set() -> None:
    parent = {
        "PATH": "/bin",
        "HOME": "/h",
        "OMP_NUM_THREADS": "64",
        "PYTHONPATH": "/x",
        "CUDA_VISIBLE_DEVICES": "7",
        "LD_PRELOAD": "/y",
    }
    tuned = surroundings(Placement(threads=3), Settings(), {"KERAS_BACKEND": "jax"}, parent)
    assert [tuned[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")] == ["3"] * 4
    assert (tuned["TF_NUM_INTRAOP_THREADS"], tuned["TF_NUM_INTEROP_THREADS"]) == ("3", "1")
    assert (tuned["PATH"], tuned["HOME"], tuned["KERAS_BACKEND"]) == ("/bin", "/h", "jax")
    assert tuned["CUDA_VISIBLE_DEVICES"] == ""
    assert not {"PYTHONPATH", "LD_PRELOAD"} & set(tuned)
    assert tuned["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "MALLOC_TRIM_THRESHOLD_" in tuned
    shipped = surroundings(Placement(), Settings(allocator="as-shipped"), {}, parent)
    assert not {name for name in shipped if "MALLOC" in name or "WAIT" in name}


def test_a_gpu_run_sees_its_gpu_alone() -> None:
    assert surroundings(Placement.parse("cuda:2"), Settings(), {}, {})["CUDA_VISIBLE_DEVICES"] == "2"


def test_a_network_is_hashed_without_its_name() -> None:
    assert work.network_digest(network()) == work.network_digest(network(name="other"))
    assert work.network_digest(network()) != work.network_digest(network(input={"shape": [6, 6, 3]}))


def test_the_adapters_source_is_part_of_a_measurements_identity(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("one")
    first = work.adapter_digest(f"{own}:Class")
    assert first != work.adapter_digest("reference")
    own.write_text("two")
    work.adapter_digest.cache_clear()
    assert work.adapter_digest(f"{own}:Class") != first


def test_weights_are_the_same_numbers_every_time(tmp_path: Path) -> None:
    one, other = (work.starting_weights(network(), 1, tmp_path / name) for name in "ab")
    assert one.read_bytes() == other.read_bytes()
    assert work.starting_weights(network(), 2, tmp_path / "a") != one
    arrays = work.load_arrays(one)
    assert {name: values.shape for name, values in arrays.items()} == {p.name: p.shape for p in network().parameters}


def test_the_reference_is_never_ranked_and_every_timed_region_has_its_words() -> None:
    assert registry.ENGINES["reference"].ranked is False
    words = {includes(trial) for trial in trials(tasks=["train", "infer"], vary={"settings.loop": ["step", "fit"]})}
    assert len(words) == 4 and all(words)
