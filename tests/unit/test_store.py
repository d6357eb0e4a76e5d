"""Records: what is written is what is read, whole or not at all, and what is no record is named and left alone."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timetrial.records import store as stores
from timetrial.records.digest import Digest, digests
from timetrial.records.record import SCHEMA, Effort, Equivalence, Laps, Outcome, Record, Training
from timetrial.records.store import Store, StoreError, Unreadable, write_atomically

CELL = {"model": "tiny", "engine": "torch", "placement": "cpu", "batch": 8, "version": None}


def record(run: str = "a-00", study: str = "s", **changes: Any) -> Record:
    return Record.model_validate(
        {"run": run, "trial": "a", "study": study, "block": 0, "cell": CELL, "outcome": Outcome(kind="ok"), **changes}
    )


FULL = record(
    run="full-01", block=1, phases={"import": 0.25, "build": 1e-9},
    laps=Laps(seconds=(0.1, 0.30000000000000004, 1e-300), steps=4, warmup=(1.5,), stable=False),
    effort=Effort(cpu_seconds=1.0, wall_seconds=2.0, threads=None, involuntary_switches=3, idle_step_seconds=4e-8, clock_resolution=1e-9),
    training=Training(losses=(2.5, 0.1), epochs=2, accuracy=0.75, saved_bytes=2**40),
    equivalence=Equivalence(passed=True, forward=1e-7, gradient=None, steps=1e-5, differences=("bn: µ",)),
    memory={"resident_after_build": 2**33}, versions={"torch": "2.13.0+cpu"}, readback={"threads": [1, None]},
    machine="m", hashes={"network": "n"}, parent_cpu_share=0.001, started="2026-01-01T00:00:00+00:00", wall_seconds=9.5,
)  # fmt: skip
FAILED = record(run="bad-02", outcome=Outcome(kind="crash", reason="died “badly”", exit="exit 3", stderr=("a", "b")))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "records")


# --- whole -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [record(), FULL, FAILED])
def test_what_is_written_is_what_is_read(store: Store, kept: Record) -> None:
    path = store.write(kept)
    assert path == store.folder / "s" / f"{kept.run}.json"
    assert store.records("s") == [kept]
    assert store.runs("s") == {kept.run: kept}
    assert sorted(os.listdir(path.parent)) == [path.name]
    assert stat.S_IMODE(path.stat().st_mode) & 0o444


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(min_value=0, allow_infinity=False), min_size=1, max_size=20),
    st.text(max_size=40),
    st.dictionaries(
        st.text(max_size=5),
        st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
        max_size=4,
    ),
)
def test_no_digit_and_no_letter_is_lost(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[float], reason: str, readback: dict[str, Any]
) -> None:
    store = Store(tmp_path_factory.mktemp("records"))
    kept = record(
        laps=Laps(seconds=tuple(seconds), steps=1, warmup=(), stable=True),
        outcome=Outcome(kind="crash", reason=reason), readback=readback,
    )  # fmt: skip
    store.write(kept)
    assert store.records() == [kept]


def test_what_was_not_measured_is_not_in_the_file(store: Store) -> None:
    content = json.loads(store.write(record()).read_text())
    assert set(content) == {"run", "trial", "study", "block", "cell", "outcome"}


def test_a_record_is_flushed_to_the_disk_before_it_gets_its_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(stores.os, "fsync", lambda fd: (done.append("fsync"), fsync(fd)))
    monkeypatch.setattr(stores.os, "replace", lambda a, b: (done.append("replace"), replace(a, b)))
    store.write(record())
    assert done == ["fsync", "replace"]


def test_a_reader_never_sees_half_a_record(store: Store) -> None:
    big = record(readback={"x": list(range(20000))})
    store.write(big)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            store.write(big)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(40):
            assert store.records("s") == [big]
            assert store.unreadable("s") == []
    finally:
        stop.set()
        writer.join()


def test_a_writer_that_is_killed_leaves_whole_records_only(store: Store) -> None:
    body = (
        "import sys; from tests.unit.test_store import record; from timetrial.records.store import Store\n"
        "from pathlib import Path\n"
        "for i in range(10**6): Store(Path(sys.argv[1])).write(record(f'r-{i:06}', readback={'x': list(range(20000))}))"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", body, str(store.folder)], env={**os.environ, "PYTHONPATH": "src:."}
    )
    deadline = time.monotonic() + 30
    while len(list((store.folder / "s").glob("r-*.json"))) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    writer.kill()
    writer.wait()
    assert store.unreadable() == []
    assert len(store.records("s")) >= 5


# --- only added -------------------------------------------------------------------------------------------------------


def aside(store: Store) -> list[Path]:
    return sorted((store.folder / "s" / "replaced").glob("*"))


def test_a_record_that_another_takes_the_place_of_is_kept(store: Store) -> None:
    """However often, and whatever it is; and nobody takes it for one of the study's runs."""
    for number in range(3):
        store.write(record(block=number))
    store.path("s", "a-00").write_bytes(b'{"half')
    last = record(block=9)
    store.write(last)
    kept = [path.read_bytes() for path in aside(store)]
    assert sorted(kept) == sorted(
        [b'{"half', *((record(block=i).model_dump_json(exclude_defaults=True) + "\n").encode() for i in range(2))]
    )
    assert len({path.name for path in aside(store)}) == 3
    assert all(path.name.startswith("a-00.") and path.suffix == ".json" for path in aside(store))
    assert store.records() == store.records("s") == [last]
    assert (store.studies(), store.unreadable()) == (["s"], [])
    assert store.query("SELECT count(*) FROM runs").fetchall() == [(1,)]
    for place in (store.folder, store.folder / "s"):
        assert [item.run for item in digests(place) if isinstance(item, Digest)] == ["a-00"]


