"""`timetrial compare` as it is called: exit codes, messages, and the three ways in which it answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.unit import made_records as made
from timetrial.cli.main import app
from timetrial.records.record import Record
from timetrial.records.store import Store

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIMETRIAL_RECORDS", raising=False)
    monkeypatch.delenv("TIMETRIAL_DEBUG", raising=False)
    return lambda *words: CliRunner().invoke(app, ["compare", *map(str, words)])


def keep(folder: str, records: Sequence[Record]) -> None:
    for one in records:
        Store(Path(folder)).write(one)


def test_exit_codes(call: Call) -> None:
    keep("records", made.runs("jax", 1e-3))
    keep("later", made.runs("jax", 1.2e-3))
    assert call("made", "later").exit_code == 0  # the name of a study, and a folder of records
    assert call("made", "later/made", "--fail-if", "slower > 3%").exit_code == 1
    assert call("later", "made", "--fail-if", "slower > 3%", "--fail-if", "failed").exit_code == 0
    refused = call("made", "later", "--fail-if", "slow")
    assert (refused.exit_code, refused.stdout) == (2, "")
    keep("elsewhere", made.runs("jax", 1e-3, machine="other"))
    refused = call("made", "elsewhere")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "machine: 0123456789abcdef in BASE, other in NEW" in refused.stderr


def test_a_record_alone_may_be_compared(call: Call) -> None:
    keep("records", made.runs("jax", 1e-3))
    result = call("records/made/jax-0.json", "records/made/jax-1.json")
    assert result.exit_code == 0
    assert "1 undecided." in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing", "made"], "nothing: there is no such file or folder, and no study of that name in records (made)"),
        (["made?engine=torch", "made"], "made?engine=torch: no readable record is there that is so"),
        (["made?colour=red", "made"], "there is no 'colour' to choose by; use model, engine"),
        (["made?torch", "made"], "'torch' chooses nothing; write it as name=value"),
        (["made", "made", "--json", "--markdown"], "--json and --markdown: give one of them"),
        (["empty", "made"], "empty: no readable record is there"),
    ],
)
def test_a_bad_request_is_one_message_and_exit_code_2(call: Call, words: list[str], said: str) -> None:
    keep("records", made.runs("jax", 1e-3))
    Path("empty").mkdir()
    result = call(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_cells_are_chosen_by_their_coordinates(call: Call) -> None:
    keep("records", [*made.runs("jax", 1e-3), *made.runs("torch", 2e-3), *made.runs("keras-jax", 2e-3)])
    result = call("made?engine=torch", "made?engine=j*&task=train", "--across", "engine", "--json")
    answer = json.loads(result.stdout)
    assert answer["counts"] == {"faster": 1}
    assert answer["differs"][0] == {"what": "engine", "base": "torch", "new": "jax"}


def test_the_json_answer_holds_everything(call: Call) -> None:
    keep("records", made.study())
    keep("later", [*made.runs("jax", 1.2e-3, start=4.0), *made.runs("torch", 2e-3), made.missing()])
    Path("later/made/half.json").write_text("{")
    result = call("made", "later", "--json", "--fail-if", "slower > 3%", "--fail-if", "undecided")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["answer"] == "1 slower, 1 undecided, 1 not measured, 4 only in BASE."
    assert (answer["forced"], answer["banner"], answer["floor"], answer["floors"]) == (False, "", 0.01, [])
    assert [one["passed"] for one in answer["gate"]] == [False, False]
    assert answer["gate"][0]["shown_by"][0]["engine"] == "jax"
    assert answer["left_out"] == [{"path": "later/made/half.json", "reason": "not whole JSON: half written or damaged"}]
    jax = next(one for one in answer["cells"] if one["engine"] == "jax")
    assert jax["state"] == "slower"
    assert jax["speedup"]["value"] == pytest.approx(1 / 1.2)
    assert jax["memory_ratio"]["value"] == pytest.approx(1.0)
    assert jax["base"]["seconds"] == pytest.approx([0.995e-3, 1e-3, 1.005e-3])
    absent = next(one for one in answer["cells"] if one["engine"] == "tensorflow")
    assert (absent["state"], absent["base"]["outcome"], absent["base"]["remedy"]) == (
        "not measured", "missing", "timetrial engines add tensorflow",
    )  # fmt: skip


def test_undecided_passes_and_that_is_said(call: Call) -> None:
    keep("records", made.runs("jax", 1e-3))
    keep("later", made.runs("jax", 1.01e-3))
    result = call("made", "later", "--fail-if", "slower > 3%")
    assert result.exit_code == 0
    assert "Gate 'slower > 3%': passed." in result.stdout
    assert "1 cell is undecided, and undecided passes" in result.stdout
    assert call("made", "later", "--fail-if", "undecided").exit_code == 1


@pytest.mark.parametrize("how", [(), ("--markdown",), ("--json",)])
def test_what_is_forced_stands_under_a_banner_in_every_output(call: Call, how: tuple[str, ...]) -> None:
    keep("records", made.runs("jax", 1e-3))
    keep("elsewhere", made.runs("jax", 1e-3, machine="other"))
    result = call("made", "elsewhere", "--force", *how)
    assert result.exit_code == 0
    flat = " ".join(result.stdout.split())
    assert "FORCED: these are not comparable, the ratios may mean nothing." in flat
    assert "machine: 0123456789abcdef in BASE, other in NEW" in flat
    assert not how or how == ("--markdown",) or json.loads(result.stdout)["forced"] is True


def test_markdown_answers_first_and_lets_nothing_through(call: Call) -> None:
    keep("records", made.study())
    keep("later", made.study())
    result = call("made", "later", "--markdown", "--fail-if", "failed")
    assert result.exit_code == 1
    text = result.stdout
    assert text.startswith("**4 undecided, 3 not measured.** NEW (later) against BASE (made).\n")
    assert "<script" not in text and "<img" not in text
    assert "\\| " not in text.splitlines()[4]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 7
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1


def test_the_terminal_answers_first(call: Call) -> None:
    keep("records", made.runs("jax", 1e-3))
    keep("later", made.runs("jax", 1.2e-3))
    said = call("made", "later").stdout.splitlines()
    assert said[0] == "NEW (later) against BASE (made)"
    assert said[1] == "1 slower."
    assert any(line.startswith("The speed-up is the time of BASE over the time of NEW: above 1") for line in said)
