"""What accuracy costs: which models nothing beats, against what they are held, and where it stands in reports."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.unit import made_records as made
from timetrial.records.record import Record, Training
from timetrial.records.store import Store
from timetrial.report import tradeoff
from timetrial.report.html import page
from timetrial.report.summary import summarise
from timetrial.report.terminal import tradeoff_table

MODELS = {"base": (0.060, 0.86), "stride": (0.010, 0.80), "filters": (0.030, 0.84), "bad": (0.040, 0.70)}


def records(models: dict[str, tuple[float, float]], tasks: tuple[str, ...] = ("train", "infer")) -> list[Record]:
    found = []
    for model, (seconds, accuracy) in models.items():
        for task in tasks:
            cell: dict[str, Any] = {"model": model, "task": task}
            training = Training(losses=(1.0,), epochs=1, accuracy=accuracy) if task == "train" else None
            step = seconds * (3 if task == "train" else 1)
            for block in range(3):
                run = {"trial": f"{model}-{task}", "run": f"{model}-{task}-{block}", "training": training}
                found.append(made.record("torch", block, step, cell=cell, **run))
    return found


def only(found: list[Record]) -> tradeoff.Tradeoff:
    (one,) = tradeoff.tradeoffs(summarise(found))
    return one


def test_what_nothing_beats_is_the_front() -> None:
    found = only(records(MODELS))
    assert {point.model for point in found.points if point.front} == {"base", "stride", "filters"}
    assert found.cost == "prediction"
    assert found.points[0].step.value == pytest.approx(0.060)
    assert "3 are beaten by no other" in tradeoff.answer(found)


def test_each_is_held_against_the_first_of_the_study() -> None:
    lines = {line[0]: line for line in tradeoff.cells(only(records(MODELS)))}
    heads = tradeoff.HEADS
    assert lines["base"][heads.index("speed-up")] == "1x"
    assert lines["stride"][heads.index("speed-up")] == "6x"
    assert lines["stride"][heads.index("change")] == "-6.0"
    assert lines["bad"][heads.index("nothing beats it")] == ""


def test_without_predictions_the_cost_is_a_step_of_training() -> None:
    found = only(records(MODELS, ("train",)))
    assert found.cost == "training"
    assert found.points[0].step.value == pytest.approx(0.180)


def test_one_model_alone_or_without_accuracy_is_no_tradeoff() -> None:
    assert tradeoff.tradeoffs(summarise(records({"base": MODELS["base"]}))) == []
    untrained = [record.model_copy(update={"training": None}) for record in records(MODELS)]
    assert tradeoff.tradeoffs(summarise(untrained)) == []


@given(st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1)), min_size=2, max_size=8))
def test_every_point_that_is_not_on_the_front_is_beaten_by_one_that_is(found: list[tuple[float, float]]) -> None:
    points = only(records({f"m{i}": pair for i, pair in enumerate(found)}, ("train",))).points
    front = [point for point in points if point.front]
    assert front
    for point in points:
        better = [one for one in front if one.step.value <= point.step.value and one.accuracy >= point.accuracy]
        assert better


def test_it_stands_on_the_page_and_on_the_terminal(tmp_path: Path) -> None:
    found = records(MODELS)
    groups = summarise(found)
    store = Store(tmp_path)
    for record in found:
        store.write(record)
    text = page(made.STUDY, "", groups, found, tmp_path)
    assert "What accuracy costs" in text
    assert 'data-chart="trade-chart-1"' in text
    console = Console(width=200, record=True, quiet=False, file=io.StringIO())
    console.print(tradeoff_table(only(found)))
    assert "3 are beaten by no other" in console.export_text()
