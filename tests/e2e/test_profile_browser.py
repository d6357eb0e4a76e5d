"""The page of profiles in a real browser: charts and flame charts drawn, tables narrowed, nothing hostile run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import DARK, NEEDED, look_at
from tests.unit.test_profile_page import HOSTILE, LIMITS, hostile, three
from timetrial.report.profile_page import page

pytestmark = NEEDED


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return look_at(page(HOSTILE, [*three(), hostile()], LIMITS), tmp_path_factory.mktemp("wide"))


def test_nothing_goes_wrong_nothing_hostile_runs_and_nothing_is_fetched(wide: dict[str, Any]) -> None:
    assert wide["wrong"] == []
    assert wide["hostile"] is None and wide["dialogs"] == 0
    assert wide["fetched"] == []


def test_every_chart_is_drawn_over_the_width(wide: dict[str, Any]) -> None:
    assert [chart["id"] for chart in wide["charts"]] == [
        "work-1-chart-1",
        "work-1-chart-2",
        "work-1-chart-3",
        "work-2-chart-1",
        "work-2-chart-2",
    ]
    for chart in wide["charts"]:
        assert chart["width"] > 1000 and chart["label"] and "could not be drawn" not in chart["text"], chart
    # Four kinds and five layers and phases of three engines; the roof and its dots.
    assert [chart["marks"] >= least for chart, least in zip(wide["charts"][:3], (12, 15, 14), strict=True)] == [
        True
    ] * 3


def test_every_step_is_drawn_with_all_its_operations(wide: dict[str, Any]) -> None:
    assert [step["bars"] for step in wide["steps"]] == [8 + 4] * 4  # and the legend's
    assert all(step["width"] > 1000 for step in wide["steps"])
    assert wide["steps"][0]["first"].startswith("aten::conv2d")
    assert HOSTILE in wide["steps"][3]["first"]


def test_tables_are_narrowed_by_words_in_any_order_and_come_back(wide: dict[str, Any]) -> None:
    layers, beside, *_ = wide["filters"]
    assert (layers["some"], layers["said"]) == (1, f"1 of {layers['all']} rows")
    assert (beside["all"], beside["some"]) == (36, 3)
    assert all(found["none"] == 0 and found["again"] == found["all"] > 1 for found in wide["filters"])


def test_tables_sort(wide: dict[str, Any]) -> None:
    by_name = {column["name"]: column for column in wide["tables"]}
    assert by_name["step without profiler"]["once"] == ["torch", "jax", "keras-torch"]
    assert by_name["step without profiler"]["twice"] == ["keras-torch", "jax", "torch"]


def test_a_phone_scrolls_tables_and_steps_and_not_the_page_in_the_dark(tmp_path: Path) -> None:
    found = look_at(page("Where?", three(), LIMITS), tmp_path, 390, DARK)
    assert found["wrong"] == []
    content, window = found["page"]
    assert content <= window
    assert all(200 < chart["width"] <= window for chart in found["charts"])
    assert found["paper"] == "rgb(20, 24, 29)" and found["ink"] == "rgb(230, 233, 236)"


def test_no_profiles_and_one_without_limits_come_to_their_end(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert look_at(page("t", []), tmp_path / "none")["charts"] == []
    found = look_at(page("t", three()[:1]), tmp_path)
    assert (found["wrong"], [chart["id"] for chart in found["charts"]]) == ([], ["work-1-chart-1", "work-1-chart-2"])
