"""What more threads bring, in words, tables, charts and pages."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.unit import made_records as made
from tests.unit.test_report import Page
from timetrial.records.record import Outcome, Record
from timetrial.report import scaling
from timetrial.report.charts import speedup_chart
from timetrial.report.html import page
from timetrial.report.style import looks
from timetrial.report.summary import summarise
from timetrial.report.terminal import scaling_table


def on(threads: int, seconds: float, engine: str = "torch", **cell: Any) -> list[Record]:
    """Processes on so many threads."""
    placement = "cpu" if threads == 1 else f"cpu:{threads}"
    return [
        run.model_copy(update={"trial": f"{engine}-{threads}-{cell}", "run": f"{run.run}-{threads}"})
        for run in made.runs(engine, seconds, cell={"placement": placement, **cell})
    ]


CLIMB = [*on(1, 4e-3), *on(2, 2.2e-3), *on(4, 1.4e-3), *on(8, 1.4e-3)]


def only(records: list[Record]) -> scaling.Ladder:
    (workload,) = scaling.workloads(summarise(records))
    (ladder,) = workload.ladders
    return ladder


def test_cells_that_differ_in_threads_alone_are_a_ladder() -> None:
    ladder = only(CLIMB)
    assert [point.count for point in ladder.scaling.points] == [1, 2, 4, 8]
    assert ladder.scaling.points[1].speedup.value == pytest.approx(4 / 2.2)
    assert ladder.scaling.points[2].efficiency.value == pytest.approx(4 / 1.4 / 4)
    assert ladder.scaling.answer in ("decays", "undecided") and ladder.scaling.decay == 4


def test_other_work_is_another_workload_and_other_engines_other_ladders() -> None:
    records = [*CLIMB, *on(1, 3e-3, "jax"), *on(2, 2e-3, "jax"), *on(1, 1e-2, batch=64), *on(2, 6e-3, batch=64)]
    found = scaling.workloads(summarise(records))
    assert [(item.title, [ladder.engine for ladder in item.ladders]) for item in found] == [
        ("made/cnn, train, batch 32, synthetic", ["jax", "torch"]),
        ("made/cnn, train, batch 64, synthetic", ["torch"]),
    ]


def test_what_else_differs_is_in_the_title() -> None:
    records = [*CLIMB, *on(1, 8e-3, precision="float64"), *on(2, 5e-3, precision="float64")]
    titles = [item.title for item in scaling.workloads(summarise(records))]
    assert [title.rpartition(", ")[2] for title in titles] == ["precision float32", "precision float64"]


@pytest.mark.parametrize("records", [[], on(1, 1e-3), [*on(1, 1e-3), *on(2, 1e-3, "jax")], made.study()])
def test_one_number_of_threads_is_no_ladder(records: list[Record]) -> None:
    assert scaling.workloads(summarise(records)) == []


def test_a_gpu_is_no_number_of_threads() -> None:
    gpu = made.runs("torch", 1e-4, cell={"placement": "cuda:0"}, trial="gpu")
    assert [point.count for point in only([*CLIMB, *gpu]).scaling.points] == [1, 2, 4, 8]


def test_the_answer_says_the_gain_the_share_and_the_end() -> None:
    said = scaling.answer(only([*on(1, 4e-3), *on(2, 2.2e-3)]))
    assert re.fullmatch(
        r"torch: 2 threads are 1\.82x \[1\.80 to 1\.84x\] as fast as 1, 91 % \[90 to 92 %\] of what they could be; "
        r"more threads help up to 2, and beyond that was not measured\.",
        said,
    )
    assert scaling.answer(only([*on(1, 1e-3), *on(2, 2e-3)])).endswith("; more threads do not help.")
    assert scaling.answer(only([*on(1, 4e-3), *on(2, 2e-3), *on(4, 4e-3)])).endswith("; beyond 2 they do not help.")
    close = scaling.answer(only([*on(1, 4e-3), *on(2, 3.99e-3)]))
    assert re.search(r"; whether more than 1 help is undecided; \d+ more runs of each would tell\.$", close)


def test_what_failed_is_a_line_with_its_reason() -> None:
    outcome = Outcome(kind="unsupported", reason="8 threads on 4 cores")
    bad = made.failed("torch", outcome, cell={"placement": "cpu:8"}, trial="bad", run="bad")
    ladder = only([*on(1, 4e-3), *on(2, 2.2e-3), bad])
    assert [line[1:3] for line in scaling.cells(ladder)][-1] == ("8", "unsupported")
    assert list(scaling.notes(ladder)) == ["torch on 8 threads: unsupported, 8 threads on 4 cores."]


def test_a_gain_that_is_too_good_is_said() -> None:
    (note,) = scaling.notes(only([*on(1, 4e-3), *on(2, 1e-3)]))
    assert note.startswith("torch on 2 threads gains more than the threads can explain")


def test_the_chart_has_every_point_and_the_ideal() -> None:
    (workload,) = scaling.workloads(summarise([*CLIMB, *on(1, 3e-3, "jax"), *on(2, 2e-3, "jax")]))
    spec = speedup_chart(workload, looks(["torch", "jax"]))
    values = [spec["datasets"][layer["data"]["name"]] for layer in spec["layer"]]
    assert [point["speedup"] for point in values[0]] == [1, 2, 4, 8]
    assert [(point["engine"], point["threads"]) for point in values[2]] == [
        ("jax", 1), ("jax", 2), ("torch", 1), ("torch", 2), ("torch", 4), ("torch", 8),
    ]  # fmt: skip
    assert all(point["low"] <= point["speedup"] <= point["high"] for point in values[1])
    assert "config" not in spec and spec["width"] == "container"


def test_the_page_has_a_section_on_threads_where_there_is_something_to_say(tmp_path: Path) -> None:
    text = page("made", "", summarise(CLIMB), CLIMB, tmp_path)
    assert '<h2 id="threads">What more threads bring</h2>' in text
    assert text.index("What more threads bring") < text.index("How it was measured")
    assert scaling.answer(only(CLIMB)) in text
    charts = [json.loads(found) for found in re.findall(r'data-chart="climb-chart-1">(.*?)</script>', text, re.S)]
    assert len(charts) == 1 and "Speed-up against threads" in charts[0]["description"]
    study = made.study()
    assert "What more threads bring" not in page("made", "", summarise(study), study, tmp_path)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    records = [*on(1, 4e-3, f"odd{made.HOSTILE}"), *on(2, 2e-3, f"odd{made.HOSTILE}")]
    text = page("made", "", summarise(records), records, tmp_path)
    parsed = Page(text)
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    assert "window.hostile" not in "".join(data for attributes, data in parsed.scripts if "type" not in attributes)


def test_the_terminal_answers_first() -> None:
    (workload,) = scaling.workloads(summarise(CLIMB))
    out = Console(width=160, record=True, file=StringIO())
    out.print(scaling_table(workload))
    said = out.export_text().splitlines()
    assert said[0] == "What more threads bring: made/cnn, train, batch 32, synthetic"
    assert said[1].startswith("torch: 8 threads are ")
    assert sum(line.startswith("torch ") for line in said) == 4
