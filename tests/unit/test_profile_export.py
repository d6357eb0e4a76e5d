"""Profiles as files: rows that read back as they were, and traces that a viewer can draw."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings

from tests.unit import made_profiles as made
from tests.unit import random_profiles as drawn
from timetrial.profiling import export
from timetrial.profiling.events import ASKED, Event, events, occurrences
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.schema import DERIVED, RAW, Raw
from timetrial.records.store import StoreError

KINDS = {"X", "M", "C"}


def check(found: list[Event]) -> None:
    """What viewers take: named tracks, complete events, spans of a track nested or apart, counters in order."""
    named = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}
    spans, counts = (
        defaultdict[tuple[int, int], list[tuple[int, int]]](list),
        defaultdict[tuple[int, str], list[int]](list),
    )
    for event in found:
        assert event["ph"] in KINDS
        assert isinstance(event["name"], str) and event["name"]
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            spans[event["pid"], event["tid"]].append((start, start + round(event["dur"] * 1000)))
        elif event["ph"] == "C":
            counts[event["pid"], event["name"]].append(round(event["ts"] * 1000))
    assert set(spans) <= named
    for track in spans.values():
        assert track == sorted(track, key=lambda span: (span[0], -span[1]))
        running: list[int] = []
        for start, end in track:
            while running and running[-1] <= start:
                running.pop()
            assert not running or end <= running[-1], "spans overlap without nesting"
            running.append(end)
    for times in counts.values():
        assert times == sorted(times)


def written(path: Path) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    return found


def split() -> Profile:
    raw = made.raw()
    row = int(raw.ops.index[raw.ops["layer"] == "conv2"][0])
    parts = pd.DataFrame({"row": [row, row], "layer": ["conv2", "dense"], "share": [0.75, 0.25]})
    return assemble(replace(raw, parts=parts), made.workload(), made.record())


@settings(deadline=None, max_examples=40)
@given(raw=drawn.RAWS)
def test_any_profile_becomes_events_that_a_viewer_can_draw(raw: Raw) -> None:
    profile = drawn.profile(raw)
    found = list(events(profile, "torch", 1))
    check(found)
    spans = [event for event in found if event["ph"] == "X" and event["tid"]]
    assert len(spans) == len(occurrences(profile.ops))


def test_a_trace_has_a_process_a_profile_and_a_track_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trace.json"
    export.write_trace(path, {"torch": made.profile(), "jax": made.profile("jax", 1.3, threads=2)})
    content = written(path)
    found = content["traceEvents"]
    check(found)
    names = {(e["pid"], e["args"]["name"]) for e in found if e["ph"] == "M" and "name" in e["args"]}
    assert names == {
        (1, "torch: made/cnn, train, batch 32, cpu:2"), (1, "steps"), (1, "thread 0"),
        (2, "jax: made/cnn, train, batch 32, cpu:2"), (2, "steps"), (2, "thread 0"), (2, "thread 1"),
    }  # fmt: skip
    conv = next(e for e in found if e["name"] == "aten::conv2d" and e["pid"] == 1)
    assert (conv["ts"], conv["dur"], conv["cat"]) == (10.0, 200.0, "forward")
    assert conv["args"]["layer"] == "conv1"
    assert content["otherData"]["torch"]["problems"] == []
    steps = [e["name"] for e in found if e.get("cat") == "step" and e["pid"] == 1]
    assert steps == ["step 0", "step 1", "step 2"]


def test_memory_is_counted_from_the_beginning_of_each_step() -> None:
    asked = [e["args"]["bytes"] for e in events(made.profile(), "torch", 1) if e["name"] == ASKED]
    assert asked == [4096, 8192, 16384, 16896, 25088] * made.STEPS


def test_spans_that_overlap_without_nesting_get_a_track_of_their_own() -> None:
    raw = made.raw()
    longer = raw.ops["duration_ns"].where(raw.ops["type"] != "aten::relu", 100_000)
    found = list(
        events(
            assemble(replace(raw, ops=raw.ops.assign(duration_ns=longer)), made.workload(), made.record()), "torch", 1
        )
    )
    check(found)
    names = [e["args"]["name"] for e in found if e["name"] == "thread_name"]
    assert names == ["steps", "thread 0", "thread 0 (overlapping 1)"]


def test_an_operation_of_several_layers_is_one_span() -> None:
    found = [e for e in events(split(), "torch", 1) if e["ph"] == "X" and e["tid"]]
    assert len(found) == len(made.OPS) * made.STEPS
    fused = next(e for e in found if ", " in e["args"].get("layer", ""))
    assert fused["args"]["layer"] == "conv2, dense"
    assert fused["args"]["share of the wall, µs"] == 300


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_row_an_operation_with_all_columns(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ops.{kind}"
    profiles = [split(), made.profile("jax")]
    getattr(export, f"write_{kind}")(path, profiles)
    found = pd.read_csv(path) if kind == "csv" else pd.read_parquet(path)
    assert list(found.columns) == [*export.OF_RUN, *RAW, *DERIVED]
    assert len(found) == sum(len(one.ops) for one in profiles)
    assert found["wall_ns"].sum() == pytest.approx(sum(one.ops["wall_ns"].sum() for one in profiles))
    assert set(found["engine"]) == {"torch", "jax"}
    assert found.loc[found["type"] == "aten::relu", ["alloc_bytes", "flops"]].isna().all(axis=None)
    assert [path.name] == [one.name for one in tmp_path.iterdir()]


def test_nothing_is_no_table_but_its_columns() -> None:
    assert list(export.table([]).columns) == [*export.OF_RUN, *RAW, *DERIVED]


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.json"
    export.write_trace(path, {"torch": made.profile()})
    before = path.read_bytes()

    def break_(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "events", break_)
    with pytest.raises(StoreError, match="the disk is full"):
        export.write_trace(path, {"torch": made.profile()})
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["trace.json"]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        export.write_csv(tmp_path / "file" / "ops.csv", [made.profile()])
