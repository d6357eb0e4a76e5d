"""What goes wrong in the world: one clear message, one typed outcome, nothing lost, no process left behind.

Every fault goes the whole way: through the gate and the campaign, in a process of its own, into a record.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.faults import bench
from timetrial.records import store as records
from timetrial.records.record import Outcome, Record
from timetrial.records.store import Store, StoreError
from timetrial.report import checks, regions
from timetrial.runner import executor as executors
from timetrial.runner import gate as gates
from timetrial.runner import process, profiles, work
from timetrial.runner.process import Finished
from timetrial.runner.surroundings import surroundings

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which data, weights and reference are made already."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        bench.install(patch.setattr)
        (record,) = bench.run(folder, "honest")
    assert record.outcome.ok, record.outcome
    shutil.rmtree(folder / "faults")
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it; afterwards no process may be left of what the test started."""
    bench.install(monkeypatch.setattr)
    shutil.copytree(prepared, tmp_path / "records")
    token = f"test-of-{tmp_path.name}-{os.getpid()}"
    named = lambda *given: {**surroundings(*given), "TEST_TOKEN": token}  # noqa: E731
    monkeypatch.setattr(executors, "surroundings", named)
    monkeypatch.setattr(gates, "surroundings", named)
    yield tmp_path / "records"
    assert none_left(token)


def none_left(token: str, seconds: float = 3.0) -> bool:
    deadline = time.monotonic() + seconds
    while left := bench.processes_with(token):
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.02)
    return True


def one(folder: Path, engine: str, **changes: Any) -> Record:
    (record,) = bench.run(folder, engine, **changes)
    assert Store(folder).records("faults") == [record]  # what is told is what is kept
    return record


# --- ends that no engine should come to ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "kind", "reason"),
    [
        ("segfaults", "crash", "died of SIGSEGV"),
        ("segfaultsinbuild", "crash", "died of SIGSEGV"),
        ("allocatestoomuch", "oom", "MemoryError: std::bad_alloc"),
        ("leaves", "crash", "left with exit code 3 and without a result"),
        ("leavesquietly", "crash", "left with exit code 0 and without a result"),
        ("raises", "crash", "RuntimeError: the kernel could not be launched"),
        ("notimportable", "missing", "ModuleNotFoundError: No module named 'a_framework_that_nobody_has'"),
        ("diverges", "diverged", "the loss is nan after the laps"),
        ("noconvolution", "unsupported", "no conv2d in this engine"),
    ],
)
def test_an_engine_that_fails_is_a_record_with_its_reason(folder: Path, engine: str, kind: str, reason: str) -> None:
    record = one(folder, engine)
    assert (record.outcome.kind, record.outcome.reason) == (kind, reason)
    assert "\n" not in record.outcome.reason
    assert bool(record.outcome.remedy) is (kind in ("crash", "oom"))
    if kind == "crash":
        assert record.outcome.remedy.startswith("record and report have the last lines of its log")
        assert f"`timetrial engines doctor {engine}`" in record.outcome.remedy
    assert record.training is None
    if kind not in ("diverged",):
        assert record.laps is None


def test_the_last_words_of_a_crash_are_kept(folder: Path) -> None:
    assert one(folder, "leaves").outcome.stderr == ("about to leave",)


@pytest.mark.parametrize(("engine", "phase"), [("hangsinimport", "import"), ("hangsinlaps", "first_step")])
def test_a_hang_is_a_timeout_that_names_the_phase(folder: Path, engine: str, phase: str) -> None:
    record = one(folder, engine, limits={"timeout": 1.5})
    assert record.outcome.kind == "timeout"
    assert record.outcome.reason == f"not finished after 1.5 s; it was in the phase {phase}"
    assert "limits" in record.outcome.remedy


def test_a_longer_limit_tries_again_what_ran_out_of_time(folder: Path) -> None:
    """As its remedy says; the same limit does not."""
    short = {"vary": {"recipe.batch": [16, 32]}, "recipe": {}}
    assert {record.outcome.kind for record in bench.run(folder, "honest", limits={"timeout": 0.05}, **short)} == {
        "timeout"
    }
    assert bench.run(folder, "honest", limits={"timeout": 0.05}, **short) == []
    assert [record.outcome.kind for record in bench.run(folder, "honest", **short)] == ["ok", "ok"]


