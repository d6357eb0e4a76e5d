"""The page of profiles: what it holds, that it stands on its own, and that whatever a trace says stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from tests.unit import made_bottlenecks as known
from tests.unit import made_profiles as made
from tests.unit import made_records
from tests.unit.test_report import Page
from timetrial.profiling.lanes import timeline
from timetrial.profiling.profile import Profile
from timetrial.report import charts, profile_charts, profile_tables
from timetrial.report.profile_groups import works
from timetrial.report.profile_page import page, write_page
from timetrial.report.profile_picture import write_pictures
from timetrial.report.timeline import draw

LIMITS = {"": known.limits(4.0, 0.5)}
HOSTILE = made_records.HOSTILE


def three() -> list[Profile]:
    return [made.profile(), made.profile("jax", 1.4, threads=2), made.profile("keras-torch", 2.0)]


def hostile() -> Profile:
    """Everything that comes out of a trace or a record is somebody else's text; one of them with what no XML may hold."""
    raw = made.raw()
    named = {
        name: raw.ops[name].cat.rename_categories(lambda text: f"{text}{HOSTILE}\x00\x1b")
        for name in ("type", "name", "thread")
    }
    layers = raw.ops["layer"].cat.rename_categories({"conv1": HOSTILE})
    record = made.record("torch")
    profile = made.assemble(replace(raw, ops=raw.ops.assign(**named, layer=layers)), made.workload(), record)
    told = dict.fromkeys(("engine", "version", "model", "dataset", "run"), HOSTILE)
    header = replace(
        profile.header, **told, contended=(HOSTILE,), remarks=(HOSTILE,), versions={HOSTILE: HOSTILE}, overlapping=3
    )
    return replace(profile, header=header)


def cells(table: Any) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_the_page_has_all_its_parts_in_order() -> None:
    text = Page(page("Where do the milliseconds go?", three(), LIMITS)).text
    parts = (
        "Where do the milliseconds go?", "torch , 1 ms a step: 65 % of a step goes to operations whose limit is arithmetic",
        "jax , 1.4 ms a step", "3 profiles · 9 steps traced", "made/cnn, train, batch 32, cpu:2, float32, synthetic",
        "How far these profiles can be trusted", "98 %", "1.02x", "What holds a step up", "Where a step goes",
        "Layer by layer", "Under the roof", "counted from the network, not measured", "One step of torch", "One step of jax",
        "By layer and phase", "Counted beside measured", "By type of operation", "By class of operation", "How to read it",
        "operations below 50 µs (unless", "Versions", "What falls short",
    )  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_page_stands_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "profile.html"
    write_page(path, "", three(), LIMITS)
    content = path.read_text(encoding="utf-8")
    assert len(content.encode()) < 2e6
    parsed = Page(content)
    assert ("html", {"lang": "en"}) in parsed.tags
    assert [attributes for _, attributes in parsed.tags if {"src", "srcset"} & attributes.keys()] == []
    assert all((attributes["href"] or "").startswith("#") for _, attributes in parsed.tags if "href" in attributes)
    assert not [name for _, attributes in parsed.tags for name in attributes if name.startswith("on")]
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", parsed.text + json.dumps([dict(a) for _, a in parsed.tags])))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place


def test_only_the_pages_own_scripts_may_run() -> None:
    content = page("t", three(), LIMITS)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', content)
    programs = re.findall(r"<script>(.*?)</script>", content, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256(program.encode()).digest()).decode() for program in programs}
    assert policy and len(digests) == 2
    assert set(re.findall(r"'sha256-([^']*)'", policy[1])) == digests


def test_headings_go_down_one_level_at_a_time() -> None:
    levels = [int(tag[1]) for tag, _ in Page(page("t", three(), LIMITS)).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))


def test_hostile_names_stay_text() -> None:
    parsed = Page(page(HOSTILE, [hostile(), made.profile()], LIMITS))
    kinds = [attributes.get("type") for tag, attributes in parsed.tags if tag == "script"]
    assert kinds.count(None) == 2 and set(kinds) == {None, "application/json"}
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    programs = [data for attributes, data in parsed.scripts if "type" not in attributes]
    assert not any("window.hostile" in program for program in programs)
    for attributes, data in parsed.scripts:
        if attributes.get("type"):
            json.loads(data)
            assert not re.search("[<>\u2028]", data)
    assert parsed.text.count("{{7*7}}") > 20


def test_hostile_names_are_drawn_as_pictures(tmp_path: Path) -> None:
    written = write_pictures(tmp_path, [hostile(), made.profile()], LIMITS)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert {path.parent for path in written} == {tmp_path}


def test_every_figure_is_a_chart_that_can_be_drawn() -> None:
    specs = Page(page("t", [*three(), hostile()], LIMITS)).specs()
    assert len(specs) == 3 + 2  # what is contended has no bar of what holds it up
    for spec in specs:
        vl_convert.vegalite_to_vega(spec, vl_version=charts.vega_lite())
        assert spec["description"] and spec["width"] == "container"


