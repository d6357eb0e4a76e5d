"""Profiles in the terminal: the answer first, how far it can be trusted, what is not known as '-'."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from tests.unit import made_profiles as made
from timetrial.profiling.gathered import Group, labels
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.views import choose
from timetrial.records.record import Outcome
from timetrial.report.profiles import group_tables

HOSTILE = "[red]x[/]"


def printed(
    profiles: Mapping[str, Profile], failures: Mapping[str, Outcome] | None = None, **asked: object
) -> list[str]:
    out = io.StringIO()
    group = Group("made/cnn, train", profiles, failures or {})
    Console(file=out, width=200).print(group_tables(group, choose(**asked)))  # type: ignore[arg-type]
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_the_answer_comes_first_and_then_what_it_rests_on() -> None:
    lines = printed({"torch": made.profile()})
    assert lines[0] == "made/cnn, train"
    assert lines[1] == (
        "conv2 backward takes 35.7 % of the time of a step's operations, conv2 forward 30.6 %, conv1 forward 20.4 %."
    )
    assert "torch │ 1.0 │ 1 ms │ 1.02 ms │ 1.020x │ 98.0 % │ 100.0 % │ 98.0 % │ 3 │ no │ enough" in lines
    assert "conv2 │ backward │ 350 µs │ 35.7 % │ 100.0 % │ 1 │ 8 KiB │ 1.69 GFLOP/s │ 206 MB/s │ sequence" in lines
    assert "- │ optimiser │ 60 µs │ 6.1 % │ 13.3 % │ 1 │ - │ - │ - │ exact" in lines  # never a zero
    assert lines[-1].startswith("all │ │ 980 µs │ 100.0 % │ 100.0 % │ 8 │ 24.5 KiB │")


def test_what_proves_nothing_is_said_first_and_shown_all_the_same() -> None:
    weak = made.profile()
    weak = replace(weak, header=replace(weak.header, attributed=0.5, contended=("somebody was there",)))
    lines = printed({"torch": weak, "jax": made.profile("jax")})
    assert lines[1] == (
        "torch: Not enough evidence: 50% of their time has a layer or a phase, 90% are wanted; somebody was there."
    )
    assert lines[2].startswith("jax: conv2 backward takes")
    assert any(line.endswith("│ yes │ not enough") for line in lines)
    assert any(line.startswith("conv2 │ backward │ 350 µs │ 35.7 % │ 350 µs") for line in lines)


def test_an_engine_without_a_profile_is_a_row_with_its_reason() -> None:
    outcome = Outcome(kind="unsupported", reason=f"no profiler {HOSTILE}", remedy="use another engine")
    lines = printed({}, {f"odd{HOSTILE}": outcome})
    assert f"odd{HOSTILE} │ - │ - │ - │ - │ - │ - │ - │ - │ - │ unsupported" in lines
    assert lines[-1] == f"odd{HOSTILE}: unsupported no profiler {HOSTILE} → use another engine"


def test_names_of_frameworks_are_no_markup() -> None:
    raw = made.raw()
    ops = raw.ops.assign(type=raw.ops["type"].cat.rename_categories({"aten::relu": HOSTILE}))
    lines = printed({"torch": assemble(replace(raw, ops=ops), made.workload(), made.record())}, by="type")
    assert any(line.startswith(f"{HOSTILE} │ 20 µs") for line in lines)


def test_what_was_lost_or_odd_is_noted() -> None:
    odd = made.profile()
    odd = replace(odd, header=replace(odd.header, granularity_lost=0.25, overlapping=3, remarks=("it was odd",)))
    text = "\n".join(printed({"torch": odd}))
    for said in ("25.0 % of the time is in operations that do", "3 spans of one thread overlap", "torch: it was odd"):
        assert said in text


def test_labels_name_what_tells_records_apart() -> None:
    plain, fitted = made.record(), made.record(cell={"loop": "fit", "placement": "cpu:1"})
    assert labels([plain]) == ["torch"]
    assert labels([plain, made.record("jax")]) == ["torch", "jax"]
    assert labels([plain, fitted]) == ["torch, cpu:2, loop step", "torch, cpu:1, loop fit"]
    assert labels([plain, plain.model_copy(update={"run": "other"})]) == ["torch, torch-0", "torch, other"]
