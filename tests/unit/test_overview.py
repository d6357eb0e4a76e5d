"""All cells of a study in one picture, in the page and as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit import made_records as made
from timetrial.records.record import Outcome, Record
from timetrial.report.html import page
from timetrial.report.overview import overview
from timetrial.report.picture import write_picture
from timetrial.report.summary import summarise


def on(model: str, engine: str, seconds: float) -> list[Record]:
    return made.runs(engine, seconds, cell={"model": model}, trial=f"{model}-{engine}")


def refused(model: str, engine: str) -> Record:
    outcome = Outcome(kind="unsupported", reason="no conv2d")
    return made.failed(engine, outcome, cell={"model": model}, trial=f"{model}-{engine}")


STUDY = [
    *on("mlp", "torch", 1e-3), *on("mlp", "jax", 3e-3), *on("mlp", "sklearn", 2e-3),
    *on("cnn", "torch", 4e-3), *on("cnn", "jax", 2e-3), refused("cnn", "sklearn"),
]  # fmt: skip


def cells(records: list[Record]) -> list[dict[str, Any]]:
    drawn = overview(summarise(records))
    assert drawn is not None
    spec = drawn.to_dict()
    (values,) = spec["datasets"].values()
    return values


def test_each_cell_is_a_multiple_of_the_fastest_on_its_own_work() -> None:
    found = {(cell["engine"], cell["work"]): cell for cell in cells(STUDY)}
    assert found["torch", "mlp"]["label"] == "1x"
    assert found["jax", "mlp"]["times"] == pytest.approx(3, rel=0.01)
    assert found["torch", "cnn"]["times"] == pytest.approx(2, rel=0.01)
    assert found["jax", "cnn"]["times"] == 1


def test_what_was_not_measured_says_why_and_has_no_colour() -> None:
    (cell,) = (cell for cell in cells(STUDY) if cell["engine"] == "sklearn" and cell["work"] == "cnn")
    assert (cell["times"], cell["label"]) == (None, "unsupported")


def test_engines_that_could_do_less_stand_further_down() -> None:
    drawn = overview(summarise(STUDY))
    assert drawn is not None
    assert drawn.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["torch", "jax", "sklearn"]


def test_no_name_becomes_part_of_an_expression() -> None:
    """A list to sort by is compiled into one, where a name may break it."""
    drawn = overview(summarise([*on("mlp", made.HOSTILE, 1e-3), *on("cnn", made.HOSTILE, 1e-3), *STUDY]))
    assert drawn is not None
    for layer in drawn.to_dict()["layer"]:
        assert all(layer["encoding"][side]["sort"] is None for side in "xy")


def test_one_group_needs_no_overview(tmp_path: Path) -> None:
    assert overview(summarise(made.study())) is None
    assert "at a glance" not in page(made.STUDY, "", summarise(made.study()), made.study(), tmp_path)
    assert "All cells at a glance" in page(made.STUDY, "", summarise(STUDY), STUDY, tmp_path)


def test_the_picture_has_it_too(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.svg", summarise(STUDY))
    assert "unsupported" in (tmp_path / "a.svg").read_text()
