"""`timetrial profile`: from a model to tables and files, with engines whose profiler is made up."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from tests.faults import bench
from tests.unit import made_profiles as made
from tests.unit.made_reader import STEPS, keep
from timetrial.cli.main import app
from timetrial.cli.profile import study_name
from timetrial.profiling import readers_of
from timetrial.records.store import Store

Call = Callable[..., Result]
TRACED = Path(bench.__file__).with_name("traced.py")
STUDY = "profile-quick-mlp"


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    engines = {name.lower(): bench.engine(name, TRACED) for name in ("Traced", "Untraceable", "BreaksTraced")}
    bench.install(monkeypatch.setattr, {**bench.fakes(), **engines})
    monkeypatch.setitem(readers_of.FORMATS, "made", "tests.unit.made_reader")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TIMETRIAL_RECORDS", raising=False)
    monkeypatch.delenv("TIMETRIAL_DEBUG", raising=False)
    return lambda *words: CliRunner().invoke(app, ["profile", *map(str, words)])


@pytest.fixture
def records(tmp_path: Path, call: Call) -> Path:
    return tmp_path / "records"


def measure(call: Call, *words: object) -> Result:
    return call("--model", "quick/mlp", "--batch", "16", "--samples", "64", *words)


def unwrapped(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_a_model_is_profiled_shown_and_not_profiled_again(call: Call) -> None:
    first = measure(call, "--engine", "traced,honest", "--task", "train,infer")
    assert first.exit_code == 0, first.stderr
    assert "quick/mlp train on traced, cpu, block 0" not in first.stderr  # blocks are counted from one
    assert "profile: " in first.stderr and "steps traced" in first.stderr
    assert "quick/mlp, train, batch 16, cpu, synthetic" in first.stdout
    assert "honest: unsupported honest cannot be profiled operation by operation" in unwrapped(first)
    assert "dense_1" in first.stdout and "backward" in first.stdout
    again = measure(call, "--engine", "traced,honest", "--task", "train,infer")
    assert "already measured" in again.stderr
    assert again.stdout == first.stdout
    shown = call("show", STUDY)
    assert (shown.exit_code, shown.stdout) == (0, first.stdout)
    only = call("show", f"{STUDY}?task=infer&engine=tra*")
    assert "backward" not in only.stdout and "honest" not in only.stdout


def test_files_are_written_of_all_profiles(call: Call, records: Path, tmp_path: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train")
    keep(records, STUDY, "quick/mlp", "traced", "infer")
    result = call("show", STUDY, "--trace", "t.json", "--csv", "ops.csv", "--parquet", "deep/ops.parquet")
    assert result.exit_code == 0, result.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1, 2}
    with open(tmp_path / "ops.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["task"] for row in rows} == {"train", "infer"}
    assert len(pd.read_parquet(tmp_path / "deep" / "ops.parquet")) == len(rows)
    for word in ("Trace: t.json", "Operations: ops.csv", "Operations: deep/ops.parquet"):
        assert word in result.stderr


def test_engines_that_fail_are_rows_with_their_reasons_and_the_others_go_on(call: Call) -> None:
    result = measure(call, "--engine", "untraceable,breakstraced,noupdate,traced", "--trace", "t.json")
    assert Path("t.json").exists()
    assert result.exit_code == 1
    for said in (
        "round0.json.gz: is cut short; profile again with --fresh",
        "breakstraced: crash RuntimeError: the profiler could not be started",
        "noupdate: wrong differs from the reference",
        "dense_1 │ backward",
    ):
        assert said in unwrapped(result)


def test_json_has_the_header_and_the_rows(call: Call, records: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train")
    result = call("show", STUDY, "--by", "class", "--json")
    assert result.exit_code == 0, result.stderr
    (group,) = json.loads(result.stdout)["groups"]
    found = group["profiles"]["traced"]
    assert (found["enough"], found["header"]["steps"]) == (True, STEPS)
    assert found["header"]["coverage"] == pytest.approx(1)
    (view,) = group["views"]
    total = view["total"]["of"]["traced"]["time"]
    assert total == pytest.approx(1e-3, rel=0.01)
    assert sum(row["of"]["traced"]["time"] for row in view["rows"]) == pytest.approx(total)


def test_engines_of_the_same_work_stand_in_one_table(call: Call, records: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train")
    keep(records, STUDY, "quick/mlp", "honest", "train", 2e-3)
    shown = call("show", STUDY)
    assert shown.stdout.count("time a step") == 2
    assert unwrapped(shown).count("dense_2 │ backward") == 1
    apart = call("show", STUDY, "--by", "type")
    assert apart.stdout.count("time a step") == 2


def test_not_enough_evidence_is_an_answer_and_with_strict_a_failure(call: Call, records: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train", overhead=3.0)
    plain = call("show", STUDY)
    assert plain.exit_code == 0
    assert "Not enough evidence: the profiler slows a step 3.00x" in plain.stdout
    assert "dense_1" in plain.stdout
    strict = call("show", STUDY, "--strict")
    assert (strict.exit_code, strict.stdout) == (1, plain.stdout)
    compared = call("compare", STUDY, STUDY)
    assert compared.exit_code == 0
    assert "Not enough evidence: BASE: the profiler slows a step 3.00x" in compared.stdout
    assert "about the same" in compared.stdout
    assert call("compare", STUDY, STUDY, "--strict").exit_code == 1


def test_two_profiles_are_compared(call: Call, records: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train")
    keep(records, STUDY, "quick/mlp", "traced", "infer")
    keep(records, "wide", "quick/cnn", "traced", "train", 2e-3)
    found = call("compare", f"{STUDY}?task=train", "wide")
    assert found.exit_code == 0, found.stderr
    assert "BASE → NEW: model quick/mlp → quick/cnn." in found.stdout
    assert "NEW takes 2 ms a step, BASE 1 ms: speed-up 0.50x." in found.stdout
    assert "appeared" in found.stdout and "conv2d_1" in found.stdout
    answer = json.loads(call("compare", f"{STUDY}?task=train", "wide", "--json").stdout)
    assert answer["seconds"]["operations"] == pytest.approx(1e-3, rel=0.01)
    for table in answer["tables"]:
        assert sum(one["delta"] for one in table["changes"]) == pytest.approx(answer["seconds"]["operations"])
    refused = call("compare", f"{STUDY}?task=train", f"{STUDY}?task=infer")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "task: train in BASE, infer in NEW; --force compares them all the same" in refused.stderr
    forced = call("compare", f"{STUDY}?task=train", f"{STUDY}?task=infer", "--force")
    assert "Compared by force: task: train in BASE, infer in NEW." in forced.stdout
    several = call("compare", STUDY, "wide")
    assert several.exit_code == 2
    assert "has 2 profiles (traced, task train; traced, task infer)" in several.stderr


def test_a_record_alone_may_be_shown(call: Call, records: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train")
    keep(records, STUDY, "quick/mlp", "traced", "infer")
    (path,) = (path for path in (records / STUDY).glob("*.json") if '"task":"infer"' in path.read_text())
    shown = call("show", path.relative_to(records.parent))
    assert shown.exit_code == 0
    assert "quick/mlp, infer" in shown.stdout and "quick/mlp, train" not in shown.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--by", "layr"], 2, "there is no view 'layr'; did you mean 'layer'?"),
        (["--sort", "tim"], 2, "there is no sort 'tim'; did you mean 'time'?"),
        (["--columns", "time,shares"], 2, "there is no column 'shares'; did you mean 'share'?"),
        (["--filter", "fase=x"], 2, "filter 'fase=x': there is no 'fase' to choose by; did you mean 'phase'?"),
        (["--filter", ""], 2, "is empty; write a word"),
        (["--filter", "share>x"], 2, "write the least share as share>1%"),
        (["--json", "--published"], 2, "--json and --published: give one of them"),
        (["--engine", "nobody"], 2, "there is no engine 'nobody'"),
        (["--task", "sleep"], 2, "'tasks.0': input should be 'train' or 'infer'"),
        (["--samples", "some"], 2, "a share of the training samples such as 33%"),
        (["--feed", "spoon"], 2, "'settings.feed': input should be 'resident', 'batch'"),
        (["--loop", "for"], 2, "'settings.loop': input should be 'step' or 'fit'"),
        (["--batch", "16", "--precision", "float8"], 2, "'precision'"),
        (["--placement", "tpu"], 2, "'tpu' is not a placement"),
    ],
)
def test_a_bad_request_is_one_message_before_anything_is_measured(
    call: Call, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    result = call("--model", "quick/mlp", "--engine", "traced", *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--task", "infer"], 2, "name a model with --model"),
        (["--model", "quick/mlpp"], 2, "did you mean 'quick/mlp'"),
        (["--model", "quick/mlp", "show", "x"], 2, "--model stands before `timetrial profile show`"),
        (["show", "nothing"], 2, "no study of that name in records (none yet)"),
        (["compare", "nothing", "nothing"], 2, "no study of that name in records (none yet)"),
    ],
)
def test_a_wrong_word_is_one_message(call: Call, words: list[str], code: int, said: str) -> None:
    result = call(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_study_without_profiles_says_how_to_make_one(call: Call, tmp_path: Path) -> None:
    Store(tmp_path / "records").write(made.record().model_copy(update={"role": "cell", "profile": None}))
    result = call("show", "made")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "holds no profile; `timetrial profile --model NAME` makes one" in result.stderr


def test_a_trace_that_is_gone_is_said_and_leaves_nothing_to_show(call: Call, tmp_path: Path) -> None:
    Store(tmp_path / "records").write(made.record())
    result = call("show", "made")
    assert result.exit_code == 1
    assert "the trace is not there any more; profile again with --fresh" in unwrapped(result)
    assert call("compare", "made", "made").exit_code == 1


def test_a_filter_that_nothing_passes_says_what_there_is(call: Call, records: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train")
    result = call("show", STUDY, "--filter", "phase=bakward")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "filter 'phase=bakward': no operation is so; did you mean 'backward'?" in result.stderr


def test_the_page_and_the_published_form_are_asked_for(
    call: Call, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are modules of their own; here only what they are given."""
    told: dict[str, Any] = {}
    page, published = ModuleType("page"), ModuleType("published")

    def write_page(path: Path, title: str, profiles: list[Any], limits: Mapping[str, Any] | None) -> None:
        told.update(path=path, title=title, engines=[one.header.engine for one in profiles], limits=limits)

    page.write_page = write_page  # type: ignore[attr-defined]
    long = "x" * 300
    published.report = lambda profile: f"[{profile.header.engine}] {long}"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timetrial.report.profile_page", page)
    monkeypatch.setitem(sys.modules, "timetrial.profiling.published", published)
    keep(records, STUDY, "quick/mlp", "traced", "train")
    result = call("show", STUDY, "--published", "--report", "p.html")
    assert result.exit_code == 0, result.stderr
    assert f"\n[traced] {long}\n" in result.stdout
    assert told == {"path": Path("p.html"), "title": STUDY, "engines": ["traced"], "limits": None}


def test_the_charts_are_drawn_as_pictures(call: Call, records: Path, tmp_path: Path) -> None:
    keep(records, STUDY, "quick/mlp", "traced", "train")
    result = call("show", STUDY, "--pictures", tmp_path / "shots")
    assert result.exit_code == 0, result.stderr
    drawn = sorted(path.name for path in (tmp_path / "shots").iterdir())
    assert "layers.png" in drawn and "step-traced.png" in drawn
    assert all((tmp_path / "shots" / name).read_bytes().startswith(b"\x89PNG") for name in drawn)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("quick/mlp", "profile-quick-mlp"),
        ("profiling/cnn?stride=2&filters=32", "profile-profiling-cnn-stride-2-filters-32"),
    ],
)
def test_a_study_is_named_by_its_model(model: str, name: str) -> None:
    assert study_name(model) == name
    assert len(study_name(model * 9)) <= 64