def test_the_same_once_more_replaces_nothing(store: Store) -> None:
    """Nor does one that differs in when it was written alone: of an engine that is still missing, at each start."""
    gone = record(outcome=Outcome(kind="missing", reason="not here"))
    for session in ("one", "two"):
        store.write(gone.model_copy(update={"session": session, "started": session}))
    assert aside(store) == []
    store.write(record(session="three"))
    assert len(aside(store)) == 1


def test_the_same_record_replaced_twice_is_kept_once(store: Store) -> None:
    for number in (0, 1, 0, 1, 0):
        store.write(record(block=number))
    assert len(aside(store)) == 2


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("after", [0, 1])
def test_a_disk_that_fails_while_a_record_is_replaced_loses_neither(
    store: Store, monkeypatch: pytest.MonkeyPatch, call: str, after: int
) -> None:
    """Before the old one is kept, or after that and before the new one has its name."""
    old, new = record(block=1), record(block=2)
    store.write(old)
    done: list[object] = []
    real = getattr(os, call)

    def fail(*given: object) -> None:
        done.append(given)
        if len(done) > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*given)

    monkeypatch.setattr(stores.os, call, fail)
    with pytest.raises(StoreError, match="the disk is full"):
        store.write(new)
    monkeypatch.undo()
    assert store.records("s") == [old]
    assert len(aside(store)) == after
    store.write(new)
    assert store.records("s") == [new]
    assert [Record.model_validate_json(path.read_text()) for path in aside(store)] == [old]
    assert not list(store.folder.rglob("*.part"))


# --- not whole -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not whole JSON: half written or damaged"),
        (b'{"run": "a", "ce', "not whole JSON: half written or damaged"),
        (b"\xff\xfe\x00", "not text"),
        (b"[1, 2]", "not a record of a run"),
        (b'"text"', "not a record of a run"),
        (b'{"name": "something else"}', "not a record of a run"),
        (b'{"run": "a", "cell": {}}', "not a record of this version"),
        (json.dumps({**json.loads(FULL.model_dump_json()), "block": "first"}).encode(), "not a record of this version"),
        (json.dumps({**json.loads(FULL.model_dump_json()), "extra": 1}).encode(), "not a record of this version"),
        (
            json.dumps({**json.loads(FULL.model_dump_json()), "schema_version": SCHEMA + 1, "extra": 1}).encode(),
            "written by a newer version of timetrial; update this one to read it",
        ),
        (json.dumps({"run": "a", "cell": {}, "schema_version": "two"}).encode(), "not a record of this version"),
        (b'{"run": ' + b"[" * 100000, "not whole JSON: nested too deeply"),
    ],
)
def test_what_is_no_record_is_named_and_the_others_are_read(store: Store, content: bytes, reason: str) -> None:
    good = [record("a-00"), record("z-00")]
    for item in good:
        store.write(item)
    foreign = store.folder / "s" / "m.json"
    foreign.write_bytes(content)
    assert [item for item in store.scan("s") if isinstance(item, Record)] == good
    assert store.unreadable("s") == [Unreadable(foreign, reason)]
    assert store.query("SELECT count(*) FROM runs").fetchall() == [(2,)]
    assert foreign.read_bytes() == content  # left alone


def test_a_folder_in_the_place_of_a_file_is_named(store: Store) -> None:
    store.write(record("z-00"))
    place = store.path("s", "a-00")
    place.mkdir()
    assert store.unreadable() == [Unreadable(place, "Is a directory")]
    assert [r.run for r in store.records()] == ["z-00"]
    with pytest.raises(StoreError, match=r"a-00\.json: cannot be written \(Is a directory\)"):
        store.write(record("a-00"))
    assert [path.name for path in place.parent.iterdir() if path.name.endswith(".part")] == []


