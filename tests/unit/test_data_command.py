"""`timetrial data`, and studies over real data."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.unit import made_files as made
from tests.unit.test_cli import Call, call, strict, written
from timetrial.data import registry
from timetrial.data.sources import Remote, Web

__all__ = ["call"]  # the fixture


def rows(folder: Path, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_text("a,b,kind\n" + "".join(f"{n},{n % 5},{'xy'[n % 2]}\n" for n in range(40)))
    return path


def test_the_list_says_what_is_here_and_what_is_not(call: Call, tmp_path: Path) -> None:
    assert call("data", "import", "mine", rows(tmp_path), "--licence", "CC0").exit_code == 0
    listed = call("data", "list")
    assert (listed.exit_code, "shuttle-8" in listed.stdout) == (0, True)
    answer = {row["name"]: row for row in strict(call("data", "list", "--json").stdout)}
    here = {name: row["here"] for name, row in answer.items()}
    assert (here["mine"], here["mnist"], here["norb"]) == ("yes", "get", "import")
    assert (here["fashion-mnist-6000"], here["synthetic"]) == ("built in", "computed")
    assert (answer["mine"]["train"], answer["mine"]["licence"], answer["mine"]["classes"]) == (32, "CC0", 2)
    assert answer["cifar10"]["download"] == 170_052_171
    assert answer["norb"]["download"] is None


def test_the_list_has_the_grids_of_sensors_too(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def here() -> dict[str, str]:
        return {row["name"]: row["here"] for row in strict(call("data", "list", "--json").stdout)}

    for variable in ("TIMETRIAL_OAHU", "TIMETRIAL_HOPE_MELPITZ"):
        monkeypatch.delenv(variable, raising=False)
    before = here()
    assert [before[name] for name in ("solar-synthetic", "hope-melpitz", "oahu")] == [
        "computed",
        "your file",
        "your file",
    ]
    monkeypatch.setenv("TIMETRIAL_OAHU", str(tmp_path))
    assert here()["oahu"] == "yes"


def test_a_grid_of_sensors_is_shown(call: Call, tmp_path: Path) -> None:
    shown = call("data", "show", "solar-synthetic?days=1&sensors=4&horizon=30")
    assert shown.exit_code == 0
    for words in (
        "grid: 4 sensors, ",
        "target: sensor ",
        ", 30 s ahead; ",
        "x_train: ",
        "x4 float32, 0 to 1, seen 2010-08-01",
    ):
        assert words in shown.stdout
    sheet = call("data", "show", "solar-synthetic", "--picture", tmp_path / "sheet.png")
    assert (sheet.exit_code, "holds no pictures" in sheet.stderr) == (2, True)


def test_a_study_over_a_grid_that_is_not_here_stops_before_it_begins(call: Call, tmp_path: Path) -> None:
    study = tmp_path / "grid.yaml"
    study.write_text("{study: s, models: solar/pyramid-50, engines: torch, data: oahu}")
    stopped = call("run", study, "--records", tmp_path / "records")
    assert (stopped.exit_code, "set TIMETRIAL_OAHU to its file or folder" in stopped.stderr) == (2, True)
    assert not (tmp_path / "records").exists()


def test_import_show_and_remove(call: Call, tmp_path: Path) -> None:
    done = call("data", "import", "mine", rows(tmp_path))
    assert (done.exit_code, done.stdout.partition(",")[0]) == (0, "mine: 32 + 8 samples")
    shown = call("data", "show", "mine").stdout
    for words in ("x_train: 32x2 float32, 0 to 39", "y_test: 8 int32, 0 to 1", "licence: not stated", "1. "):
        assert words in shown
    answer = strict(call("data", "show", "mine", "--json").stdout)
    assert answer["classes"] == {"x": [16, 4], "y": [16, 4]}
    assert call("data", "remove", "mine").stdout == "mine: removed\n"
    gone = call("data", "remove", "mine")
    assert (gone.exit_code, "there is no dataset 'mine'" in gone.stderr) == (2, True)
    assert not (tmp_path / "home" / "data" / "mine").exists()


def test_pictures_are_drawn_and_saved(call: Call, tmp_path: Path) -> None:
    made.pictures(tmp_path / "pets", ("cat", "dog"), 40)
    assert call("data", "import", "pets", tmp_path / "pets", "--size", "4x6", "--test", "0.5", "--grey").exit_code == 0
    shown = call("data", "show", "pets", "--picture", tmp_path / "sheet.png")
    assert "1. cat\n" in shown.stdout
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert (sheet.size, sheet.mode) == ((69, 24), "L")
    wrong = call("data", "show", "pets", "--picture", tmp_path / "sheet.jpg")
    assert (wrong.exit_code, "end its name with .png" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(("words", "said"), [
    (["data", "get", "zebra"], "there is no dataset 'zebra'"),
    (["data", "get", "synthetic"], "dataset 'synthetic' needs no fetching"),
    (["data", "get", "norb"], "cannot be fetched: download the -dat.mat"),
    (["data", "get", "oahu"], "set TIMETRIAL_OAHU to its file or folder, or put it at "),
    (["data", "show", "hope-melpitz"], "set TIMETRIAL_HOPE_MELPITZ to its file, or put it at "),
    (["data", "import", "oahu", "rows.csv"], "'oahu' is not imported: get it ("),
    (["data", "import", "grids", "rows.csv"], "'grids' cannot name a dataset"),
    (["data", "show", "mnist"], "`timetrial data get mnist` brings it, or use 'synthetic:mnist'"),
    (["data", "show", "synthetic:mnist"], "computed for each network"),
    (["data", "remove", "mnist"], "dataset 'mnist' is not in the data folder"),
    (["data", "import", "mine", "nowhere.csv"], "nowhere.csv: is not there"),
    (["data", "import", "mine", "rows.csv", "--size", "big"], "write rows and columns, as in 148x197"),
    (["data", "import", "mine", "rows.csv", "--target", "c"], "has no column 'c'; it has a, b, kind"),
    (["data", "import", "mine", "rows.csv", "--grey"], "the format 'table' has no option grey; it has target, test, numeric"),
    (["data", "import", "mnist", "rows.csv", "--grey"], "the format 'idx' has no option grey; it has none"),
    (["data", "import", "mine", "rows.csv", "--test", "1.5"], "a share of 1.5 for the test is not between 0 and 1"),
])  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(call: Call, tmp_path: Path, words: list[str], said: str) -> None:
    rows(tmp_path)
    result = call(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_no_network_is_exit_code_1_and_says_what_to_do(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    away = Web((Remote("http://127.0.0.1:9/train-images-idx3-ubyte.gz"),))
    monkeypatch.setitem(registry.every(), "mnist", replace(registry.every()["mnist"], sources=(away,)))
    result = call("data", "get", "mnist")
    assert result.exit_code == 1
    first, *_, last = result.stderr.strip().splitlines()
    assert first.startswith("mnist: handwritten digits in grey; licence: stated")
    assert "cannot be fetched" in result.stderr
    assert "the same command goes on; or get it by hand" in last


def test_a_full_disk_is_a_message(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rows(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = call("data", "import", "mine", path)
    assert (result.exit_code, "the disk is full" in result.stderr) == (1, True)
    assert [entry.name for entry in (tmp_path / "home" / "data").iterdir()] == [".mine.lock"]


# --- studies ----------------------------------------------------------------------------------------------------------


def test_a_study_over_own_data_and_a_share_of_it(call: Call, tmp_path: Path) -> None:
    call("data", "import", "mine", rows(tmp_path))
    layers = [{"dense": {"units": 2, "activation": "softmax"}}]
    networks = [{"name": "two", "input": {"shape": [2]}, "layers": layers}]
    study = written(tmp_path, networks=networks, data="mine", samples="75%", recipe={"batch": 4})
    result = call("run", study, "--records", "records")
    assert result.exit_code == 0, result.stderr
    prepared = list(tmp_path.glob("records/**/x_train.npy"))
    assert [np.load(path).shape for path in prepared] == [(24, 2)]


def test_missing_data_stop_a_study_before_it_begins(call: Call, tmp_path: Path) -> None:
    study = written(tmp_path, data="cifar-10")
    result = call("run", study, "--records", "records")
    assert result.exit_code == 2
    assert "dataset 'cifar10' is not on this machine; `timetrial data get cifar10` brings it" in result.stderr
    assert not (tmp_path / "records").exists()
    assert call("plan", study).exit_code == 0  # planning needs none


def test_default_is_each_models_own_dataset(call: Call, tmp_path: Path) -> None:
    models = ["backends/cnn-softmax", "libraries/cnn-1x2", "quick/mlp"]
    study = written(tmp_path, networks=[], models=models, data="default", recipe={})
    answer = strict(call("plan", study, "--json").stdout)
    found = {trial["model"]: trial["dataset"] for trial in answer["trials"]}
    assert found == dict(zip(models, ("mnist", "cifar10", "fashion-mnist-6000"), strict=True))
    result = call("run", study)
    assert "`timetrial data get mnist`" in result.stderr
    own = written(tmp_path, data="default")
    result = call("plan", own)
    assert (result.exit_code, "has none; name one" in result.stderr) == (2, True)


def test_two_names_of_a_dataset_are_the_same_trials(call: Call, tmp_path: Path) -> None:
    plans = [call("plan", written(tmp_path, data=name), "--json").stdout for name in ("cifar10", "cifar-10")]
    assert plans[0] == plans[1]
    assert json.loads(plans[0])["trials"][0]["dataset"] == "cifar10"


@pytest.mark.parametrize("samples", ["0%", "101%", "a third", "-5%", 0, 1.5, True])
def test_a_share_that_is_none(call: Call, tmp_path: Path, samples: object) -> None:
    result = call("plan", written(tmp_path, samples=samples))
    assert result.exit_code == 2
    assert "samples: give a number above 0, or a share of the training samples such as 33%" in result.stderr