def test_an_engine_that_eats_all_memory_is_stopped_at_the_limit(folder: Path) -> None:
    record = one(folder, "eatsmemory", limits={"timeout": 20, "memory": "400M"})
    assert record.outcome.kind == "oom"
    assert record.outcome.reason.endswith("of the 0.4 GiB that a run may use")
    assert "limits" in record.outcome.remedy


def test_an_engine_that_closes_its_pipe_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.5)
    outcome = one(folder, "closesitspipe").outcome
    assert outcome.kind == "crash"
    assert "closed its pipe" in outcome.reason


def test_rubbish_on_every_descriptor_disturbs_nothing(folder: Path) -> None:
    record = one(folder, "rubbish")
    assert record.outcome == Outcome(kind="ok")
    assert record.laps is not None
    assert len(record.laps.seconds) >= 3
    assert {"import", "build", "place", "first_step", "warmup", "steady"} <= set(record.phases)


def test_children_do_not_outlive_the_run(folder: Path) -> None:
    assert one(folder, "leaveschild").outcome.ok  # and the fixture looks for what is left


def test_more_threads_than_given_make_the_cell_invalid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "_PLANS", {"quick": replace(bench.TINY, seconds=0.6)})
    record = one(folder, "manythreads")
    if record.outcome.kind != "invalid" and (cores := cores_to_be_had()) < 1.5:
        pytest.skip(f"needs two cores, and this machine gives {cores:.1f} just now")
    assert record.outcome.kind == "invalid", record.effort
    assert record.effort is not None
    assert record.effort.threads == 25
    assert record.outcome.reason.endswith("cores busy where it was given 1")
    assert "cpu:1," not in record.outcome.remedy


def cores_to_be_had() -> float:
    spin = (
        "import hashlib, threading, time; block = bytes(2**20)\n"
        "def work():\n    while True: hashlib.sha256(block)\n"
        "for _ in range(24): threading.Thread(target=work, daemon=True).start()\n"
        "cpu, wall = time.process_time(), time.perf_counter(); time.sleep(1)\n"
        "print((time.process_time() - cpu) / (time.perf_counter() - wall))"
    )
    done = subprocess.run([sys.executable, "-c", spin], capture_output=True, text=True, start_new_session=True)
    return float(done.stdout)


def test_more_cpu_time_than_one_thread_can_have_makes_the_cell_invalid(folder: Path) -> None:
    record = one(folder, "twoclocks")
    assert record.outcome.kind == "invalid"
    assert record.outcome.reason.startswith("kept 3.")
    assert record.laps is not None  # kept to be looked at, never ranked


def test_threads_as_shipped_are_shown_and_not_enforced(folder: Path) -> None:
    record = one(folder, "twoclocks", settings={"threads": "as-shipped"})
    assert record.outcome.ok and record.effort is not None and record.effort.cores_used > 1.1
    assert any("twoclocks: threads as shipped: it kept 3." in text for text in regions.threads([record]))


def test_an_engine_as_it_ships_is_told_no_threads_and_has_all_cores(folder: Path) -> None:
    words = ["limited", "as-shipped"]
    found = bench.run(folder, "seesitssurroundings", vary={"settings.threads": words})
    limited, shipped = sorted(found, key=lambda record: words.index(record.cell["threads"]))
    assert limited.readback.items() >= {"asked_threads": 1, "cores": 1, "omp": "1"}.items()
    everything = {"asked_threads": None, "cores": len(os.sched_getaffinity(0)), "omp": None}
    assert shipped.readback.items() >= everything.items()


@pytest.mark.parametrize("settings", [{"feed": "batch"}, {"feed": "loader"}, {"lap": "epoch", "feed": "loader"}])
def test_the_wait_for_input_stands_in_the_record_beside_the_laps(folder: Path, settings: dict[str, str]) -> None:
    record = one(folder, "pipes", settings=settings)
    assert record.outcome.ok, record.outcome
    assert record.laps is not None and len(record.laps.input) == len(record.laps.seconds)
    assert all(0 < waited < lap for waited, lap in zip(record.laps.input, record.laps.seconds, strict=True))
    if settings["feed"] == "loader":
        assert min(record.laps.input) >= 0.001
    assert record.laps.epoch == (4 if "lap" in settings else None)  # 64 samples by 16
    assert record.includes.startswith("a whole epoch") is ("lap" in settings)
    assert record.laps.repeated == ()