def test_a_file_that_may_not_be_read_and_a_dangling_link_are_named(store: Store) -> None:
    store.write(record("z-00"))
    (store.folder / "s" / "gone.json").symlink_to(store.folder / "nowhere")
    assert [(item.path.name, item.reason) for item in store.unreadable()] == [
        ("gone.json", "No such file or directory")
    ]


def test_half_written_temporary_files_and_other_files_are_no_records(store: Store) -> None:
    store.write(record())
    (store.folder / "s" / ".b-00.json.123.part").write_text('{"run"')
    (store.folder / "s" / "notes.txt").write_text("mine")
    assert [item.run for item in store.scan() if isinstance(item, Record)] == ["a-00"]
    assert store.unreadable() == []


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk is full; free some space and start the study again, it goes on where it was"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EROFS, r"cannot be written \(Read-only file system\); what was measured before is kept"),
        (errno.EIO, r"cannot be written \(Input/output error\)"),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_nothing_half_done(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int, said: str, call: str
) -> None:
    store.write(record("a-00"))

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(stores.os, call, fail)
    with pytest.raises(StoreError, match=rf"b-00\.json: {said}"):
        store.write(record("b-00"))
    monkeypatch.undo()
    assert os.listdir(store.folder / "s") == ["a-00.json"]
    store.write(record("b-00"))
    assert len(store.records()) == 2


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "file").write(record())


# --- many -------------------------------------------------------------------------------------------------------------


def test_studies_are_the_folders_but_for_the_machines_and_the_working_folder(store: Store) -> None:
    assert store.studies() == []
    store.write(record(study="b"))
    store.write(record(study="a"))
    store.keep_machine("f", {"cores": 2})
    (store.folder / ".work" / "weights").mkdir(parents=True)
    (store.folder / "file.json").write_text("{}")
    assert store.studies() == ["a", "b"]
    assert [r.study for r in store.records()] == ["a", "b"]
    assert store.records("b") == [record(study="b")]
    assert store.records("none") == []


def test_folders_merge_by_copying(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    store.write(record("a-00", machine="one"))
    path = other.write(record("b-00", machine="two"))
    (store.folder / "s" / path.name).write_bytes(path.read_bytes())
    assert [(r.run, r.machine) for r in store.records("s")] == [("a-00", "one"), ("b-00", "two")]


def test_a_machine_is_kept_once_and_read_again(store: Store) -> None:
    assert store.machine("f") is None
    store.keep_machine("f", {"cores": 2, "path": Path("/x")})
    store.keep_machine("f", {"cores": 3})
    assert store.machine("f") == {"cores": 2, "path": "/x"}
    (store.folder / "machines" / "f.json").write_text("{half")
    assert store.machine("f") is None


def test_records_are_queried_with_sql_and_as_a_frame(store: Store) -> None:
    for number, (engine, seconds) in enumerate((("torch", 1.0), ("torch", 3.0), ("jax", 5.0))):
        laps = Laps(seconds=(seconds,), steps=1, warmup=(), stable=True)
        store.write(record(f"{number}-00", cell={**CELL, "engine": engine}, laps=laps))
    store.write(FAILED)
    found = store.query(
        "SELECT cell.engine, avg(laps.seconds[1]) FROM runs WHERE laps IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
    assert found.fetchall() == [("jax", 5.0), ("torch", 2.0)]
    assert store.query("SELECT outcome.reason FROM runs WHERE outcome.kind = 'crash'").fetchall() == [("died “badly”",)]
    frame = store.frame("s")
    assert len(frame) == 4
    assert list(frame["cell.engine"]) == ["torch", "torch", "jax", "torch"]
    assert frame["laps.seconds"][0] == [1.0]


def test_a_query_of_nothing_says_so(store: Store) -> None:
    with pytest.raises(StoreError, match="there are no records to query yet"):
        store.query("SELECT 1 FROM runs")


def test_atomic_writing_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["file.json"]


def test_two_processes_may_write_the_same_record(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a temporary name of its own."""
    names: list[str] = []
    replace = os.replace
    monkeypatch.setattr(stores.os, "replace", lambda a, b: (names.append(Path(a).name), replace(a, b)))
    for pid in (11, 12):
        monkeypatch.setattr(stores.os, "getpid", lambda pid=pid: pid)
        store.write(record())
    assert len(set(names)) == 2
    assert len(store.records()) == 1


def test_cores_used_is_cpu_time_over_wall_time() -> None:
    assert FULL.effort is not None
    assert FULL.effort.cores_used == 0.5
    assert FULL.effort.model_copy(update={"wall_seconds": 0.0}).cores_used == 0.0
