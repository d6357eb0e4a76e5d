"""What a session's own checks found, as a report says it: inputs, tiny numbers, drift, device time, pauses, the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults import bench
from tests.unit import made_records as made
from timetrial.cli.loading import trials_of
from timetrial.cli.running import present
from timetrial.records.record import Laps, Record
from timetrial.records.store import Store
from timetrial.report import checks, notes
from timetrial.report.html import page
from timetrial.report.summary import summarise
from timetrial.report.tables import table
from timetrial.runner.campaign import Campaign
from timetrial.runner.executor import Executor
from timetrial.runner.process import Finished


def with_laps(engine: str = "jax", **changes: Any) -> Record:
    laps = Laps(seconds=(1.0e-3, 1.01e-3, 0.99e-3), steps=64, warmup=(), stable=True)
    return made.record(engine, 0, 1e-3, laps=laps.model_copy(update=changes))


def said(records: list[Record], folder: Path) -> str:
    for record in records:
        Store(folder).write(record)
    return page(made.STUDY, "", summarise(records), records, folder)


# --- a repeated input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repeated", "caught"),
    [
        ((1.0e-3, 1.0e-3), False),
        ((0.9e-3, 0.9e-3), True),
        ((0.9e-3, 0.98e-3), False),  # one of them is as slow as the others: chance
        ((0.95e-3, 0.95e-3), False),  # less than 5 % below the fastest lap
        ((1e-6, 1e-6), True),
        ((), False),
    ],
)
def test_a_repeated_input_must_be_much_faster_in_every_lap(repeated: tuple[float, ...], caught: bool) -> None:
    record = with_laps(repeated=repeated)
    assert record.laps
    assert checks.remembers(record.laps) is caught
    assert len(checks.shortcomings([record])) == caught


def test_the_report_shows_what_a_repeated_input_did(tmp_path: Path) -> None:
    text = said([with_laps(repeated=(0.5e-3, 0.5e-3)), with_laps("torch", repeated=(1e-3, 1e-3))], tmp_path)
    assert "they took 0.50 to 1.00 of the time of the others" in text
    assert "jax (made/cnn, train, batch 32): remembers its input" in text
    assert "torch (made/cnn, train, batch 32): remembers" not in text


def test_laps_that_repeat_an_input_are_not_in_the_time() -> None:
    plain, tested = (summarise([with_laps(repeated=values)]) for values in ((), (1e-9, 1e-9)))
    assert plain[0].rows[0].step == tested[0].rows[0].step


# --- tiny numbers -----------------------------------------------------------------------------------------------------


def test_what_engines_do_with_tiny_numbers_is_named(tmp_path: Path) -> None:
    records = [
        made.record(engine, 0, 1e-3, readback={"flush": flush})
        for engine, flush in (("torch", False), ("jax", True), ("odd", "partly"), ("old", None))
    ]
    text = said(records, tmp_path)
    assert "kept by torch; kept by some threads of odd; not tried with old; taken for zero by jax." in text
    assert "With settings: {flush: true} all do the same" in text
    asked = made.record("torch", 0, 1e-3, readback={"flush": True}, cell={"flush": True})
    (pair,) = checks.method([asked])
    assert pair[1].endswith("taken for zero by torch (flush: true).")


# --- the device's own clock -------------------------------------------------------------------------------------------


def test_device_time_stands_beside_the_wall_time(tmp_path: Path) -> None:
    records = [with_laps(device=(0.8e-3, 0.8e-3, 0.7e-3)), with_laps("torch")]
    (group,) = summarise(records)
    by_engine = {row.engine: row for row in group.rows}
    assert by_engine["jax"].device == pytest.approx(0.8e-3)
    assert by_engine["torch"].device is None  # it keeps no time of its own: not measured
    small = {str(row[0].text): row[1].small for row in table(group).rows}
    assert small == {"jax": ("device: 800 µs",), "torch": ()}
    assert "a step took 80 % of its wall time" in said(records, tmp_path)


# --- drift ------------------------------------------------------------------------------------------------------------


def session_of(*seconds: float) -> list[Record]:
    """The anchor and its twin, in turn."""
    return [
        made.record(
            "jax", i, value, role=("cell", "twin")[i % 2], run=f"jax-{i}", session="s",
            started=f"2026-01-02T03:{i:02d}:05+00:00",
        )
        for i, value in enumerate(seconds)
    ]  # fmt: skip


def test_a_drift_of_the_anchor_through_the_session_is_flagged(tmp_path: Path) -> None:
    """It comes again in every block; the canary may be too small to feel what slows it down."""
    steady = session_of(*[1e-3 * (1 + 0.001 * (i % 3)) for i in range(10)])
    assert checks.shortcomings(steady) == []
    (text,) = checks.shortcomings(session_of(*[1e-3 * 1.02**i for i in range(10)]))
    assert text.startswith("jax (made/cnn, train, batch 32), measured again and again, took 20 % more time from")
    (text,) = checks.shortcomings(session_of(*[1e-3] * 5, *[0.9e-3] * 5))
    assert "took 10 % less time from its run 6 of 10 on: the machine drifted" in text
    assert "the machine drifted" in said(session_of(*[1e-3 * 1.02**i for i in range(10)]), tmp_path)


# --- pauses -----------------------------------------------------------------------------------------------------------


def test_the_parent_sleeps_between_runs_as_long_as_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)
    happened: list[str] = []

    def carry_out(executor: Executor, step: Any, session: Any, floor: float, listen: Any) -> Record:
        happened.append(step.trial.engine)
        return executor._record(step, session, Finished(bench_ok, wall_seconds=1.0))

    bench_ok = made.record("jax", 0, 1.0).outcome
    monkeypatch.setattr(Executor, "carry_out", carry_out)
    study = bench.study("honest", cooldown="5s", repeat=3)
    going = Campaign(study, trials_of(study), tmp_path, sleep=lambda seconds: happened.append(f"{seconds:g} s"))
    before = going.expected_seconds()
    records = list(going.go())
    assert happened == ["honest", "5 s", "honest", "5 s", "honest"]
    assert {record.cooldown for record in records} == {5.0}
    (kept,) = Store(tmp_path).sessions("faults").keys()
    (path,) = (tmp_path / "faults" / "sessions").glob("*.json")
    assert json.loads(path.read_text())["cooldown"] == 5.0 and kept
    shorter = bench.study("honest", repeat=3)
    assert before == pytest.approx(Campaign(shorter, trials_of(shorter), tmp_path / "other").expected_seconds() + 15)
    assert ("Cool-down", "The machine was left alone for 5 s before each run.") in notes.method(records)


def test_without_a_cooldown_nobody_sleeps_and_nothing_is_said() -> None:
    assert bench.study("honest").cooldown == 0
    assert not any(name == "Cool-down" for name, _ in notes.method(made.study()))


# --- phases -----------------------------------------------------------------------------------------------------------


def test_the_report_shows_the_phases_after_the_laps(tmp_path: Path) -> None:
    later = {"train": 2.0, "predict": 0.25, "evaluate": 0.001, "save": 0.002, "teardown": 0.1}
    phases = {"import": 1.0, "build": 0.1, "first_step": 0.2, "warmup": 0.3, "steady": 1.0, **later}
    records = [
        made.record("jax", 0, 1e-3, phases=phases),
        made.record("jax", 1, 1e-3, phases={**phases, "teardown": 0.3}),
    ]
    text = said(records, tmp_path)
    assert "jax, after the laps: train 2 s, predict 250 ms, evaluate 1 ms, save 2 ms, teardown 200 ms." in text


# --- every output -----------------------------------------------------------------------------------------------------


def shown(records: list[Record], folder: Path, capsys: pytest.CaptureFixture[str], as_json: bool) -> str:
    study = bench.study("honest", study=made.STUDY)
    present(study, records, folder, as_json=as_json, report=None)
    return " ".join(capsys.readouterr().out.split())


def test_the_floor_and_what_was_odd_stand_in_every_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the terminal, in JSON and on the page; Markdown is what `compare` writes, with its own test."""
    anchor = [made.record("jax", i, 1.03e-3, role="twin", run=f"jax-{i}t") for i in range(3)]
    flagged = made.runs("torch", 2e-3, flags=("after the run, the machine was slower",))
    records = [*made.runs("jax", 1e-3), *anchor, *flagged]
    floor, odd = "one cell against itself differs by 3 %", "The machine was not steady during 3 runs"
    text = shown(records, tmp_path, capsys, as_json=False)
    assert floor in text and odd in text
    found = json.loads(shown(records, tmp_path, capsys, as_json=True))
    assert found["groups"][0]["floor"]["value"] == pytest.approx(0.03, abs=0.001)
    assert any("the machine was not steady during 3 of its 3 runs" in text for text in found["shortcomings"])
    html = said(records, tmp_path)
    assert floor in html and "the machine was not steady during 3 of its 3 runs" in html
