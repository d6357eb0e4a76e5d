"""The command line: answers, exit codes, one message a mistake, JSON that parses, and a quick start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner, Result

from tests.faults import bench
from tests.unit.test_store import FULL, record
from timetrial import __version__
from timetrial.cli import shared
from timetrial.cli.loading import ZooResolver, changed, open_study, trials_of
from timetrial.cli.main import app
from timetrial.engines import environments, locate
from timetrial.records.store import Store
from timetrial.spec.study import parse_study

ROOT = Path(__file__).parents[2]
Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A command in an empty folder, with the fake engines and plans of milliseconds."""
    bench.install(monkeypatch.setattr)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TIMETRIAL_RECORDS", raising=False)
    monkeypatch.delenv("TIMETRIAL_DEBUG", raising=False)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def strict(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def written(folder: Path, name: str = "study.yaml", **changes: Any) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump({**bench.STUDY, **changes}))
    return path


# --- mistakes -----------------------------------------------------------------------------------------------------------

WIDE = {"name": "wide", "input": {"shape": [4, 4, 1]}, "layers": [{"conv2d": {"filters": 2, "kernel": 5}}]}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"study: [", "study.yaml, line 1, column 9: not valid YAML"),
        (b"", "study.yaml: a study is a list of `key: value` lines"),
        (b"\x89PNG\r\n\x1a\n\xff\xff", "study.yaml: is not a text file in UTF-8"),
        ({"engins": ["honest"]}, "study.yaml: 'engins' is not a key here; did you mean 'engines'?"),
        (
            {"networks": [WIDE]},
            "networks.0: layer 'conv2d_1': a window of 5 does not fit into a height of 4; use a smaller window",
        ),
        ({"engines": ["pytorch"]}, "there is no engine 'pytorch'; did you mean 'torch'?"),
        ({"engines": ["torch@latest"]}, "'latest' in 'torch@latest' is no version; write the engine as torch@1.2.3"),
        ({"recipe": {"batch": -5}}, "recipe: 'batch': input should be greater than 0, not -5"),
        ({"models": ["quick/cnnn"]}, "there is no model 'quick/cnnn'; did you mean 'quick/cnn'"),
        ({"data": "fashion"}, "there is no dataset 'fashion'; did you mean 'fashion-mnist' or 'fashion-mnist-6000'"),
        ({"placements": ["gpu"]}, "'gpu' is not a placement; write cpu, cpu:THREADS, cpu:FIRST-LAST or cuda:INDEX"),
        ({"exclude": [{"colour": "red"}]}, "exclude: there is no 'colour'; use model, engine"),
        ({"exclude": [{"engine": "*"}]}, "nothing is left to run after its exclusions"),
    ],
)
def test_a_bad_study_is_one_message_and_exit_code_2(
    call: Call, tmp_path: Path, command: str, content: Any, said: str
) -> None:
    if isinstance(content, bytes):
        (tmp_path / "study.yaml").write_bytes(content)
    else:
        written(tmp_path, **content)
    result = call(command, "study.yaml")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("timetrial: study.yaml")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize("command", ["plan", "run"])