def test_a_feed_that_an_engine_has_not_is_unsupported_in_words(folder: Path) -> None:
    record = one(folder, "honest", settings={"feed": "loader"})
    assert record.outcome.kind == "unsupported"
    assert "no input pipeline of its own: use feed: resident or feed: batch" in record.outcome.reason


def test_an_epoch_is_timed_as_a_whole_and_told_by_the_step(folder: Path) -> None:
    record = one(folder, "honest", settings={"lap": "epoch", "evaluate": "inside"})
    assert record.outcome.ok, record.outcome
    assert record.laps is not None and record.laps.epoch == 4 and record.laps.steps % 4 == 0
    assert record.laps.input == ()  # nothing was waited for, so nothing is told
    assert record.includes.endswith("then the test set predicted and scored")


def test_a_study_goes_on_after_each_failure(folder: Path) -> None:
    found = bench.run(folder, "raises", "honest", "leaves", "wronggradient", repeat=2)
    assert sorted((record.cell["engine"], record.outcome.kind) for record in found) == [
        ("honest", "ok"), ("honest", "ok"), ("leaves", "crash"), ("raises", "crash"), ("wronggradient", "wrong"),
    ]  # fmt: skip


# --- sabotage: the gate sees it, and no time is recorded ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "first"),
    [
        ("wronggradient", "the gradient of conv2d_1/kernel: off by 1.0e-02"),
        ("onewrongentry", "the update of "),
        ("transposedkernel", "the output of layer conv2d_1: off by"),
        ("missingbias", "the output of layer dense_1: off by"),
        ("otherpadding", "the output of layer conv2d_1: off by"),
        ("forgottenmomentum", "the update of conv2d_1/kernel: off by"),
        ("noupdate", "the update of conv2d_1/kernel: off by 1.0e+00"),
        ("forgetslayer", "the output of layer activation_1: missing"),
    ],
)
def test_sabotage_is_wrong_and_named_and_never_timed(folder: Path, engine: str, first: str) -> None:
    record = one(folder, engine)
    assert record.outcome.kind == "wrong"
    assert record.outcome.reason.startswith(f"differs from the reference first in {first}")
    assert record.equivalence is not None
    assert not record.equivalence.passed
    assert record.equivalence.failure == record.outcome.reason
    assert (record.laps, record.effort, record.training, record.phases) == (None, None, None, {})
    assert not list((folder / ".work" / "proofs").glob("*wrong*"))


def test_a_failure_is_never_remembered_as_a_proof(folder: Path) -> None:
    before = sorted((folder / ".work" / "proofs").iterdir())
    one(folder, "transposedkernel")
    assert sorted((folder / ".work" / "proofs").iterdir()) == before


# --- files cut short -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["weights", "references", "batches", "proofs", "data"])
@pytest.mark.parametrize("damage", ["half", "empty", "other"])
def test_a_damaged_file_of_the_working_folder_is_made_again(folder: Path, part: str, damage: str) -> None:
    whole = {}
    for path in (folder / ".work" / part).rglob("*"):
        if path.suffix in (".npz", ".npy", ".json") and path.is_file():
            whole[path] = path.read_bytes()
            path.write_bytes({"half": whole[path][: len(whole[path]) // 2], "empty": b"", "other": b"{}"}[damage])
    assert whole
    if part in ("references", "batches"):  # these are looked at where nothing is proved yet
        shutil.rmtree(folder / ".work" / "proofs")
    record = one(folder, "honest")
    assert record.outcome.ok, record.outcome
    assert record.equivalence is not None
    assert record.equivalence.passed
    assert record.equivalence.steps is not None
    if part in ("weights", "batches"):
        assert all(load(path) == load_bytes(content, path) for path, content in whole.items())


def load(path: Path) -> dict[str, Any]:
    return {name: values.tolist() for name, values in work.load_arrays(path).items()}


def load_bytes(content: bytes, beside: Path) -> dict[str, Any]:
    copy = beside.with_name("copy.npz")
    copy.write_bytes(content)
    try:
        return load(copy)
    finally:
        copy.unlink()


# --- the disk is full -------------------------------------------------------------------------------------------------


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_ends_the_study_with_a_remedy_and_keeps_what_there_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    going = bench.campaign(folder, "honest", repeat=2).go()
    first = next(going)
    monkeypatch.setattr(records.os, call, no_space)
    with pytest.raises(StoreError, match="the disk is full; free some space and start the study again"):
        next(going)
    monkeypatch.undo()
    assert Store(folder).records("faults") == [first]
    assert not list(folder.rglob("*.part"))
    assert not list(folder.rglob(".[0-9]*"))


def test_a_full_disk_at_the_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder / ".work" / "weights")
    monkeypatch.setattr(work.os, "replace", no_space)
    with pytest.raises(StoreError, match="the disk is full"):
        bench.run(folder, "honest")
    assert list((folder / ".work" / "weights").iterdir()) == []


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder: Path, but: int = 0) -> Path:
    """Take all that is free on its disk, but for so many bytes."""
    with open(folder / "filler", "wb", buffering=0) as filler:
        with contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 512)
        filler.truncate(filler.tell() - but)
    return folder / "filler"


