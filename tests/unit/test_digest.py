"""The fast path over records agrees with the slow one: on what a record is, on its words, and on its figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.unit import made_records as made
from tests.unit.test_store import FAILED, FULL, record
from timetrial.cli.main import app
from timetrial.records import digest as digests_module
from timetrial.records.digest import Digest, briefs, digests, peaks, times
from timetrial.records.record import SCHEMA, Laps, Outcome, Record
from timetrial.records.store import Store, Unreadable
from timetrial.stats.intervals import interval, process_value

WHOLE = FULL.model_dump_json().encode()


def changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(WHOLE), **changes}).encode()


def both(folder: Path, study: str = "s") -> tuple[list[Any], list[Any]]:
    """The same folder, read in both ways; of a record its name, of anything else the place and the reason."""
    slow = [item.run if isinstance(item, Record) else item for item in Store(folder).scan(study)]
    quick = [item.run if isinstance(item, Digest) else item for item in digests(folder / study)]
    return slow, quick


# --- what is a record ------------------------------------------------------------------------------------------------

FILES: dict[str, bytes] = {
    "empty": b"",
    "cut": WHOLE[: len(WHOLE) // 2],
    "cut at the end": WHOLE.rstrip()[:-1],
    "more behind it": WHOLE + b"{}",
    "not text": b"\xff\xfe\x00",
    "byte order mark": b"\xef\xbb\xbf" + WHOLE,
    "half a letter": WHOLE.replace("µ".encode(), b"\xc2"),
    "lone surrogate": WHOLE.replace(b'"machine":"m"', b'"machine":"\\ud800"'),
    "list": b"[1, 2]",
    "text": b'"text"',
    "number": b"1",
    "null": b"null",
    "something else": b'{"name": "something else"}',
    "too little": b'{"run": "a", "cell": {}}',
    "deep": b'{"run": ' + b"[" * 100000,
    "deep inside": changed(readback={"x": 1}).replace(b'{"x": 1}', b"[" * 5000 + b"]" * 5000),
    "wrong type": changed(block="first"),
    "number as text": changed(block="1"),
    "fraction of a block": changed(block=1.5),
    "whole as fraction": changed(block=1.0),
    "truth as number": changed(block=True),
    "null block": changed(block=None),
    "huge number": WHOLE.replace(b'"block":1', b'"block":' + b"9" * 400),
    "infinite lap": WHOLE.replace(b"1e-300", b"1e400"),
    "no number": WHOLE.replace(b"1e-300", b"NaN"),
    "infinity": WHOLE.replace(b"1e-300", b"-Infinity"),
    "twice": WHOLE.replace(b'"block":1', b'"block":1,"block":2'),
    "extra": changed(extra=1),
    "newer": changed(schema_version=SCHEMA + 1, extra=1),
    "newer, but readable": changed(schema_version=SCHEMA + 1),
    "newer as text": changed(schema_version=str(SCHEMA + 1)),
    "older": changed(schema_version=0),
    "no version": changed(schema_version=None),
    "unknown outcome": changed(outcome={"kind": "bored"}),
    "unknown role": changed(role="cousin"),
    "twin": changed(role="twin"),
    "laps without steps": changed(laps={"seconds": [1.0]}),
    "no laps in laps": changed(laps={"seconds": [], "steps": 1, "warmup": [], "stable": True}),
    "good": WHOLE,
    "failed": FAILED.model_dump_json().encode(),
    "least": record().model_dump_json(exclude_defaults=True).encode(),
    "white space": b"\n\t " + WHOLE + b"\r\n ",
}


@pytest.mark.parametrize("name", FILES)
def test_both_paths_agree_on_what_a_record_is(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    store.write(record("a-00"))
    (tmp_path / "s" / "m.json").write_bytes(FILES[name])
    store.write(record("z-00"))
    slow, quick = both(tmp_path)
    assert quick == slow
    assert quick[0] == "a-00" and quick[-1] == "z-00" and len(quick) == 3


def test_the_files_of_these_tests_are_of_both_kinds(tmp_path: Path) -> None:
    """Or they would prove nothing."""
    for number, content in enumerate(FILES.values()):
        (tmp_path / f"{number:03}.json").write_bytes(content)
    kinds = [type(item) for item in digests(tmp_path)]
    assert kinds.count(Digest) > 8 and kinds.count(Unreadable) > 15


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_both_paths_agree_on_a_damaged_record(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(WHOLE)))
    length = data.draw(st.integers(0, 12))
    put = data.draw(st.binary(max_size=6) | st.sampled_from([b'"', b"{", b"]", b"null", b"1", b'"1"', b",", b"1.0"]))
    folder = tmp_path_factory.mktemp("records")
    (folder / "s").mkdir()
    (folder / "s" / "m.json").write_bytes(WHOLE[:place] + put + WHOLE[place + length :])
    slow, quick = both(folder)
    assert quick == slow


def test_what_cannot_be_opened_is_named_by_both(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(record("z-00"))
    store.path("s", "a-folder").mkdir()
    (tmp_path / "s" / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "s" / ".b-00.json.123.part").write_text('{"run"')
    (tmp_path / "s" / "notes.txt").write_text("mine")
    slow, quick = both(tmp_path)
    assert quick == slow
    assert [item.reason for item in quick[:-1]] == ["Is a directory", "No such file or directory"]


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert list(digests(tmp_path / "none.json")) == [Unreadable(tmp_path / "none.json", "No such file or directory")]


# --- where it looks ----------------------------------------------------------------------------------------------------


def test_a_record_a_study_and_a_whole_folder_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for study in ("b", "a"):
        for run in ("y-01", "x-00"):
            store.write(record(run, study))
    store.keep_machine("f", {"cores": 2})
    (tmp_path / ".work").mkdir()
    (tmp_path / ".work" / "x.json").write_text("{}")

    def names(place: Path) -> list[tuple[str, str]]:
        return [(item.study, item.run) for item in digests(place) if isinstance(item, Digest)]

    assert names(store.path("a", "x-00")) == [("a", "x-00")]
    assert names(tmp_path / "a") == [("a", "x-00"), ("a", "y-01")]
    assert names(tmp_path) == [("a", "x-00"), ("a", "y-01"), ("b", "x-00"), ("b", "y-01")]
    assert all(isinstance(item, Digest) for item in digests(tmp_path))


def test_sessions_beside_the_records_are_no_study(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(record("a-00"))
    store.keep_session("s", "20260102T030405-1", {"session": "x"})
    assert [type(item) for item in digests(tmp_path / "s")] == [Digest]
    assert [type(item) for item in digests(tmp_path)] == [Digest]
    store.write(record("b-00", study="sessions"))  # a study may be called so
    assert len(list(digests(tmp_path))) == 2


# --- figures -----------------------------------------------------------------------------------------------------------


def test_a_digest_holds_what_the_record_says(tmp_path: Path) -> None:
    path = Store(tmp_path).write(FULL)
    (found,) = digests(path)
    assert isinstance(found, Digest)
    assert FULL.laps and FULL.training
    assert (found.run, found.trial, found.study, found.block, found.role) == ("full-01", "a", "s", 1, "cell")
    assert (found.cell, found.kind, found.memory, found.accuracy) == (FULL.cell, "ok", FULL.memory, 0.75)
    assert (found.machine, found.versions, found.hashes, found.schema) == ("m", FULL.versions, FULL.hashes, SCHEMA)
    assert found.seconds == median(FULL.laps.seconds)
    assert found.measured


laps = st.lists(st.floats(min_value=1e-9, max_value=1e3), min_size=1, max_size=30)


@given(laps)
def test_a_process_counts_as_the_median_of_its_laps_as_everywhere(seconds: list[float]) -> None:
    kept = record(laps=Laps(seconds=tuple(seconds), steps=1, warmup=(), stable=True))
    found = digests_module._digest(kept, {})
    assert found.seconds == pytest.approx(process_value(seconds), rel=1e-15)


@pytest.mark.parametrize("seconds", [(), (0.0,), (float("nan"),), (float("inf"),), (-1.0,)])
def test_what_is_no_time_is_none(seconds: tuple[float, ...]) -> None:
    kept = record(laps=Laps(seconds=seconds, steps=1, warmup=(), stable=True))
    found = digests_module._digest(kept, {})
    assert (found.kind, found.seconds, found.measured) == ("ok", None, False)


def digest_of(one: Record) -> Digest:
    return digests_module._digest(one, {})


def test_a_cell_is_summed_up_over_its_processes(tmp_path: Path) -> None:
    for one in made.study():
        Store(tmp_path).write(one)
    found = {str(one.cell["engine"]): one for one in briefs(i for i in digests(tmp_path) if isinstance(i, Digest))}
    assert len(found) == 7
    jax = found["jax"]
    assert jax.seconds == pytest.approx([0.995e-3, 1e-3, 1.005e-3])
    assert jax.step == interval(jax.seconds)
    assert (found["tensorflow"].step, found["tensorflow"].outcomes) == (None, {"missing": 1})


def test_the_twin_of_the_anchor_is_no_cell() -> None:
    runs = [
        digest_of(made.record("jax", block, 1e-3, role=role, run=f"{role}-{block}"))
        for role in ("cell", "twin")
        for block in range(2)
    ]
    (found,) = briefs(runs)
    assert len(found.seconds) == 2


def test_of_a_run_that_was_made_again_the_last_attempt_counts() -> None:
    first, other = made.record("jax", 0, 5.0), made.record("jax", 1, 1.0)
    again = made.record("jax", 0, 1.0, run=f"{first.run}-again1", attempt=1)
    (found,) = briefs(map(digest_of, (again, first, other)))
    assert found.seconds == (1.0, 1.0)


def test_one_failed_run_takes_the_time_from_the_whole_cell() -> None:
    good = [digest_of(one) for one in made.runs("jax", 1e-3)]
    bad = digest_of(made.failed("jax", Outcome(kind="oom")))
    assert times(good) == pytest.approx([0.995e-3, 1e-3, 1.005e-3])
    assert times([*good, bad]) == ()


def test_peaks_name_their_method_and_leave_out_what_failed() -> None:
    good = [digest_of(made.record("jax", 0, 1e-3, memory={"resident_after_steady": size})) for size in (100, 200)]
    assert peaks(good) == ((100, 200), "kernel's high-water mark of the process")
    device = digest_of(made.record("jax", 0, 1e-3, memory={"allocator_live_peak": 5, "resident_after_steady": 9}))
    assert peaks([device]) == ((5,), "device allocator, live bytes")
    assert peaks([digest_of(made.failed("jax", Outcome(kind="oom")))]) == ((), "")


def test_equal_parts_of_many_runs_are_kept_once(tmp_path: Path) -> None:
    for block in range(3):
        Store(tmp_path).write(made.record("jax", block, 1e-3))
    first, *others = (item for item in digests(tmp_path) if isinstance(item, Digest))
    assert all(item.cell is first.cell and item.versions is first.versions for item in others)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    for block in range(20):
        Store(tmp_path).write(made.record("jax", block, 1e-3))
    before = len(os.listdir("/proc/self/fd"))
    reading = digests(tmp_path)
    next(reading)
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(list(reading)) == 19


# --- the command that shows them --------------------------------------------------------------------------------------


def brief(folder: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["show", *words, "--brief", "--records", str(folder)])


def test_brief_has_a_line_for_every_cell_of_one_study_or_of_all(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for one in [*made.runs("torch", 1e-3), *made.runs("jax", 2e-3), made.crash()]:
        store.write(one)
    (tmp_path / made.STUDY / "foreign.json").write_text("{}")
    found = brief(tmp_path, made.STUDY)
    assert found.exit_code == 0, found.stderr
    lines = {line.split("\t")[0].split(", ")[1]: line.split("\t") for line in found.stdout.splitlines()}
    assert lines["torch"][1].startswith("1 ms ±") and lines["torch"][2] == "3 ok"
    assert any(line[1] == "-" and "1 crash" in line[2] for line in lines.values())
    assert "1 files left out" in found.stderr
    assert brief(tmp_path).stdout == found.stdout
    assert len(json.loads(brief(tmp_path, "--json").stdout)) == len(lines)


def test_brief_says_where_nothing_is(tmp_path: Path) -> None:
    missing = brief(tmp_path, "nothing")
    assert (missing.exit_code, "there are no records" in missing.stderr) == (2, True)
    (tmp_path / "empty").mkdir()
    assert brief(tmp_path, "empty").exit_code == 1
