"""Datasets: the registry, the embedded set, the synthetic stand-ins, and arrays prepared once for all engines."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError, replace
from importlib import resources
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.data import embedded, fit, registry, store, synthetic
from timetrial.data.arrays import write_array
from timetrial.data.prepare import Prepared, prepare
from timetrial.data.registry import UnknownDataset, find, names
from timetrial.data.samples import DataError
from timetrial.records.store import StoreError
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

FASHION = "fashion-mnist-6000"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_embedded_data.py"
ORIGINAL = Path(os.environ.get("TIMETRIAL_FASHION_MNIST", "/usr/share/datasets/fashion-mnist"))


def network(shape: list[int], units: int = 10, tokens: int | None = None, layers: list[Any] | None = None) -> Network:
    input = {"shape": shape, "tokens": tokens}
    layers = layers or ["flatten", {"dense": {"units": units}}]
    return Network.model_validate({"name": "small", "input": input, "layers": layers})


def recipe(**fields: Any) -> Recipe:
    return Recipe.model_validate({"batch": 8, **fields})


def arrays(prepared: Prepared) -> dict[str, np.ndarray]:
    return {name: np.load(getattr(prepared, name), mmap_mode="r") for name in store.NAMES}


def folders(place: Path) -> list[Path]:
    return [entry for entry in place.iterdir() if entry.name != "requests"]


# --- registry ---------------------------------------------------------------------------------------------------------


def test_known_names_are_found_and_frozen() -> None:
    there = {FASHION, "synthetic", "mnist", "cifar10", "shuttle", "imdb", "enwik8", "svhn", "norb", "solar-synthetic"}
    assert there <= set(names())
    fashion = find(FASHION)
    assert (fashion.classes, fashion.input_shape, fashion.licence, fashion.synthetic) == (10, (28, 28), "MIT", False)
    with pytest.raises(FrozenInstanceError):
        fashion.classes = 11  # type: ignore[misc]


def test_a_shaped_synthetic_dataset_is_read_from_its_name() -> None:
    shaped = find("synthetic:32x24x3:100")
    assert (shaped.input_shape, shaped.classes, shaped.synthetic) == ((32, 24, 3), 100, True)
    assert find("synthetic:784:10").input_shape == (784,)


@pytest.mark.parametrize("name", ["synthetic", "synthetic:8x8x1:3"])
def test_synthetic_datasets_say_so_in_every_word(name: str) -> None:
    dataset = find(name)
    assert dataset.synthetic
    assert all("synthetic" in words for words in (dataset.name, dataset.summary, dataset.citation, dataset.source))


@pytest.mark.parametrize(("name", "advice"), [
    ("fashion-mnits", "did you mean 'fashion-mnist'"),
    ("Fashion-MNIST-6000", "did you mean 'fashion-mnist-6000' or"),
    ("zebra", "known: cifar10, concrete-cracks, enwik8"),
    ("zebra", "Your own files: `timetrial data import zebra PATH`"),
    ("synthetic:zebra", "or the name of a dataset as in 'synthetic:cifar10'"),
    ("synthetic:28x28", "as in 'synthetic:28x28x1:10'"),
    ("synthetic:0x3:10", "as in 'synthetic:28x28x1:10'"),
])  # fmt: skip
def test_unknown_names_come_with_advice(name: str, advice: str) -> None:
    with pytest.raises(UnknownDataset) as caught:
        find(name)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(f"there is no dataset '{name}'; ")
    assert advice in str(caught.value)


# --- the embedded set -------------------------------------------------------------------------------------------------


def test_the_embedded_set_is_balanced_and_of_bytes() -> None:
    read = embedded.read(find(FASHION))
    assert (read.x_train.shape, read.x_train.dtype) == ((5000, 28, 28), np.uint8)
    assert (read.x_test.shape, read.x_test.dtype) == ((1000, 28, 28), np.uint8)
    assert np.bincount(read.y_train).tolist() == [500] * 10
    assert np.bincount(read.y_test).tolist() == [100] * 10


def test_the_embedded_set_is_fashion_mnist() -> None:
    """The published file begins with these labels; its first image is a boot, dark at the top and bright below."""
    read = embedded.read(find(FASHION))
    assert read.y_train[:10].tolist() == [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
    assert read.y_test[:10].tolist() == [9, 2, 1, 1, 6, 1, 4, 6, 5, 7]
    assert read.x_train[0][:3].sum() == 0
    assert read.x_train[0][20:25].mean() > 100


def test_the_licence_comes_with_the_embedded_set() -> None:
    text = (resources.files("timetrial.data") / "embedded" / "fashion_mnist_6000.LICENSE").read_text()
    assert "Zalando SE" in text
    assert "Permission is hereby granted, free of charge" in text


def test_a_damaged_file_is_named_with_its_checksums(tmp_path: Path) -> None:
    dataset = find(FASHION)
    (tmp_path / "fashion_mnist_6000.npz").write_bytes(b"something else")
    with pytest.raises(
        DataError, match=r"fashion_mnist_6000\.npz of dataset 'fashion-mnist-6000' is damaged"
    ) as caught:
        embedded.read(dataset, tmp_path)
    assert hashlib.sha256(b"something else").hexdigest() in str(caught.value)
    assert str(dataset.sha256) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"fashion_mnist_6000\.npz is missing; install Timetrial again"):
        embedded.read(find(FASHION), tmp_path)


def _script() -> Any:
    specification = importlib.util.spec_from_file_location("make_embedded_data", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_packing_the_embedded_arrays_gives_the_same_bytes_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    script, read = _script(), embedded.read(find(FASHION))
    few = {"x_train": read.x_train[:50], "y_train": read.y_train[:50]}
    first = script.pack(few)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    assert script.pack(few) == first


@pytest.mark.slow
@pytest.mark.skipif(not ORIGINAL.is_dir(), reason=f"the original files of Fashion-MNIST are not in {ORIGINAL}")
def test_the_script_makes_the_embedded_file_from_the_original(tmp_path: Path) -> None:
    made = tmp_path / "made.npz"
    subprocess.run([sys.executable, str(SCRIPT), str(ORIGINAL), "--output", str(made)], check=True, capture_output=True)
    with np.load(made) as arrays:
        read = embedded.read(find(FASHION))
        assert all(np.array_equal(arrays[name], getattr(read, name)) for name in store.NAMES)


def test_the_first_of_each_class_are_taken_in_the_order_of_the_file() -> None:
    labels = np.array([*range(10), *range(9, -1, -1), *range(10)], np.uint8)
    assert _script().first_of_each_class(labels, 2).tolist() == list(range(20))
    assert _script().first_of_each_class(labels[::-1], 1).tolist() == list(range(10))


# --- fitting a dataset to a network and its loss ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [[28, 28, 1], [28, 28], [784]])
def test_images_take_the_form_of_the_networks_input(tmp_path: Path, shape: list[int]) -> None:
    stored = embedded.read(find(FASHION))
    x = arrays(prepare(FASHION, network(shape), recipe(), 0, tmp_path))["x_train"]
    assert x.shape == (5000, *shape)
    assert x.dtype == np.float32
    assert x.flags.c_contiguous
    assert (x.min(), x.max()) == (0, 1)
    assert np.array_equal(np.rint(x.reshape(5000, 28, 28) * 255), stored.x_train)


@pytest.mark.parametrize(("fields", "dtype", "shape"), [
    ({}, np.int32, (1000,)),
    ({"labels": "one_hot"}, np.float32, (1000, 10)),
    ({"loss": "mse"}, np.float32, (1000, 10)),
    ({"loss": "binary_cross_entropy"}, np.float32, (1000, 10)),
])  # fmt: skip
def test_labels_take_the_form_that_the_loss_needs(
    tmp_path: Path, fields: dict[str, Any], dtype: type, shape: tuple[int, ...]
) -> None:
    stored = embedded.read(find(FASHION)).y_test
    y = arrays(prepare(FASHION, network([784]), recipe(**fields), 0, tmp_path))["y_test"]
    assert (y.dtype, y.shape) == (dtype, shape)
    assert np.array_equal(y if y.ndim == 1 else y.argmax(1), stored)
    assert y.ndim == 1 or np.array_equal(y.sum(1), np.ones(1000))


def test_two_classes_fit_one_sigmoid(tmp_path: Path) -> None:
    made = prepare("synthetic:5:2", network([5], 1), recipe(loss="binary_cross_entropy"), 0, tmp_path, 40)
    y = arrays(made)["y_train"]
    assert (y.shape, y.dtype) == ((40, 1), np.float32)
    assert set(np.unique(y)) == {0, 1}


@pytest.mark.parametrize(("asked", "words"), [
    (network([32, 32, 1]), ["28x28", "'small'", "32x32x1", "28x28x1 or 784", FASHION]),
    (network([14, 56]), ["28x28", "14x56"]),
    (network([1, 28, 28]), ["28x28", "1x28x28"]),
    (network([784], units=5), ["10 classes", "'small' is 5", "end the network with 10 units", FASHION]),
    (network([28, 28], layers=[{"dense": {"units": 10}}]), ["output of 10", "is 28x10"]),
    (network([784], tokens=256, layers=[{"embedding": {"vocabulary": 256, "units": 2}}, "flatten", {"dense": {"units": 10}}]),
     ["has numbers", "takes tokens"]),
])  # fmt: skip
def test_what_does_not_fit_is_one_sentence_that_names_both(tmp_path: Path, asked: Network, words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        prepare(FASHION, asked, recipe(), 0, tmp_path)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message
    assert not tmp_path.joinpath("requests").exists()


def test_tokens_beyond_the_vocabulary_are_refused() -> None:
    asked = network(
        [3], tokens=9, layers=[{"embedding": {"vocabulary": 9, "units": 2}}, "flatten", {"dense": {"units": 2}}]
    )
    ids = np.array([[0, 8, 3]], np.int64)
    assert fit.inputs(find("synthetic"), asked, ids).dtype == np.int32
    with pytest.raises(DataError, match="tokens from 0 to 9, but network 'small' takes tokens below 9"):
        fit.inputs(find("synthetic"), asked, ids + (ids == 8))


def test_targets_must_have_the_shape_of_the_output() -> None:
    targets = np.zeros((4, 3))
    assert fit.labels(find("synthetic"), network([5], 3), recipe(loss="mse"), targets).dtype == np.float32
    with pytest.raises(DataError, match="are 3, but the output of network 'small' is 2"):
        fit.labels(find("synthetic"), network([5], 2), recipe(loss="mse"), targets)
    with pytest.raises(DataError, match="cross_entropy needs classes"):
        fit.labels(find("synthetic"), network([5], 3), recipe(), targets)


# --- synthetic stand-ins ----------------------------------------------------------------------------------------------

TRANSFORMER = network([7], tokens=11, layers=[{"embedding": {"vocabulary": 11, "units": 4}}, {"dense": {"units": 11}}])


@pytest.mark.parametrize(("asked", "fields", "x", "y"), [
    (network([9, 7, 3], 4), {}, (np.float32, (9, 7, 3)), (np.int32, ())),
    (network([9, 7, 3], 4), {"labels": "one_hot"}, (np.float32, (9, 7, 3)), (np.float32, (4,))),
    (network([8], 3), {"loss": "mse"}, (np.float32, (8,)), (np.float32, (3,))),
    (network([100], 1), {"loss": "mae"}, (np.float32, (100,)), (np.float32, (1,))),
    (network([8], 1), {"loss": "binary_cross_entropy"}, (np.float32, (8,)), (np.float32, (1,))),
    (network([6, 5], layers=[{"dense": {"units": 3}}]), {}, (np.float32, (6, 5)), (np.int32, (6,))),
    (TRANSFORMER, {}, (np.int32, (7,)), (np.int32, (7,))),
    (TRANSFORMER, {"labels": "one_hot"}, (np.int32, (7,)), (np.float32, (7, 11))),
    (TRANSFORMER, {"loss": "mse"}, (np.int32, (7,)), (np.float32, (7, 11))),
])  # fmt: skip
def test_a_stand_in_has_the_shapes_of_the_network(
    tmp_path: Path, asked: Network, fields: dict[str, Any], x: tuple[type, Any], y: tuple[type, Any]
) -> None:
    made = arrays(prepare("synthetic", asked, recipe(**fields), 1, tmp_path, samples=100))
    for split, count in (("train", 100), ("test", 25)):
        found_x, found_y = made[f"x_{split}"], made[f"y_{split}"]
        assert (found_x.dtype, found_x.shape) == (x[0], (count, *x[1]))
        assert (found_y.dtype, found_y.shape) == (y[0], (count, *y[1]))
        assert found_x.flags.c_contiguous
        assert np.isfinite(found_x).all()
        assert np.isfinite(found_y).all()
    assert made["x_train"].min() >= 0
    assert made["x_train"].max() < (asked.input.tokens or 1.0001)
    assert len(np.unique(made["y_train"])) > 1


def test_a_stand_in_can_be_learned(tmp_path: Path) -> None:
    """The nearest mean of the training samples finds nearly all classes of the test; targets are linear in the cause."""
    made = arrays(prepare("synthetic", network([200], 5), recipe(), 3, tmp_path, 1000))
    means = np.stack([made["x_train"][made["y_train"] == label].mean(0) for label in range(5)])
    nearest = np.square(made["x_test"][:, None] - means).sum(2).argmin(1)
    assert (nearest == made["y_test"]).mean() > 0.95

    made = arrays(prepare("synthetic", network([256], 1), recipe(loss="mse"), 3, tmp_path, 2000))
    solution = np.linalg.lstsq(made["x_train"] - 0.5, made["y_train"], rcond=None)[0]
    left = np.var((made["x_test"] - 0.5) @ solution - made["y_test"]) / np.var(made["y_test"])
    assert left < 0.3


def test_a_stand_in_has_enough_batches_and_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = arrays(prepare("synthetic", network([4]), recipe(batch=600), 0, tmp_path))
    assert (len(small["x_train"]), len(small["x_test"])) == (4800, 1200)
    monkeypatch.setattr(synthetic, "MOST_BYTES", 4 * 64 * 64 * 20)
    large = arrays(prepare("synthetic", network([64, 64]), recipe(batch=1), 0, tmp_path))
    assert (len(large["x_train"]), len(large["x_test"])) == (20, 5)


def test_the_seed_makes_the_stand_in(tmp_path: Path) -> None:
    first, again, other = (
        prepare("synthetic", network([8]), recipe(), seed, tmp_path / str(place), samples=50)
        for place, seed in enumerate((5, 5, 6))
    )
    assert first.content == again.content != other.content
    assert first.x_train != again.x_train
    assert first.x_train.read_bytes() == again.x_train.read_bytes() != other.x_train.read_bytes()
    assert (first.synthetic, first.provenance["seed"], first.provenance["dataset"]) == (True, 5, "synthetic")


# --- prepared once, shared by all -------------------------------------------------------------------------------------


def test_the_provenance_says_where_the_samples_come_from(tmp_path: Path) -> None:
    made = prepare(FASHION, network([784]), recipe(), 7, tmp_path, samples=300)
    assert not made.synthetic
    expected = {
        "dataset": FASHION,
        "licence": "MIT",
        "sha256": find(FASHION).sha256,
        "seed": None,
        "train": 300,
        "test": 300,
    }
    assert {key: made.provenance[key] for key in expected} == expected
    assert made.provenance["arrays"]["x_train"] == "float32 [300, 784]"
    with pytest.raises(FrozenInstanceError):
        made.content = ""  # type: ignore[misc]


def test_the_same_request_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(FASHION, network([784]), recipe(), 0, tmp_path, samples=100)
    written = first.x_train.stat().st_mtime_ns
    monkeypatch.setattr(fit, "inputs", None)
    second = prepare(FASHION, network([784]), recipe(epochs=3, batch=50), 1, tmp_path, samples=100)
    assert second == first
    assert second.x_train.stat().st_mtime_ns == written
    assert folders(tmp_path) == [first.x_train.parent]
    assert first.x_train.parent.name == first.content


def test_different_requests_with_the_same_content_share_it(tmp_path: Path) -> None:
    whole = prepare(FASHION, network([784]), recipe(), 0, tmp_path)
    all_asked = prepare(FASHION, network([784]), recipe(), 0, tmp_path, samples=5000)
    assert all_asked == whole
    assert len(folders(tmp_path)) == 1


@pytest.mark.parametrize("damage", ["byte", "cut", "gone", "manifest", "note"])
def test_what_is_damaged_is_made_again(tmp_path: Path, damage: str) -> None:
    def again() -> Prepared:
        return prepare(FASHION, network([784]), recipe(), 0, tmp_path, samples=100)

    first = again()
    good = first.x_train.read_bytes()
    if damage == "byte":
        first.x_train.write_bytes(good[:-1] + b"!")
    elif damage == "cut":
        os.truncate(first.x_train, len(good) // 2)
    elif damage == "gone":
        first.x_train.unlink()
    elif damage == "manifest":
        (first.x_train.parent / "manifest.json").write_text("{}")
    else:
        next((tmp_path / "requests").iterdir()).write_text('{"con')
    second = again()
    assert second == first
    assert second.x_train.read_bytes() == good
    assert sorted(entry.name for entry in first.x_train.parent.iterdir()) == [
        "manifest.json", *sorted(f"{name}.npy" for name in store.NAMES)
    ]  # fmt: skip


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"x_train\.npy: the disk is full; free some space"):
        prepare(FASHION, network([784]), recipe(), 0, tmp_path, samples=100)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 10**6])
def test_an_array_that_the_disk_refuses_is_told_with_its_file_and_the_reason(size: int) -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'") as caught:
        write_array(Path("/dev/full"), np.zeros(size))
    assert caught.value.errno == errno.ENOSPC


def _prepare_in_a_process(folder: Path) -> str:
    return prepare("synthetic", network([50]), recipe(), 0, folder, samples=2000).content


@pytest.mark.slow
def test_processes_that_prepare_at_once_agree(tmp_path: Path) -> None:
    with get_context("spawn").Pool(4) as pool:
        contents = pool.map(_prepare_in_a_process, [tmp_path] * 8, chunksize=1)
    assert len(set(contents)) == 1
    assert [entry.name for entry in folders(tmp_path)] == [contents[0]]


@pytest.mark.parametrize("count", [0, -3])
def test_a_count_below_one_is_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(DataError, match="ask for at least one"):
        prepare(FASHION, network([784]), recipe(), 0, tmp_path, samples=count)


def test_more_samples_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has 5,000 training samples, but 5,001 were asked for"):
        prepare(FASHION, network([784]), recipe(), 0, tmp_path, samples=5001)


def test_a_damaged_embedded_file_stops_the_preparation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._datasets, FASHION, replace(find(FASHION), sha256="0" * 64))
    with pytest.raises(DataError, match="is damaged"):
        prepare(FASHION, network([784]), recipe(), 0, tmp_path)


def test_listing_the_datasets_does_not_wait_for_numpy() -> None:
    code = "import sys, timetrial.data.registry; print(int('numpy' in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
