"""The report in a real browser: every chart drawn, nothing hostile run, nothing asked of the network, no error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import DARK, NEEDED, look_at
from tests.unit import made_records as made
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report.html import page
from timetrial.report.summary import summarise

pytestmark = NEEDED


def seen(
    records: list[Record], folder: Path, title: str = "Which is fastest?", width: int = 1280, *flags: str
) -> dict[str, Any]:
    return look_at(page(made.STUDY, title, summarise(records), records, folder), folder, width, *flags)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("wide")
    Store(folder).keep_machine(made.MACHINE, made.INVENTORY)
    far = [
        *made.runs("jax", 1e-3, cell={"batch": 64, "model": made.HOSTILE}),
        *made.runs("torch", 0.1, cell={"batch": 64, "model": made.HOSTILE}),
    ]
    return seen([*made.study(), *far], folder, made.HOSTILE)


def test_nothing_goes_wrong(wide: dict[str, Any]) -> None:
    assert wide["wrong"] == []


def test_nothing_hostile_runs(wide: dict[str, Any]) -> None:
    assert wide["hostile"] is None and wide["dialogs"] == 0


def test_nothing_is_fetched(wide: dict[str, Any]) -> None:
    assert wide["fetched"] == []


def test_every_chart_is_drawn_over_the_width(wide: dict[str, Any]) -> None:
    of_groups = [f"chart-{group}-{i}" for group in (1, 2) for i in (1, 2, 3)]
    assert [chart["id"] for chart in wide["charts"]] == ["glance", *of_groups]
    for chart in wide["charts"]:
        assert chart["width"] > 1000 and chart["label"] and "could not be drawn" not in chart["text"], chart
    # Six cells and their words; ten dots and four rules; four phases of four engines; four lines. The legends have
    # marks of their own.
    least = (12, 14, 16, 4, 8, 8, 2)
    assert [chart["marks"] >= count for chart, count in zip(wide["charts"], least, strict=True)] == [True] * 7


def test_tables_sort_by_every_column_and_back(wide: dict[str, Any]) -> None:
    by_name = {column["name"]: column for column in wide["tables"]}
    odd = f"odd{made.HOSTILE}"
    assert by_name["engine"]["once"] == ["jax", "keras-torch", odd, "torch"]
    assert by_name["engine"]["twice"] == ["torch", odd, "keras-torch", "jax"]
    assert by_name["median step"]["once"] == ["jax", "torch", "keras-torch", odd]
    assert by_name["median step"]["twice"] == [odd, "keras-torch", "torch", "jax"]
    assert by_name["accuracy"]["once"][0] == by_name["accuracy"]["twice"][0] == "jax"  # the only one; dashes stay last
    assert all(column["states"] == ["ascending", "descending"] for column in wide["tables"])


def test_a_phone_scrolls_tables_and_not_the_page_in_the_dark(tmp_path: Path) -> None:
    found = seen(made.study(), tmp_path, "Which?", 390, DARK)
    assert found["wrong"] == []
    content, window = found["page"]
    assert content <= window
    assert all(200 < chart["width"] <= window for chart in found["charts"])
    assert found["paper"] == "rgb(20, 24, 29)" and found["ink"] == "rgb(230, 233, 236)"


def test_light_is_dark_on_white(wide: dict[str, Any]) -> None:
    assert (wide["paper"], wide["ink"]) == ("rgb(255, 255, 255)", "rgb(27, 31, 36)")


def test_a_study_of_failures_comes_to_its_end(tmp_path: Path) -> None:
    found = seen([made.missing(), made.wrong(), made.crash()], tmp_path)
    assert (found["wrong"], found["hostile"], found["charts"], found["tables"]) == ([], None, [], None)