def test_a_disk_that_is_really_full(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)
    with small_disk(tmp_path / "small") as small:
        shutil.copytree(prepared, small, dirs_exist_ok=True)
        going = bench.campaign(small, "honest", repeat=2).go()
        first = next(going)
        filler = fill(small)
        with pytest.raises(StoreError, match="the disk is full"):
            next(going)
        filler.unlink()
        assert Store(small).records("faults") == [first]
        again = bench.campaign(small, "honest", repeat=2)
        assert [step.run for step in again.todo] == [step.run for step in again.all_steps if step.run != first.run]
        assert [record.outcome.kind for record in again.go()] == ["ok"]


@pytest.mark.parametrize("but", [0, 2**16])
def test_a_full_temporary_folder_is_no_failure_of_the_engine(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, but: int
) -> None:
    """Neither where nothing can be written at all, nor where the run starts and then cannot go on."""
    with small_disk(tmp_path / "small") as small:
        monkeypatch.setattr(tempfile, "tempdir", str(small))
        filler = fill(small, but)
        with pytest.raises(StoreError, match=rf"{small}/timetrial-\w+.*: the disk is full; free some space"):
            bench.run(folder, "talks")
        assert Store(folder).records("faults") == []
        filler.unlink()
        assert os.listdir(small) == []
        assert [record.outcome.kind for record in bench.run(folder, "talks")] == ["ok"]


def test_arrays_on_a_disk_that_is_really_full(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's own way to write says neither where nor why."""
    bench.install(monkeypatch.setattr)
    for part, but in (("data", 2**13), ("data", 2**12), ("weights", 0)):
        with small_disk(tmp_path / f"{part}-{but}") as small:
            shutil.copytree(prepared, small, dirs_exist_ok=True)
            shutil.rmtree(small / ".work" / part)
            (small / ".work" / part).mkdir()
            filler = fill(small, but)
            with pytest.raises(StoreError, match=rf"{small}/\.work/{part}/.*: the disk is full; free some space"):
                bench.run(small, "honest")
            filler.unlink()
            assert [record.outcome.kind for record in bench.run(small, "honest")] == ["ok"]


# --- an engine that remembers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "caught"), [("remembers", True), ("recomputes", False)])
def test_an_engine_that_remembers_its_input_is_caught(folder: Path, engine: str, caught: bool) -> None:
    """Once a cell, after the laps that count: they are neither more nor other than without the test."""
    records = bench.run(folder, engine, tasks=["infer"], repeat=2)
    tested, plain = sorted(records, key=lambda record: record.block)
    assert tested.laps and plain.laps and not plain.laps.repeated
    assert len(tested.laps.repeated) == executors.REPEATED_LAPS
    assert tested.phases["repeat"] < tested.phases["steady"] + 0.1
    assert checks.remembers(tested.laps) is caught
    said = checks.shortcomings(records)
    assert bool(said) is caught
    if caught:
        assert min(tested.laps.seconds) > 0.002 > 10 * max(tested.laps.repeated)
        assert said[0].startswith("remembers (tiny, infer, batch 16): remembers its input")
    assert "met one batch again and again" in dict(checks.method(records))["Inputs"]


# --- interrupted ------------------------------------------------------------------------------------------------------


class Launched:
    """`timetrial run` on a slow study, in a process group of its own."""

    def __init__(self, folder: Path, repeat: int = 3) -> None:
        self.folder, self.token = folder, f"launched-{folder.parent.name}-{os.getpid()}"
        self.study = folder.parent / "study.yaml"
        self.study.write_text(yaml.safe_dump({**bench.STUDY, "engines": ["slowlaps"], "repeat": repeat}))

    def start(self) -> subprocess.Popen[str]:
        # The token travels in a variable that runs keep.
        home = str(self.folder.parent / self.token)
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "HOME": home}
        command = ["run", str(self.study), "--records", str(self.folder)]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.launch", *command], cwd=ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def wait_for_the_second_run(self, launched: subprocess.Popen[str]) -> None:
        """Until one record is there and a worker is at work on the next."""
        deadline = time.monotonic() + 30
        while not (self.records() and len(bench.processes_with(self.token)) > 1):
            assert launched.poll() is None, launched.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def records(self) -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in (self.folder / "faults").glob("*.json")}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9), (signal.SIGTERM, -15)])