def test_without_limits_there_is_no_roof_and_the_remedy_is_told() -> None:
    parsed = Page(page("t", three()))
    assert "Under the roof" not in parsed.text and "of the limit" not in parsed.text.partition("How to read it")[0]
    assert "no percent of the limit: without the machine's limits; use measure: [time, profile, limits]" in parsed.text


def test_what_is_not_enough_evidence_is_said_first_and_not_ranked() -> None:
    poor = made.profile()
    poor = replace(poor, header=replace(poor.header, contended=("others took its cores",)))
    text = Page(page("t", [poor, made.profile("jax")], LIMITS)).text
    assert "torch , 1 ms a step: Not enough evidence: others took its cores." in text
    assert cells(profile_tables.kinds(works([poor, made.profile("jax")])[0]))[0][1] == "-"


def test_no_profiles_are_a_page_that_says_so(tmp_path: Path) -> None:
    assert "There are no profiles, so there is no answer." in Page(page("t", [])).text
    with pytest.raises(ValueError, match="no profiles to draw"):
        write_pictures(tmp_path, [])


def test_other_work_has_a_section_of_its_own() -> None:
    profile = made.profile()
    other = replace(profile, header=replace(profile.header, task="infer"), workload=made.workload(task="infer"))
    parsed = Page(page("t", [profile, other], LIMITS))
    assert {"#work-1", "#work-2"} <= {attributes.get("href") for _, attributes in parsed.tags}


def test_profiles_of_one_engine_are_told_apart() -> None:
    profile = made.profile()
    newer = replace(profile, header=replace(profile.header, version="2.0"))
    again = replace(profile, header=replace(profile.header, run="second"))
    assert [seen.name for seen in works([profile, newer])[0].profiles] == ["torch 1.0", "torch 2.0"]
    assert [seen.name for seen in works([profile, again])[0].profiles] == ["torch 1.0 (torch-0)", "torch 1.0 (second)"]
    assert len({seen.name for seen in works([profile, profile])[0].profiles}) == 2


def test_the_columns_of_layers_and_phases_add_up_to_the_step() -> None:
    [work] = works(three())
    table = profile_tables.by_layer(work)
    for i, seconds in enumerate((1e-3, 1.4e-3, 2e-3), 2):
        assert sum(float(row[i].key) for row in table.rows if row[i].key) == pytest.approx(seconds)
    assert [row[0] for row in cells(table)][-3:] == ["(no layer)", "(no layer)", "(gaps)"]


def test_what_is_counted_stands_beside_what_is_measured() -> None:
    [work] = works([made.profile()], LIMITS)
    rows = {(row[0], row[1]): row[3:] for row in cells(profile_tables.beside(work))}
    assert rows["conv2", "forward"] == ["147,456", "36,000", "8.19", "300 µs", "0.983", "0.12", "25 %", "arithmetic"]
    assert rows["conv1", "backward"][3:] == ["-"] * 5


def test_many_types_are_summed_up_without_losing_time() -> None:
    ops = [(f"type {i:03}", "conv1", "forward", 10 * i, 9.5, 0) for i in range(100)]
    [work] = works([known.profile(ops)])
    table = profile_tables.by_type(work)
    assert len(table.rows) == profile_tables.MOST_TYPES + 1
    assert table.rows[-1][0].text == "40 other types"
    assert sum(float(row[4].key) for row in table.rows) == pytest.approx(950_000)


def test_the_layers_that_take_little_are_drawn_together() -> None:
    ops = [("aten::add", f"layer {i:03}", "forward", 10 * i, 5 + i / 100, 0) for i in range(100)]
    [work] = works([known.profile(ops)])
    chart = profile_charts.layers(work)
    assert chart is not None
    rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows]
    assert len(rows) == profile_charts.MOST_LAYERS + 1
    assert sum(row["ms"] for row in rows) == pytest.approx(sum(5 + i / 100 for i in range(100)) / 1e3)
    assert "75 other layers" in {row["layer"] for row in rows}


def test_the_flame_chart_says_what_is_hovered_over() -> None:
    drawn = draw(timeline(made.profile()), "one step")
    assert 'aria-label="one step"' in drawn.svg
    assert "aten::mkldnn_convolution\nlayer conv1\nforward, conv\n180 µs\n4 KiB allocated" in drawn.svg
    assert "memory not measured" in drawn.svg
    assert ">conv1: aten::conv2d</text>" in drawn.svg and ">aten::mkldnn_convolution</text>" in drawn.svg
    assert "8 operations, nested ones below" in drawn.caption and "too narrow" not in drawn.caption


def test_a_flame_chart_of_very_many_operations_is_light_and_counts_them() -> None:
    ops = [("aten::add", "conv1", "forward", 0.1 * i, 0.09, i % 12) for i in range(9000)]
    drawn = draw(timeline(known.profile(ops)), "many")
    assert len(drawn.svg) < 1_000_000
    assert "9,000 operations" in drawn.caption and "9,000 of them are too narrow" in drawn.caption
    assert "4 threads that had less to do are left out" in drawn.caption