def test_every_line_of_a_message_names_the_file_and_what_the_command_line_changed(
    call: Call, tmp_path: Path, command: str
) -> None:
    written(tmp_path, recipe={"batch": -5, "epochs": -1})
    lines = call(command, "study.yaml").stderr.removeprefix("timetrial: ").splitlines()
    assert len(lines) == 2
    assert all(line.startswith("study.yaml: recipe: ") for line in lines)
    written(tmp_path)
    told = call(command, "study.yaml", "-e", "torhc", "--repeat", "3").stderr
    assert told.startswith(
        "timetrial: study.yaml with --engine, --repeat: there is no engine 'torhc'; did you mean 'torch'"
    )
    built_in = call(command, "quick", "-e", "torhc").stderr
    assert built_in.startswith("timetrial: there is no engine 'torhc'")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.yaml", "nothing.yaml: cannot be read (No such file or directory)"),
        ("nothing", "there is no study 'nothing': give a .yaml file or one of "),
        ("folder", "folder: cannot be read (Is a directory)"),
        ("x" * 5000, "there is no study 'xxx"),
    ],
)
def test_a_study_that_is_not_there_is_one_message(call: Call, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    result = call("plan", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["models", "show", "quick/cnnn"], 2, "there is no model 'quick/cnnn'; did you mean 'quick/cnn'"),
        (["models", "show", "quick/cnn?a=1"], 2, "'quick/cnn' has no option 'a'"),
        (["verify", "-m", "quick/mlp", "-e", "torchh"], 2, "there is no engine 'torchh'; did you mean 'torch'"),
        (["verify", "-m", "nothing", "-e", "honest"], 2, "there is no model 'nothing'"),
        (["verify", "-m", "quick/mlp", "-e", "honest", "--precision", "float8"], 2, "'precision'"),
        (["verify", "-m", "quick/mlp", "-e", "honest", "-p", "tpu"], 2, "'tpu' is not a placement"),
        (["verify", "-m", "quick/mlp", "-e", "honest", "--loop", "for"], 2, "'settings.loop'"),
        (["engines", "add", "tensorflo"], 2, "there is no engine 'tensorflo'; did you mean 'tensorflow'?"),
        (["engines", "doctor", "nobody"], 2, "there is no engine 'nobody'"),
        (["show"], 1, "there are no records yet; `timetrial quick` makes the first"),
        (["show", "--records", __file__], 2, f"{__file__}: is no folder; --records names"),
        (["show", "quick", "--records", __file__], 2, f"{__file__}: is no folder; --records names"),
        (["show", "nothing"], 2, "there are no records of a study 'nothing' (there are: none yet)"),
        (["show", "--sql", "SELECT 1 FROM runs"], 1, "there are no records to query yet"),
        (["quick", "-e", "nobody"], 2, "there is no engine 'nobody'"),
        (
            ["plan", "quick", "--profile", "fast"],
            2,
            "command line: 'profile': input should be 'quick', 'normal' or 'publish'",
        ),
        (["plan", "quick", "-m", "nothing"], 2, "there is no model 'nothing'"),
    ],
)
def test_a_wrong_word_is_one_message(call: Call, words: list[str], code: int, said: str) -> None:
    result = call(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "words", [["nothing"], ["plan"], ["plan", "quick", "--nothing"], ["plan", "quick", "--repeat", "0"], ["verify"]]
)
def test_a_wrong_command_or_option_is_exit_code_2(call: Call, words: list[str]) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert "Usage" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "timetrial"]
    told = [
        subprocess.run([*command, *debug, "plan", "nothing.yaml"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        for debug in ([], ["--debug"])
    ]  # fmt: skip
    assert told[0].returncode == 2
    assert "Traceback" not in told[0].stderr
    assert told[1].returncode != 0
    assert "Traceback" in told[1].stderr
    assert "StudyError" in told[1].stderr


def test_a_full_disk_anywhere_is_a_message_with_its_remedy(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/somewhere/file")

    monkeypatch.setattr("timetrial.cli.loading.open_study", full)
    result = call("plan", "quick")
    assert result.exit_code == 1
    assert (
        result.stderr
        == "timetrial: /somewhere/file: the disk is full; free some space and give the same command again\n"
    )


def test_an_interruption_is_exit_code_130(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("timetrial.cli.loading.open_study", interrupt)
    result = call("run", "quick")
    assert result.exit_code == 130
    assert "the same command goes on from there" in result.stderr


# --- answers ------------------------------------------------------------------------------------------------------------


def test_a_study_is_planned_run_shown_and_run_no_more(call: Call, tmp_path: Path) -> None:
    written(tmp_path, engines=["honest", "slowlaps"], repeat=2)
    planned = call("plan", "study.yaml")
    assert planned.exit_code == 0
    assert "2 trials x 2 processes = 4 runs" in planned.stdout
    assert not (tmp_path / "records").exists()
    ran = call("run", "study.yaml")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stderr.count("a step\n") == 4
    assert "[4/4]" in ran.stderr
    assert "honest is fastest with" in ran.stdout
    assert "proved" in ran.stdout
    again = call("run", "study.yaml")
    assert again.exit_code == 0
    assert "4 runs are already measured and are kept" in again.stderr
    shown = call("show", "faults")
    assert shown.exit_code == 0
    assert shown.stdout == again.stdout == ran.stdout
    assert call("show").stdout == "faults: 4 runs\n"
    fresh = call("run", "study.yaml", "--fresh", "--repeat", "1")
    assert "already measured" not in fresh.stderr
    assert fresh.stderr.count("a step\n") == 2


def test_run_without_running(call: Call, tmp_path: Path) -> None:
    written(tmp_path)
    assert call("run", "study.yaml", "--dry-run").stdout == call("plan", "study.yaml").stdout
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    ("engines", "code"), [(["honest"], 0), (["honest", "raises"], 1), (["raises"], 1), (["honest", "noconvolution"], 0), (["noconvolution"], 1), (["honest", "wronggradient"], 1)]
)  # fmt: skip
def test_the_exit_code_says_whether_something_failed(call: Call, tmp_path: Path, engines: list[str], code: int) -> None:
    written(tmp_path, engines=engines)
    result = call("run", "study.yaml")
    assert result.exit_code == code
    for engine in engines:
        assert engine in result.stdout


def test_failures_are_rows_with_their_reason(call: Call, tmp_path: Path) -> None:
    written(tmp_path, engines=["honest", "raises", "otherpadding"])
    result = call("run", "study.yaml")
    assert "raises: crash  RuntimeError: the kernel could not be launched" in result.stdout
    assert "`timetrial engines doctor raises` tries the engine alone" in " ".join(result.stdout.split())
    assert "otherpadding: wrong  differs from the reference first in the output of layer conv2d_1" in result.stdout


def test_the_command_line_narrows_a_study(call: Call, tmp_path: Path) -> None:
    written(tmp_path, engines=["honest", "slowlaps"], models=["quick/mlp"], samples=64)
    whole = strict(call("plan", "study.yaml", "--json").stdout)
    assert {(t["model"], t["engine"]) for t in whole["trials"]} == {
        (m, e) for m in ("quick/mlp", "tiny") for e in ("honest", "slowlaps")
    }
    for options, expected in (
        (["-e", "honest"], {("quick/mlp", "honest"), ("tiny", "honest")}),
        (["-m", "tiny", "-e", "honest"], {("tiny", "honest")}),
        (["-m", "quick/mlp", "-e", "slowlaps"], {("quick/mlp", "slowlaps")}),
        (["-m", "quick/lstm", "-m", "tiny", "-e", "honest"], {("quick/lstm", "honest"), ("tiny", "honest")}),
    ):
        result = call("plan", "study.yaml", "--json", *options)
        assert result.exit_code == 0, result.stderr
        assert {(t["model"], t["engine"]) for t in strict(result.stdout)["trials"]} == expected
    assert strict(call("plan", "study.yaml", "--json", "--repeat", "7").stdout)["runs"] == 28


def test_a_narrowed_study_has_the_trials_of_the_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then are their records found again."""
    bench.install(monkeypatch.setattr)
    whole = open_study(str(written(tmp_path, engines=["honest", "slowlaps"])))
    narrow = changed(whole, engines=["honest"], repeat=2)
    assert {t.id for t in trials_of(narrow)} < {t.id for t in trials_of(whole)}
    assert changed(whole, engines=None, repeat=None) is whole


def test_every_command_has_help_and_every_option_a_word(call: Call) -> None:
    def walk(command: click.Command, path: list[str]) -> None:
        result = call(*path, "--help")
        assert result.exit_code == 0
        assert command.help, path
        for parameter in command.params:
            if parameter.name not in ("help", "seed", "install_completion", "show_completion") and isinstance(
                parameter, click.Option
            ):
                assert parameter.help, (path, parameter.name)
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, [*path, name])

    walk(get_command(app), [])


def test_the_version(call: Call) -> None:
    assert call("--version").stdout == f"timetrial {__version__}\n"


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_json_of_plan_run_and_show(call: Call, tmp_path: Path) -> None:
    written(tmp_path, engines=["honest", "raises", "noupdate"], repeat=2)
    planned = strict(call("plan", "study.yaml", "--json").stdout)
    assert (planned["study"], planned["runs"], len(planned["trials"])) == ("faults", 6, 3)
    assert planned["expected_seconds"] > 0
    ran = call("run", "study.yaml", "--json")
    assert ran.exit_code == 1
    (group,) = strict(ran.stdout)["groups"]
    rows = {row["engine"]: row for row in group["rows"]}
    assert rows["honest"]["fastest"] is True
    assert rows["honest"]["step"]["low"] <= rows["honest"]["step"]["value"] <= rows["honest"]["step"]["high"]
    assert rows["raises"]["outcome"]["kind"] == "crash"
    assert rows["noupdate"]["step"] is None
    assert rows["noupdate"]["equivalence"]["passed"] is False
    shown = call("show", "faults", "--json")
    assert strict(shown.stdout)["groups"] == strict(ran.stdout)["groups"]
    assert strict(call("show", "--json").stdout) == {"faults": 4}  # what failed is not tried again


def test_files_that_are_no_records_are_counted_and_named_where_studies_are_listed(call: Call, tmp_path: Path) -> None:
    store = Store(tmp_path / "records")
    store.write(record(study="good"))
    for name in ("good", "bad"):
        (tmp_path / "records" / name).mkdir(exist_ok=True)
        (tmp_path / "records" / name / "half.json").write_text('{"run"')
    (tmp_path / "records" / "bad" / "other.json").write_text("[]")
    shown = call("show")
    assert shown.exit_code == 0
    assert shown.stdout == "bad: 0 runs, 2 files that are no records\ngood: 1 run, 1 file that is no record\n"
    lines = shown.stderr.splitlines()
    assert lines == call("show", "--json").stderr.splitlines()
    assert lines[0] == "records/bad/half.json: left out, not whole JSON: half written or damaged"
    assert [line.partition(":")[0] for line in lines[1:]] == ["records/bad/other.json", "records/good/half.json"]
    assert strict(call("show", "--json").stdout) == {"bad": 0, "good": 1}


def test_json_of_show_without_records_is_an_empty_object(call: Call) -> None:
    assert strict(call("show", "--json").stdout) == {}


def test_json_of_quick(call: Call) -> None:
    result = call("quick", "-e", "honest", "-m", "quick/mlp", "--repeat", "1", "--json")
    assert result.exit_code == 0, result.stderr
    answer = strict(result.stdout)
    assert answer["study"] == "quick"
    assert [row["engine"] for row in answer["groups"][0]["rows"]] == ["honest"]
    assert answer["groups"][0]["rows"][0]["accuracy"] > 0.5


def test_json_of_verify_even_where_nothing_agrees(call: Call) -> None:
    """An error without bound is no number in JSON."""
    result = call("verify", "-m", "quick/mlp", "-e", "honest", "-e", "forgetslayer", "--json")
    assert result.exit_code == 1, result.stderr
    good, bad = strict(result.stdout)
    assert (good["outcome"]["kind"], bad["outcome"]["kind"]) == ("ok", "wrong")
    (missing,) = [check for check in bad["checks"] if check["note"] == "missing"]
    assert missing == {"stage": "activation", "name": "dense_1", "error": None, "tolerance": 1e-4, "note": "missing"}
    assert good["summary"]["passed"] is True
    assert {check["stage"] for check in good["checks"]} == {"activation", "output", "loss", "gradient", "step"}
    assert good["checks"][0]["error"] == 0.0


def test_verify_without_json_shows_every_array_when_asked(call: Call) -> None:
    plain = call("verify", "-m", "quick/mlp", "-e", "honest")
    assert plain.exit_code == 0, plain.stderr
    assert "same function" in plain.stdout
    full = call("verify", "-m", "quick/mlp", "-e", "honest", "--layers")
    for name in ("dense_1/kernel", "dense_3/bias", "losses"):
        assert name in full.stdout
        assert name not in plain.stdout


def test_among_all_engines_one_that_cannot_is_no_failure(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = tuple(locate.locate(name) for name in ("honest", "noconvolution"))
    monkeypatch.setattr(locate, "installed", lambda: everyone)
    together = call("verify", "-m", "quick/cnn", "-e", "all")
    assert together.exit_code == 0, together.stderr
    assert "unsupported" in together.stdout
    assert call("verify", "-m", "quick/cnn", "-e", "noconvolution").exit_code == 1


def test_json_of_models_engines_and_doctor(call: Call) -> None:
    models = strict(call("models", "list", "--json").stdout)
    assert {"name", "study", "summary", "dataset"} == set(models[0])
    assert "quick/cnn" in strict(call("models", "list", "quick", "--json").stdout)
    model = strict(call("models", "show", "quick/mlp", "--json").stdout)
    assert model["parameters"] == 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10
    assert len(model["network"]["layers"]) == 4
    engines = {engine["engine"]: engine for engine in strict(call("engines", "list", "--json").stdout)}
    assert engines["reference"]["found"] == "beside"
    assert {"engine", "version", "found", "interpreter", "versions", "problem", "remedy"} == set(engines["torch"])
    machine = strict(call("doctor", "--json").stdout)
    assert len(machine["fingerprint"]) == 16
    assert {"cpu", "memory", "limits", "software", "engines", "grade"} <= set(machine)
    assert machine["grade"]["colour"] in ("green", "amber", "red")
    assert {"name", "colour", "found", "remedy", "usable"} == set(machine["grade"]["points"][0])
    (health,) = strict(call("engines", "doctor", "reference", "--json").stdout)
    assert (health["name"], health["ok"]) == ("reference", True)


def test_json_of_engines_that_are_added_and_removed(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = environments.Environment(
        "jax", tmp_path / "jax", tmp_path / "jax/bin/python", "3.11.2", {"jax": "0.10.2"}, ("jax",),
        {"keras-jax": ("keras is broken", "make it again")},
    )  # fmt: skip
    monkeypatch.setattr(environments, "add", lambda name, say, *rest: (say("making it"), made)[1])
    monkeypatch.setattr(environments, "lacking", lambda name, python: "too old a machine" if name == "torch" else None)
    monkeypatch.setattr(environments, "remove", lambda name, say: ("jax", "keras-jax"))
    added = call("engines", "add", "jax", "torch", "--if-possible", "--json")
    assert added.exit_code == 0
    assert "torch: SKIPPED; too old a machine" in added.stderr
    assert strict(added.stdout) == [
        {
            "name": "jax", "environment": "jax", "folder": str(tmp_path / "jax"), "interpreter": str(tmp_path / "jax/bin/python"),
            "python": "3.11.2", "versions": {"jax": "0.10.2"}, "serves": ["jax"],
            "broken": {"keras-jax": {"problem": "keras is broken", "remedy": "make it again"}}, "skipped": None,
        },
        {"name": "torch", "skipped": "too old a machine"},
    ]  # fmt: skip
    assert "keras is broken → make it again" in added.stderr
    removed = call("engines", "remove", "jax", "--json")
    assert strict(removed.stdout) == [{"name": "jax", "removed": ["jax", "keras-jax"]}]
    assert call("engines", "remove", "jax").stdout == ""
    assert call("engines", "add", "jax").stdout == f"jax: jax in {tmp_path / 'jax'}\n"


def test_the_doctor_answers_first_and_gives_reasons_then(call: Call) -> None:
    done = call("doctor")
    assert done.exit_code == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("Machine: ") and "for measuring" in first
    assert any(line.startswith("canary, computing") for line in rest)
    assert any(line.startswith("processor") for line in rest)


def test_numbers_that_are_none_are_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    shared.print_json(
        {"a": float("nan"), "b": [float("inf"), 1.5, {"c": -float("inf")}], "d": FULL, "e": Path("x"), "f": (1, None)}
    )
    answer = strict(capsys.readouterr().out)
    assert (answer["a"], answer["b"], answer["e"], answer["f"]) == (None, [None, 1.5, {"c": None}], "x", [1, None])
    assert answer["d"]["run"] == "full-01"


# --- what is shown from records -----------------------------------------------------------------------------------------


def test_show_names_what_it_leaves_out_and_shows_the_rest(call: Call, tmp_path: Path) -> None:
    written(tmp_path)
    call("run", "study.yaml")
    (tmp_path / "records" / "faults" / "foreign.json").write_text("{")
    (tmp_path / "records" / "faults" / "folder.json").mkdir()
    result = call("show", "faults")
    assert result.exit_code == 0
    assert "foreign.json: left out, not whole JSON: half written or damaged" in result.stderr
    assert "folder.json: left out, Is a directory" in result.stderr
    assert "honest" in result.stdout


def test_show_of_nothing_readable_is_a_failure(call: Call, tmp_path: Path) -> None:
    (tmp_path / "records" / "s").mkdir(parents=True)
    (tmp_path / "records" / "s" / "a.json").write_text("")
    result = call("show", "s")
    assert result.exit_code == 1
    assert "holds no readable record" in result.stderr


def test_sql_and_csv(call: Call, tmp_path: Path) -> None:
    store = Store(tmp_path / "records")
    for number in range(3):
        store.write(record(f"{number}-00"))
    found = call("show", "--sql", "SELECT count(*) AS runs, min(run) FROM runs")
    assert found.exit_code == 0
    assert "3" in found.stdout
    bad = call("show", "--sql", "SELEC nothing")
    assert bad.exit_code == 2
    assert "Traceback" not in bad.stderr
    assert call("show", "s", "--csv", tmp_path / "runs.csv").exit_code == 0
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 4


def test_the_folder_of_the_records_may_stand_in_the_environment(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path / "elsewhere").write(record())
    monkeypatch.setenv("TIMETRIAL_RECORDS", str(tmp_path / "elsewhere"))
    assert call("show").stdout == "s: 1 run\n"
    assert call("show", "--records", tmp_path / "nowhere").exit_code == 1


def test_models_by_words_and_layer_by_layer(call: Call) -> None:
    names = call("models", "list", "libraries", "mlp-2").stdout.split()
    assert "libraries/mlp-2x25" in names
    assert all(name.startswith("libraries/mlp-2") for name in names)
    shown = call("models", "show", "quick/mlp")
    for words in ("dense_1", "235,146 parameters", "batch 64", "data: fashion-mnist-6000, preprocessing: scale"):
        assert words in shown.stdout


# --- quick to start -----------------------------------------------------------------------------------------------------


def imported(*words: str) -> set[str]:
    body = (
        "import sys; sys.argv[0] = 'timetrial'\n"
        "from timetrial.cli.main import run_app\n"
        "try: run_app()\n"
        "except SystemExit: pass\n"
        "print('|' + ' '.join(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", body, *words], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("|")[2].split())


HEAVY = {"numpy", "pydantic", "scipy", "pandas", "duckdb", "altair", "yaml", "rich.table", "rich.progress", "psutil"}
DRAWING = {"rich.table"}  # Typer draws help with it
TYPERS_OWN = DRAWING | {"pydantic"}  # newer ones read arguments with it where it is installed


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["--version"], set()),
        (["--help"], DRAWING),
        (["run", "--help"], TYPERS_OWN),
        (["engines", "--help"], TYPERS_OWN),
        (["profile", "--help"], TYPERS_OWN),
        (["profile", "show", "--help"], TYPERS_OWN),
    ],
)
def test_help_loads_nothing_heavy(words: list[str], allowed: set[str]) -> None:
    assert imported(*words) & HEAVY <= allowed


def test_help_shows_the_example_whole(call: Call) -> None:
    """Square brackets are markup to what draws the help."""
    shown = call("run", "--help").stdout
    assert "models: [libraries/mlp-2x25, libraries/mlp-2x200]" in shown
    assert "engines: [torch, jax]" in shown


def test_the_commands_are_imported_without_anything_heavy() -> None:
    body = "import sys, timetrial.cli.main; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", body], env=environment, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY == set()


@pytest.mark.parametrize(
    "words", [["plan", "quick"], ["models", "list"], ["engines", "list"], ["run", "quick", "--dry-run"]]
)
def test_no_command_that_measures_nothing_loads_a_framework(words: list[str]) -> None:
    assert imported(*words) & {"torch", "tensorflow", "jax", "keras", "duckdb", "pandas", "altair", "scipy"} == set()


def test_a_study_of_1408_trials_is_planned_in_a_moment(tmp_path: Path, call: Call) -> None:
    """The networks of a whole published study: 32 of them, on 4 engines and 11 placements."""
    models = [f"libraries/mlp-{layers}x{neurons}" for layers in (2, 4, 8, 16) for neurons in (25, 50, 100, 200, 400)]
    models += [f"libraries/cnn-{layers}x{maps}" for layers in (1, 2) for maps in (2, 4, 8, 16, 32, 64)]
    engines = ["torch", "tensorflow", "jax", "keras-torch"]
    placements = [*(f"cpu:{threads}" for threads in range(1, 11)), "cuda:0"]
    study = written(tmp_path, networks=[], models=models, engines=engines, placements=placements, repeat=5, recipe={})
    before = time.process_time()
    result = call("plan", study, "--json")
    spent = time.process_time() - before
    answer = strict(result.stdout)
    assert len(answer["trials"]) == 1408
    assert answer["runs"] == 7040
    assert len({trial["trial"] for trial in answer["trials"]}) == 1408
    assert spent < 2.0


def test_the_resolver_finds_what_the_zoo_has() -> None:
    found = ZooResolver().resolve("quick/mlp", {})
    assert (found.samples, found.recipe.batch, found.network.name) == (5000, 64, "quick/mlp")
    own = parse_study({"study": "s", "models": ["quick/mlp"], "engines": ["torch"]}, "here")
    assert trials_of(own)[0].network == found.network
