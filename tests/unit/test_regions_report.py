"""What a report says where clocks ran over different work: in words, before anything is ranked."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.unit import made_records as made
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report import notes, regions
from timetrial.report.html import page
from timetrial.report.scaling import workloads
from timetrial.report.summary import Group, summarise
from timetrial.report.terminal import group_table

PUBLISHED: dict[str, dict[str, Any]] = {
    "theano": {"lap": "epoch", "feed": "resident", "evaluate": "inside", "shuffle": "outside"},
    "tensorflow1": {"lap": "epoch", "feed": "batch", "evaluate": "outside", "shuffle": "inside"},
}
CONDITIONS: dict[str, Any] = {"preset": "libraries", "threads": "as-shipped", "workers": 1, "prefetch": 2}


def published() -> list[Record]:
    return [
        record.model_copy(update={"includes": f"the work of {engine}"})
        for seconds, (engine, drawn) in enumerate(PUBLISHED.items(), 1)
        for record in made.runs(engine, seconds / 1000, cell={**CONDITIONS, **drawn})
    ]


def text_of(group: Group) -> str:
    out = Console(width=400, record=True, file=io.StringIO())
    out.print(group_table(group))
    return out.export_text()


def test_programs_of_a_study_stand_in_one_table_under_a_banner_everywhere(tmp_path: Path) -> None:
    found = published()
    (group,) = summarise(found)
    assert group.banner.startswith("NOT LIKE WITH LIKE")
    assert "on purpose, as the programs of the study 'libraries' had it" in group.banner
    assert "theano: [the work of theano]; tensorflow1: [the work of tensorflow1]" in group.banner
    assert group.title.endswith("as published by libraries")
    shown = text_of(group)
    assert shown.index("NOT LIKE WITH LIKE") < shown.index("fastest")
    store = Store(tmp_path)
    for record in found:
        store.write(record)
    html = page(made.STUDY, "", [group], found, tmp_path)
    assert html.count("NOT LIKE WITH LIKE") == 1
    assert html.index("NOT LIKE WITH LIKE") < html.index("theano is fastest")


def test_without_a_preset_other_regions_are_other_tables() -> None:
    plain = {"lap": "steps", "feed": "resident", "shuffle": "outside", "evaluate": "outside", "threads": "limited",
             "workers": 1, "prefetch": 2, "preset": ""}  # fmt: skip
    found = [
        *made.runs("torch", 1e-3, cell=plain),
        *made.runs("jax", 1e-3),  # from before there was such a setting: made with its default
        *made.runs("torch-fed", 2e-3, cell={**plain, "feed": "batch"}),
        *made.runs("torch-free", 2e-3, cell={**plain, "threads": "as-shipped"}),
    ]
    groups = summarise(found)
    assert [[row.engine for row in group.rows] for group in groups] == [["torch", "jax"], ["torch-fed"], ["torch-free"]]
    assert [group.banner for group in groups] == ["", "", ""]
    assert groups[0].title == "made/cnn, train, batch 32, cpu:2, synthetic"
    assert groups[1].title.endswith("synthetic, feed batch")


def test_a_step_and_a_fit_in_one_table_are_not_like_with_like() -> None:
    fit = [record.model_copy(update={"includes": "one fit call"}) for record in made.runs("keras", 2e-3)]
    (group,) = summarise([*made.runs("jax", 1e-3), *fit])
    assert group.banner.startswith("NOT LIKE WITH LIKE: these clocks ran over different work. ")


def test_the_method_names_the_region_of_each_engine_and_what_was_waited_for() -> None:
    found = published()
    first = found[0].laps
    assert first is not None
    waiting = first.model_copy(update={"input": (1e-4, 1e-4, 3e-4), "epoch": 500})
    found[0] = found[0].model_copy(update={"laps": waiting})
    pairs = notes.method(found)
    timed = [text for name, text in pairs if name == "Timed region"]
    assert timed == ["tensorflow1: the work of tensorflow1", "theano: the work of theano"]
    said = dict(pairs)
    assert "theano 100 µs (10 %)" in said["Waiting for input"]
    assert "a whole epoch of 500 steps" in said["Epochs"]
    assert said["Threads"].startswith("As each engine ships them") and "invalid" not in said["Threads"]
    (group,) = summarise(found)
    assert next(row.input for row in group.rows if row.engine == "theano") == 1e-4


def test_threads_as_shipped_are_no_ladder_of_threads() -> None:
    for word, ladders in (("limited", 1), ("as-shipped", 0)):
        found = [
            run.model_copy(update={"trial": placement, "run": f"{placement}-{run.block}"})
            for placement in ("cpu", "cpu:2")
            for run in made.runs("jax", 1e-3, cell={"placement": placement, "threads": word})
        ]
        assert len(workloads(summarise(found))) == ladders


def test_threads_as_shipped_are_told_with_what_they_used() -> None:
    said = list(regions.threads(published()))
    assert len(said) == 2 and "theano: threads as shipped: it kept 2.00 cores busy" in said[0]
    assert list(regions.threads(made.study())) == []