def test_a_study_that_is_stopped_goes_on_where_it_was(folder: Path, number: int, code: int) -> None:
    """Even a parent that is killed takes its worker along: the kernel ends it."""
    launch = Launched(folder)
    launched = launch.start()
    launch.wait_for_the_second_run(launched)
    launched.send_signal(number)
    _, said = launched.communicate(timeout=10)
    assert launched.returncode == code
    assert "Traceback" not in said
    if number == signal.SIGINT:
        assert "What was measured is kept; the same command goes on from there." in said
    assert none_left(launch.token)
    kept = launch.records()
    assert 1 <= len(kept) < 3
    assert Store(folder).unreadable() == []
    again = launch.start()
    _, said = again.communicate(timeout=60)
    assert again.returncode == 0, said
    assert f"{len(kept)} runs are already measured and are kept" in said
    assert len(launch.records()) == 3
    assert kept.items() <= launch.records().items()  # not even touched
    assert none_left(launch.token)


# --- the dataset, the code ---------------------------------------------------------------------------------------------


def test_a_dataset_that_does_not_fit_a_network_is_that_cells_outcome(folder: Path) -> None:
    """The others are measured all the same."""
    wide = {**bench.NETWORK, "name": "wide", "input": {"shape": [9, 9, 3]}}
    found = bench.run(folder, "honest", networks=[wide, bench.NETWORK], data="synthetic:6x6x2:4")
    kinds = {record.cell["model"]: record.outcome for record in found}
    assert kinds["tiny"].ok
    assert kinds["wide"].kind == "unsupported"
    assert "synthetic:6x6x2:4" in kinds["wide"].reason


def test_a_changed_adapter_is_proved_and_measured_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own.py"
    source = bench.FILE.read_text()
    file.write_text(source)
    bench.install(monkeypatch.setattr, {"own": bench.engine("Honest", file)})
    assert [record.outcome.kind for record in bench.run(folder, "own")] == ["ok"]
    assert bench.campaign(folder, "own").todo == []
    file.write_text(source.replace("class Honest(Reference):", "class Honest(Reference):\n    changed = True\n"))
    work.adapter_digest.cache_clear()
    (step,) = bench.campaign(folder, "own").todo
    assert step.trial.engine == "own"
    work.adapter_digest.cache_clear()


def test_threads_are_counted_by_cpu_time_over_wall_time(folder: Path) -> None:
    trial = bench.campaign(folder, "honest").all_steps[0].trial

    def outcome(cpu: float, wall: float) -> Outcome:
        events = [{"event": "steady", "cpu_seconds": cpu, "wall_seconds": wall}]
        return executors.threads_kept(Finished(Outcome(kind="ok"), events), trial)

    assert outcome(1.09, 1.0).ok
    assert outcome(2.19, 1.0).reason == "kept 2.19 cores busy where it was given 1"
    assert outcome(2.19, 1.0).remedy.startswith("compare it on placement cpu:3")
    assert outcome(1.11, 1.0).remedy.startswith("compare it on placement cpu:2")
    assert outcome(1.2, 0.0).ok  # nothing was timed
