"""Persistence beside the error of a network: from the prepared data into the record, the table and the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from tests.faults import bench
from tests.unit import made_records as made
from timetrial.records.record import Record, Training
from timetrial.report.html import page
from timetrial.report.summary import summarise
from timetrial.report.tables import table
from timetrial.report.terminal import group_table

BASELINES = {"persistence": {"mse": 0.0025, "mae": 0.02}, "smart persistence": {"mse": 0.0024, "mae": 0.02}}


def trained(**changes: object) -> list[Record]:
    fields = {"losses": (1.0, 0.5), "epochs": 2, "mse": 0.0016, "mae": 0.03, "baselines": BASELINES, "unit": "W/m²", "unit_size": 1000.0}  # fmt: skip
    training = Training.model_validate({**fields, **changes})
    return [*made.runs("torch", 1e-3, training=training), *made.runs("jax", 2e-3)]


def printed(records: list[Record]) -> str:
    console = Console(width=200)
    with console.capture() as shown:
        console.print(group_table(summarise(records)[0]))
    return shown.get()


def test_the_terminal_shows_both_in_the_same_units() -> None:
    text = printed(trained())
    assert "mse 0.0016" in text
    assert "persistence 0.0025" in text
    assert (
        "Error over the held-out samples, root mean square: torch 40 W/m², persistence 50 W/m², smart persistence 49 W/m²."
        in text
    )


def test_an_error_without_a_baseline_stands_alone() -> None:
    text = printed(trained(baselines={}, unit="", unit_size=None))
    assert "mse 0.0016" in text
    assert "persistence" not in text
    assert "held-out" not in text


def test_the_page_shows_both(tmp_path: Path) -> None:
    records = trained()
    shown = table(summarise(records)[0])
    cell = shown.rows[0][[name for name, _, _ in shown.columns].index("accuracy")]
    assert cell.text == "mse 0.0016"
    assert cell.small == ("40 W/m² rms", "persistence 0.0025, 50 W/m² rms", "smart persistence 0.0024, 49 W/m² rms")
    text = page(made.STUDY, "", summarise(records), records, tmp_path)
    assert "persistence 0.0025, 50 W/m² rms" in text


def test_data_with_an_option_of_another_version_are_reported_all_the_same(tmp_path: Path) -> None:
    for name, synthetic in (("solar-synthetic?horizon=30", True), ("solar-synthetic?unheard=30", False)):
        records = made.runs("torch", 1e-3, cell={"dataset": name})
        text = page(made.STUDY, "", summarise(records), records, tmp_path)
        assert (f"The data are synthetic ({name})" in text) is synthetic


def test_a_run_on_a_solar_dataset_records_its_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)
    network = {
        "name": "rows", "input": {"shape": [4]}, "layers": [{"dense": {"units": 3, "activation": "relu"}}, {"dense": {"units": 1}}]
    }  # fmt: skip
    (record,) = bench.run(
        tmp_path, "honest", networks=[network], data="solar-synthetic?days=1&every=60", accuracy=True,
        recipe={"loss": "mse", "batch": 64},
    )  # fmt: skip
    assert record.outcome.ok, record.outcome
    assert record.training is not None
    assert record.training.baselines["persistence"].keys() == {"mse", "mae"}
    assert 0 < record.training.baselines["persistence"]["mse"] < 0.1
    assert record.training.unit == "W/m²"
    assert record.training.unit_size is not None
    assert 100 < record.training.unit_size < 2000
    assert "persistence" in printed([record])
