"""One engine in several versions: what a newer one brought, in words, in the terminal and as a chart."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit import made_records as made
from timetrial.records.record import Record
from timetrial.report.charts import version_chart
from timetrial.report.html import page
from timetrial.report.summary import summarise
from timetrial.report.terminal import group_table
from timetrial.report.versions import answer, histories


def of(version: str, seconds: float, engine: str = "torch", loop: str = "step") -> list[Record]:
    cell = {"version": version, "engine": f"{engine}@{version}", "loop": loop}
    return made.runs(f"{engine}@{version}", seconds, cell=cell, trial=f"{engine}-{version}-{loop}")


SEVERAL = [*of("2.13.0", 1e-3), *of("2.9.1", 2e-3), *of("2.10.0", 1.5e-3), *of("0.10.2", 4e-3, "jax")]


def test_versions_stand_in_their_order_and_not_in_that_of_letters() -> None:
    (group,) = summarise(SEVERAL)
    (history,) = histories(group.rows, group.floor.value)
    assert history.engine == "torch"
    assert [row.version for row in history.rows] == ["2.9.1", "2.10.0", "2.13.0"]


def test_the_newest_is_held_against_the_oldest() -> None:
    (group,) = summarise(SEVERAL)
    (history,) = histories(group.rows, group.floor.value)
    assert history.gain.word == "faster"
    assert history.gain.speedup.value == pytest.approx(2.0, rel=0.01)
    assert answer(history).startswith("torch 2.13.0 (1 ms")
    assert "is 2.00x" in answer(history) and "as fast as 2.9.1 (2 ms" in answer(history)


def test_a_small_difference_is_not_told_apart() -> None:
    (group,) = summarise([*of("2.13.0", 1e-3), *of("2.9.1", 1.008e-3)])
    (history,) = histories(group.rows, group.floor.value)
    assert "is not told apart" in answer(history)


def test_loops_are_histories_of_their_own_and_one_version_is_none() -> None:
    records = [*of("1", 1e-3, "keras-jax", "fit"), *of("2", 1e-3, "keras-jax", "fit"), *of("1", 2e-3, "keras-jax")]
    (group,) = summarise(records)
    assert [history.engine for history in histories(group.rows, 0.01)] == ["keras-jax (fit)"]
    (alone,) = summarise(of("1", 1e-3))
    assert histories(alone.rows, 0.01) == []


def test_the_chart_has_a_point_for_each_version() -> None:
    (group,) = summarise(SEVERAL)
    spec = version_chart(group.title, histories(group.rows, 0.01))
    assert spec is not None
    points = [point for values in spec["datasets"].values() for point in values]
    assert {point["version"] for point in points} == {"torch 2.9.1", "torch 2.10.0", "torch 2.13.0"}
    assert version_chart("", []) is None


def test_page_and_terminal_say_it(tmp_path: Path) -> None:
    groups = summarise(SEVERAL)
    text = page(made.STUDY, "", groups, SEVERAL, tmp_path)
    assert "Time of a step by version" in text and "as fast as 2.9.1" in text
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(group_table(groups[0]))
    assert "as fast as 2.9.1" in console.export_text()
    assert "Time of a step by version" not in page(made.STUDY, "", summarise(made.study()), made.study(), tmp_path)
