"""Own files as datasets, and how what is on the shelf is prepared for a network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit import made_files as made
from tests.unit.telling import Told, left
from timetrial.data import importing, kept, registry, shelf
from timetrial.data.errors import DataError
from timetrial.data.prepare import prepare
from timetrial.data.registry import find
from timetrial.data.sources import Package
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "data"


def network(shape: list[int], units: int, tokens: int | None = None, layers: list[Any] | None = None) -> Network:
    layers = layers or ["flatten", {"dense": {"units": units}}]
    return Network.model_validate({"name": "n", "input": {"shape": shape, "tokens": tokens}, "layers": layers})


RECIPE = Recipe.model_validate({"batch": 4})


def test_own_files_become_a_dataset_of_a_study(tmp_path: Path, home: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,k\n" + "".join(f"{n},{n},{'xy'[n % 2]}\n" for n in range(40)))
    words = {"licence": "mine", "citation": "me", "summary": "two columns"}
    importing.bring("my-rows", tmp_path / "t.csv", Told(), words=words)
    described = find("my-rows")
    assert (described.classes, described.input_shape, described.licence) == (2, (2,), "mine")
    ready = prepare("my-rows", network([2], 2), RECIPE, 0, tmp_path / "p", "50%")
    assert np.load(ready.x_train).shape == (16, 2)
    assert (ready.provenance["sha256"], ready.provenance["citation"]) == (described.sha256, "me")
    stand_in = prepare("synthetic:my-rows", network([2], 2), RECIPE, 0, tmp_path / "p", 20)
    assert stand_in.synthetic
    assert np.load(stand_in.x_train).shape == (20, 2)
    again = Told()
    importing.bring("my-rows", tmp_path / "t.csv", again)
    assert not any("replaces" in line for line in again.lines)
    # Other rows under the same name are another dataset for what is prepared.
    (tmp_path / "t.csv").write_text("a,b,k\n" + "".join(f"{-n},{n},{'xy'[n % 2]}\n" for n in range(40)))
    importing.bring("my-rows", tmp_path / "t.csv", again)
    assert again.lines[-1].startswith(f"my-rows: replaces other samples (imported from {tmp_path / 't.csv'}, 2")
    assert prepare("my-rows", network([2], 2), RECIPE, 0, tmp_path / "p", "50%").content != ready.content


@pytest.mark.parametrize("kind", ["idx", "norb", "svhn", "pictures", "npz", "archive"])
def test_the_format_is_found_from_the_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "in"
    if kind in ("idx", "archive"):
        made.mnist(path)
    elif kind == "norb":
        made.norb(path)
    elif kind == "svhn":
        made.svhn(path)
    elif kind == "pictures":
        made.pictures(path, ("a", "b"), 5)
    else:
        path.mkdir()
        np.savez(path / "a.npz", x=np.zeros((10, 3)), y=np.arange(10) % 2)
    if kind == "archive":
        path = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", path))
    there = importing.bring("mine", path, Told())
    expected = {"norb": 5, "pictures": 2, "npz": 2}.get(kind, 10)
    assert there.facts["classes"] == expected
    assert shelf.load(there).y_train.dtype == np.int32


def test_what_cannot_be_imported_says_why(tmp_path: Path, home: Path) -> None:
    made.mnist(tmp_path / "loose")
    cases = {
        "is not there": ("mine", tmp_path / "nowhere", None, {}),
        "cannot name a dataset": ("My Digits", tmp_path / "loose", None, {}),
        "these are not the samples": ("enwik8", tmp_path / "loose", None, {}),
        "is read as idx": ("mnist", tmp_path / "loose", "images", {}),
        "there is no reader 'words'": ("mine", tmp_path / "loose", "words", {}),
        "has no option size": ("mine", tmp_path / "loose", "idx", {"size": (2, 2)}),
        "is a dataset of its own": ("fashion-mnist-6000", tmp_path / "loose", None, {}),
        "holds no format that is known": ("mine", tmp_path / "empty", None, {}),
    }
    (tmp_path / "empty").mkdir()
    for said, (name, path, reader, options) in cases.items():
        with pytest.raises(DataError) as caught:
            importing.bring(name, path, Told(), reader, options)
        if said != "these are not the samples":
            assert said in str(caught.value)
    assert left(home) == []


def test_a_made_mnist_is_not_mnist(tmp_path: Path) -> None:
    made.mnist(tmp_path)
    with pytest.raises(DataError, match="but that of the published train-images-idx3-ubyte is 6bbc9ace"):
        importing.bring("mnist", tmp_path, Told())


def test_known_sets_are_imported_as_they_are(tmp_path: Path) -> None:
    made.fish(tmp_path / "fish")
    there = importing.bring("fish-masks", tmp_path / "fish", Told())
    assert (there.facts["input_shape"], there.facts["classes"]) == ([148, 197, 1], 9)
    importing.bring("fish-masks", tmp_path / "fish", Told(), options={"size": (111, 148)})
    assert find("fish-masks").input_shape == (111, 148, 1)
    made.norb(tmp_path / "norb", classes=6)
    importing.bring("norb", tmp_path / "norb", Told())
    assert (find("norb").classes, find("norb").input_shape) == (6, (96, 96, 2))
    made.radar(tmp_path / "radar" / "train.csv")
    there = importing.bring("rain-radar", tmp_path / "radar", Told())
    assert there.name == "hmdir"
    assert len(shelf.load(there).x_train[0].shape) == 2


def test_texts_and_sequences_come_back_whole(tmp_path: Path) -> None:
    items = made.reviews(tmp_path / "reviews.json", 5)
    there = importing.bring("imdb", tmp_path / "reviews.json", Told())
    read = shelf.load(there)
    assert sorted([*read.x_train, *read.x_test]) == sorted(str(item["t"]) for item in items)
    with pytest.raises(DataError, match="texts of different lengths"):
        prepare("imdb", network([5], 2), RECIPE, 0, tmp_path / "p")


def test_a_text_is_cut_into_windows_of_the_networks_length(tmp_path: Path) -> None:
    text = bytes(n % 251 for n in range(2000))
    (tmp_path / "my.txt").write_bytes(text)
    importing.bring("tiny-text", tmp_path / "my.txt", Told())
    layers = [{"embedding": {"vocabulary": 256, "units": 2}}, {"dense": {"units": 256}}]
    ready = prepare("tiny-text", network([7], 256, 256, layers), RECIPE, 0, tmp_path / "p")
    x, y = np.load(ready.x_train), np.load(ready.y_train)
    assert (x.shape, y.shape, x.dtype) == ((257, 7), (257, 7), np.int32)
    assert bytes(x.ravel().astype(np.uint8)) == text[:1799]
    assert bytes(y.ravel().astype(np.uint8)) == text[1:1800]
    with pytest.raises(DataError, match="takes no tokens"):
        prepare("tiny-text", network([7], 2), RECIPE, 0, tmp_path / "p")


def test_the_shuttle_without_its_time(tmp_path: Path) -> None:
    made.shuttle_rda(tmp_path / "Shuttle.rda", *made.shuttle_table(210))
    importing.bring("shuttle", tmp_path, Told(), options={"train": 140})
    nine, eight = kept.raw(find("shuttle")), kept.raw(find("shuttle-8"))
    assert np.array_equal(nine.x_train[:, 1:], eight.x_train)
    assert (find("shuttle").input_shape, find("shuttle-8").input_shape) == ((9,), (8,))
    ready = prepare("shuttle-8", network([8], 7), RECIPE, 0, tmp_path / "p", 100)
    assert np.load(ready.x_train).shape == (100, 8)


@pytest.mark.parametrize("name", ["mnist", "svhn", "norb", "shuttle-8"])
def test_what_is_not_here_says_how_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError) as caught:
        prepare(name, network([28, 28], 10), RECIPE, 0, tmp_path / "p")
    command = "import norb PATH" if name == "norb" else f"get {name.removesuffix('-8')}"
    assert f"`timetrial data {command}`" in str(caught.value)
    assert f"'synthetic:{name}'" in str(caught.value)


@pytest.mark.parametrize(("name", "shape", "classes"), [
    ("cifar-10", (32, 32, 3), 10), ("shuttle-8", (8,), 7), ("imdb", None, None), ("hmdir", None, None),
])  # fmt: skip
def test_every_dataset_has_a_stand_in(name: str, shape: tuple[int, ...] | None, classes: int | None) -> None:
    stand_in = find(f"synthetic:{name}")
    assert (stand_in.input_shape, stand_in.classes, stand_in.synthetic) == (shape, classes, True)
    assert all("synthetic" in words for words in (stand_in.name, stand_in.summary, stand_in.citation, stand_in.source))


def test_the_registry_is_whole() -> None:
    for name, described in registry.every().items():
        assert (described.name, bool(described.licence), bool(described.citation)) == (name, True, True)
        if described.shelf:
            assert described.reader
            assert described.how
        for source in described.sources:
            if isinstance(source, Package):
                assert (len(source.sha256), source.size > 0) == (64, True)
            else:
                pinned = all(file.checksum for file in source.files) or described.md5
                assert pinned, f"{name}: nothing tells whether {source} gives what it should"


def test_the_manifest_says_all_there_is_to_know(tmp_path: Path) -> None:
    made.mnist(tmp_path / "loose")
    there = importing.bring("mine", tmp_path / "loose", Told())
    facts = json.loads((there.folder / "manifest.json").read_text())
    expected = {"form", "name", "content", "arrays", "summary", "licence", "citation", "classes", "class_names",
                "input_shape", "files", "from", "kept"}  # fmt: skip
    assert set(facts) == expected
    assert facts["arrays"]["x_train"]["shape"] == [30, 28, 28]
