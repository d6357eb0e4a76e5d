"""The report of a study, and what it is made of: break-even, words, tables, charts, and the page as a whole."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import made_records as made
from timetrial.records.record import Laps, Outcome, Record
from timetrial.records.store import Store, StoreError
from timetrial.report import charts, html, notes
from timetrial.report.crossings import crossings
from timetrial.report.html import page, write_page
from timetrial.report.picture import write_picture
from timetrial.report.style import looks
from timetrial.report.summary import summarise
from timetrial.report.tables import table
from timetrial.stats.breakeven import Course, break_even, leaders

COURSES = st.builds(Course, st.floats(0, 1e4), st.floats(1e-7, 10.0))


class Page(HTMLParser):
    """What a browser would make of the page: the tags, the text, and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.words.append(data)
        elif self._open[-1] == "script":
            self.scripts.append((self.tags[-1][1], data))

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def specs(self) -> list[dict[str, Any]]:
        return [json.loads(data) for attributes, data in self.scripts if "data-chart" in attributes]


def shown(records: list[Record], folder: Path, title: str = "Which is fastest?") -> Page:
    return Page(page(made.STUDY, title, summarise(records), records, folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Store(tmp_path).keep_machine(made.MACHINE, made.INVENTORY)
    return tmp_path


# Break-even


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [
        (Course(1.0, 0.002), Course(4.0, 0.001), 3001),  # 3 s later, 1 ms quicker: equal at 3000
        (Course(4.0, 0.001), Course(1.0, 0.002), None),  # ahead at first, but not for good
        (Course(1.0, 0.1), Course(0.5, 0.05), 0),
        (Course(1.0, 0.1), Course(1.0, 0.05), 1),
        (Course(1.0, 0.1), Course(0.5, 0.1), 0),
        (Course(1.0, 0.1), Course(1.0, 0.1), None),
        (Course(1.0, 0.1), Course(2.0, 0.1), None),
        (Course(0.0, 5e-324 * 2), Course(1e300, 5e-324), None),  # not in any number of steps that can be named
    ],
)
def test_break_even(first: Course, second: Course, steps: int | None) -> None:
    assert break_even(first, second) == steps


@given(COURSES, COURSES)
def test_from_the_break_even_on_the_second_is_ahead_and_before_it_is_not(first: Course, second: Course) -> None:
    steps = break_even(first, second)
    if steps is None:
        assert second.step >= first.step
        return
    slack = 1e-9 * first.after(steps)  # of rounding
    assert second.after(steps) <= first.after(steps) + slack
    assert second.after(2 * steps + 10) <= first.after(2 * steps + 10) + slack
    if steps:
        assert second.after(steps - 1) >= first.after(steps - 1) - slack


@given(st.dictionaries(st.text("abcdef", min_size=1), COURSES, min_size=1, max_size=6), st.integers(0, 10**7))
def test_the_leader_is_the_one_with_the_least_time(courses: dict[str, Course], steps: int) -> None:
    found = leaders(courses)
    assert found[0][0] == 0 and [n for n, _ in found] == sorted({n for n, _ in found})
    leader = [name for since, name in found if since <= steps][-1]
    best = min(line.after(steps) for line in courses.values())
    assert courses[leader].after(steps) <= best * (1 + 1e-9)


@pytest.mark.parametrize("values", [(-1.0, 1.0), (1.0, 0.0), (float("nan"), 1.0), (1.0, float("inf"))])
def test_a_course_that_cannot_be_is_refused(values: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="a course needs"):
        Course(*values)


def test_no_courses_have_no_leader() -> None:
    assert leaders({}) == []


# Words


def test_crossings_in_words() -> None:
    [group] = summarise(
        [*made.runs("jax", 1e-3, 4.0), *made.runs("torch", 2e-3, 1.0), *made.runs("keras-jax", 3e-3, 9.0)]
    )
    lead, overtaking = crossings(group.rows)
    assert re.fullmatch(r"torch is ahead for fewer than 3,00\d steps; from 3,00\d steps on \(.*\) it is jax\.", lead)
    assert re.fullmatch(
        r"jax, the quickest a step, is ahead of torch from 3,00\d steps on; of keras-jax from the start\.", overtaking
    )


def test_no_break_even_is_claimed_where_the_steps_are_not_told_apart() -> None:
    [group] = summarise([*made.runs("jax", 1e-3, 4.0), *made.runs("torch", 1.001e-3, 1.0)])
    lead, overtaking = crossings(group.rows)
    assert "not certainly" in lead
    assert overtaking == "A step of torch is not told apart from one of jax: no number of steps is given."


def test_one_that_is_ahead_all_the_way() -> None:
    [group] = summarise([*made.runs("jax", 1e-3, 1.0), *made.runs("torch", 2e-3, 2.0)])
    assert crossings(group.rows)[0] == "jax starts first and stays ahead, however many steps are made."


def test_shortcomings_are_named(folder: Path) -> None:
    unsettled = made.record(
        "torch", 0, 1e-3, laps=Laps(seconds=(1e-3,), steps=1, warmup=(1e-3,), stable=False), equivalence=None
    )
    again = made.record("torch", 1, 1e-3, versions={"torch": "2.0"}, machine="other")
    (folder / made.STUDY).mkdir()
    (folder / made.STUDY / "cut.json").write_text('{"run": ')
    records = [unsettled, again, *made.runs("jax", 1e-3), made.missing()]
    text = " ".join(notes.shortcomings(summarise(records), records, Store(folder).unreadable()))
    for words in (
        "Not measured everywhere (missing): tensorflow", "torch (made/cnn, train, batch 32, cpu:2, synthetic): one process only",
        "is not proved", "had not settled", "2 versions of torch", "from 2 machines", "synthetic (synthetic)",
        "cut.json: left out, not whole JSON",
    ):  # fmt: skip
        assert words in text, words


def lapped(*seconds: float, engine: str = "jax", block: int = 0) -> Record:
    return made.record(engine, block, 1e-3, laps=Laps(seconds=seconds, steps=1, warmup=(), stable=True))


@pytest.mark.parametrize(
    ("count", "carried"), [(63, []), (64, ["p90"]), (130, ["p90", "p95"]), (662, ["p90", "p95", "p99"])]
)
def test_the_report_prints_the_tails_that_the_laps_carry(folder: Path, count: int, carried: list[str]) -> None:
    text = shown([lapped(*[1e-3] * (count - 1), 2e-3)], folder).text
    assert [name for name in ("p90", "p95", "p99") if f"{name} 1 ms" in text] == carried


@pytest.mark.parametrize(("far", "warned"), [(1, False), (2, True)])
def test_the_report_counts_outliers_and_warns_above_five_percent(folder: Path, far: int, warned: bool) -> None:
    """Of 30 laps one is 3 %, two are 7 %; either way the median is of all of them."""
    usual = [1e-3 + 1e-6 * (i % 5) for i in range(30 - far)]
    text = shown([lapped(*usual, *[9e-3] * far)], folder).text
    assert ("7 % of its laps lie far from the others of their process; all of them count" in text) is warned


def test_the_report_prints_the_second_opinion_where_it_differs(folder: Path) -> None:
    """Five processes of two kinds: resampled, their interval is another. With four there is no second opinion."""
    values = [1e-3, 1e-3, 1.001e-3, 1.001e-3, 1.2e-3]
    of_two_kinds = [made.record("jax", i, value) for i, value in enumerate(values)]
    alike = [made.record("torch", i, 1e-3 * (1 + 0.001 * i)) for i in range(5)]
    assert [row.resampled for row in summarise([*of_two_kinds, *alike])[0].rows] == [True, False]
    text = shown([*of_two_kinds, *alike], folder).text
    assert "jax (made/cnn, train, batch 32, cpu:2, synthetic): resampling its processes gives another interval" in text
    assert "torch (made/cnn, train, batch 32, cpu:2, synthetic): resampling" not in text
    few = [made.record("jax", i, value) for i, value in enumerate(values[1:])]
    assert summarise(few)[0].rows[0].resampled is None


def test_a_study_without_shortcomings_has_none() -> None:
    records = [
        r for engine in ("jax", "torch") for r in made.runs(engine, 1e-3, cell={"dataset": "fashion-mnist-6000"})
    ]
    assert notes.shortcomings(summarise(records), records, []) == []


def test_half_a_study_says_who_has_fewer_processes() -> None:
    records = [*made.runs("jax", 1e-3, processes=4), *made.runs("torch", 1e-3, processes=2)]
    assert "2 processes where others have 4" in " ".join(notes.shortcomings(summarise(records), records, []))


def test_the_method_gives_the_figures_of_these_records() -> None:
    said = dict(notes.method(made.runs("jax", 1e-3)))
    assert said["Timed region"] == "forward, loss, backward, update, wait"
    assert (
        said["Repetition"]
        == "Profile quick: 3 blocks, each run a fresh process of its own. 3 laps a process, 64 steps a lap."
    )
    assert "float32: outputs 1e-4, gradients 1e-3, after 5 steps 1e-3" in said["Equivalence"]
    assert "0.01 % of a step" in said["Harness"] and "0.04 % of one core" in said["Harness"]


@pytest.mark.parametrize(
    "inventory", [{}, {"cpu": None, "gpus": "many", "memory": [], "load": {}}, {"gpus": [], "cpu": {"allowed": 3}}]
)
def test_an_odd_inventory_is_dashes_and_no_error(inventory: dict[str, Any]) -> None:
    facts = dict(notes.machine_facts(inventory))
    assert facts["Processor"] == "-" and facts["Memory"] == "-"


# Table


def test_what_was_not_measured_is_a_dash_and_sorts_last() -> None:
    bare = {"memory": {}, "phases": {}, "equivalence": None}
    [group] = summarise(made.runs("jax", 1e-3, processes=1, **bare))
    shown = table(group)
    [cells] = shown.rows
    by_name = dict(zip((name for name, *_ in shown.columns), cells, strict=True))
    for name in ("first step", "import and build", "peak memory", "accuracy", "equivalence"):
        assert (by_name[name].text, by_name[name].key) == ("-", ""), name
    assert "±" not in by_name["median step"].text


def test_a_table_row_has_its_figures() -> None:
    first, *_, last = table(summarise(made.study())[0]).rows
    assert [cell.text for cell in first][2:] == [
        "3",
        "32,000/s",
        "800 ms",
        "3.2 s",
        "300 MiB",
        "87.5 %",
        "proved",
        "fastest",
    ]
    assert last[2].text == "1" and last[-1].text.startswith("undecided")


# Style and charts


def test_an_engine_has_its_own_colour_whatever_else_is_there() -> None:
    few, many = looks(["torch"]), looks(["jax", "torch", "torch@2.9.1", "keras-torch", "keras-torch (fit)", "other"])
    assert few["torch"] == many["torch"]
    assert many["torch"].colour == many["torch@2.9.1"].colour and many["torch"].dash != many["torch@2.9.1"].dash
    assert many["keras-torch"].colour == many["keras-torch (fit)"].colour
    assert len({many[name].colour for name in ("jax", "torch", "keras-torch", "other")}) == 4


def steps_of(records: list[Record]) -> dict[str, Any]:
    [group] = summarise(records)
    spec = charts.step_chart(group, looks(row.engine for row in group.rows))
    assert spec is not None
    return spec


def test_a_dot_for_each_process_and_a_line_for_each_failure() -> None:
    spec = steps_of([*made.runs("jax", 1e-3), *made.runs("torch", 2e-3), made.missing()])
    rules, dots, ticks, failures = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"])
    assert (len(rules), len(dots), len(ticks)) == (2, 6, 2)
    assert failures == [{"engine": "tensorflow", "text": "not measured: missing"}]
    assert spec["width"] == "container"
    values = {value["engine"]: value for value in rules}
    assert (
        values["torch"]["low"] < values["torch"]["value"] < values["torch"]["high"]
        and 1.9 < values["torch"]["value"] < 2.1
    )


@pytest.mark.parametrize(
    ("slow", "kind"), [(2e-3, {"zero": True, "nice": True}), (1.0, {"type": "log", "nice": False, "padding": 12})]
)
def test_the_axis_starts_at_zero_unless_the_times_are_far_apart(slow: float, kind: dict[str, Any]) -> None:
    spec = steps_of([*made.runs("jax", 1e-3), *made.runs("torch", slow)])
    assert spec["layer"][0]["encoding"]["x"]["scale"] == kind


def test_there_is_no_chart_of_nothing() -> None:
    [group] = summarise([made.missing()])
    assert charts.step_chart(group, looks(["tensorflow"])) is None
    assert charts.start_chart(group, {"tensorflow": {}}) is None
    assert charts.course_chart(group, {"jax": Course(1.0, 1.0)}, looks(["jax"])) is None


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_picture(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / f"steps.{kind}"
    write_picture(path, summarise(made.study()))
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if kind == "png" else b"<svg") and b"currentColor" not in content
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_pictures_that_cannot_be(tmp_path: Path) -> None:
    groups = summarise(made.runs("jax", 1e-3))
    with pytest.raises(ValueError, match=r"\.png or a \.svg"):
        write_picture(tmp_path / "a.gif", groups)
    with pytest.raises(ValueError, match="nothing was measured"):
        write_picture(tmp_path / "a.png", summarise([made.missing()]))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_picture(tmp_path / "file" / "a.png", groups)


# Page


def test_the_page_has_all_its_parts_in_order(folder: Path) -> None:
    text = shown(made.study(), folder).text
    places = [
        text.index(part)
        for part in (
            "Which is fastest?", "jax is fastest with", "13 runs, 3 of them not measured", "against the fastest", "Not measured",
            "timetrial engines add tensorflow", "Time of a step", "Time to get going", "Time against number of steps",
            "How it was measured", "forward, loss, backward", "The machine", "Made Processor 9000", "Made GPU", "Versions",
            "What falls short", "Raw data", "timetrial show made",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert all(difference in text for difference in made.DIFFERENCES)


def test_the_page_stands_on_its_own(folder: Path) -> None:
    path = folder / "deep" / "report.html"
    records = made.study()
    write_page(path, made.STUDY, "", summarise(records), records, folder)
    content = path.read_text(encoding="utf-8")
    assert 0.9e6 < len(content.encode()) < 3e6
    parsed = Page(content)
    assert ("html", {"lang": "en"}) in parsed.tags
    assert [attributes for _, attributes in parsed.tags if {"src", "srcset"} & attributes.keys()] == []
    links = [attributes["href"] or "" for _, attributes in parsed.tags if "href" in attributes]
    assert all(link.startswith("#") for link in links)
    assert not [name for _, attributes in parsed.tags for name in attributes if name.startswith("on")]
    assert f"{made.STUDY} jax is fastest" in parsed.text  # no title: the study's name


def test_headings_go_down_one_level_at_a_time(folder: Path) -> None:
    levels = [int(tag[1]) for tag, _ in shown(made.study(), folder).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))


def test_hostile_strings_stay_text(folder: Path) -> None:
    hostile = made.HOSTILE
    inventory = json.loads(json.dumps(made.INVENTORY).replace("Made Processor 9000", "x")) | {
        "software": {"kernel": hostile}
    }
    other = Store(folder)
    other.keep_machine("evil", inventory)
    records = [
        *made.study(),
        *made.runs(
            "jax",
            1e-3,
            cell={"batch": 64, "model": hostile},
            machine="evil",
            includes=hostile,
            versions={hostile: hostile},
        ),
    ]
    content = page(made.STUDY, hostile, summarise(records), records, folder)
    parsed = Page(content)
    kinds = [attributes.get("type") for tag, attributes in parsed.tags if tag == "script"]
    assert kinds.count(None) == 2 and set(kinds) == {None, "application/json"}
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    assert "49" not in parsed.words[0]
    programs = {data for attributes, data in parsed.scripts if "type" not in attributes}
    assert not any("window.hostile" in program for program in programs)
    for attributes, data in parsed.scripts:
        if attributes.get("type"):
            json.loads(data)
            assert not re.search("[<>\u2028]", data)
    assert parsed.text.count("{{7*7}}") > 5


def test_only_the_pages_own_scripts_may_run(folder: Path) -> None:
    import base64
    import hashlib

    content = page(made.STUDY, "t", summarise(made.study()), made.study(), folder)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', content)
    assert policy and "default-src &#39;none&#39;" not in policy[1] and "default-src 'none'" in policy[1]
    programs = re.findall(r"<script>(.*?)</script>", content, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256(program.encode()).digest()).decode() for program in programs}
    assert len(digests) == 2
    assert set(re.findall(r"'sha256-([^']*)'", policy[1])) == digests
    assert "'unsafe-inline'" not in policy[1].partition("script-src")[2]


def test_two_groups_have_their_answers_on_top_and_their_differences_in_their_titles(folder: Path) -> None:
    records = [r for tf32 in (False, True) for r in made.runs("jax", 1e-3, cell={"tf32": tf32})]
    parsed = shown(records, folder)
    assert {"#group-1", "#group-2"} <= {attributes.get("href") for _, attributes in parsed.tags}
    assert "synthetic, tf32 False" in parsed.text and "synthetic, tf32 True" in parsed.text
    assert "precision" not in parsed.text.partition("How it was measured")[0]


def test_only_failures(folder: Path) -> None:
    parsed = shown([made.missing(), made.wrong(), made.crash()], folder)
    assert "No engine could be measured." in parsed.text and "signal SIGSEGV" in parsed.text
    assert parsed.specs() == [] and "outcome.kind" in parsed.text
    assert len([tag for tag, _ in parsed.tags if tag == "table"]) == 2


def test_nothing_at_all(folder: Path) -> None:
    assert "There are no records yet" in shown([], folder).text


def test_a_half_run_study(tmp_path: Path) -> None:
    parsed = shown([*made.runs("jax", 1e-3, processes=2), *made.runs("torch", 2e-3, processes=1)], tmp_path)
    assert "one process only" in parsed.text and "does not lie beside the records" in parsed.text
    assert len(parsed.specs()) == 3


def test_the_query_that_the_page_shows_works(tmp_path: Path) -> None:
    import shlex

    store = Store(tmp_path)
    records = [r for r in made.study() if made.HOSTILE not in r.run]
    for record in records:
        store.write(record)
    for kept in (records, [r for r in records if not r.outcome.ok]):
        command = re.search(r'timetrial show made .*? ORDER BY ALL"', shown(kept, tmp_path).text)
        assert command
        words = shlex.split(command[0])
        assert words[words.index("--records") + 1] == str(tmp_path)
        assert len(store.query(words[-1]).fetchall()) == len(records)


def test_a_failure_among_good_runs_is_shown(folder: Path) -> None:
    broken = made.failed("jax", Outcome(kind="crash", reason="fell over in block 3"))
    parsed = shown([*made.runs("jax", 1e-3), *made.runs("torch", 1e-3), broken.model_copy(update={"block": 3})], folder)
    assert "fell over in block 3" in parsed.text and "Only torch could be measured" in parsed.text


def test_a_page_of_very_many_workloads_draws_the_first_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_DRAWN", 2)
    found = [run for batch in (8, 16, 32) for run in made.runs("torch", 1e-3, cell={"batch": batch})]
    text = html.page(made.STUDY, "", summarise(found), found, tmp_path)
    assert 'data-chart="chart-2-1"' in text
    assert 'data-chart="chart-3-1"' not in text
    assert 'id="group-3"' in text
    assert "Charts are drawn of the first 2 of 3 workloads" in text


def test_a_setting_that_is_not_the_default_stands_in_the_title() -> None:
    found = [*made.runs("torch", 1e-3), *made.runs("torch", 2e-3, cell={"layout": "channels_last"}, trial="other")]
    titles = [group.title for group in summarise(found)]
    assert ["layout channels_last" in title for title in titles] == [False, True]
    assert not any("default" in title for title in titles)
