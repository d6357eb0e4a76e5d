"""The real datasets, where this machine has them: `timetrial data get …` brings them. Nothing is fetched here."""

from __future__ import annotations

import hashlib
import resource
from pathlib import Path

import numpy as np
import pytest

from timetrial.data import shelf
from timetrial.data.prepare import prepare
from timetrial.data.registry import every, find
from timetrial.data.samples import Samples
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe

COUNTS = {
    "mnist": ([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
              [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    "fashion-mnist": ([6000] * 10, [1000] * 10),
    "cifar10": ([5000] * 10, [1000] * 10),
    "shuttle": ([34108, 37, 132, 6748, 2458, 6, 11], [11478, 13, 39, 2155, 809, 4, 2]),
    "imdb": ([12_500] * 2, [12_500] * 2),
}  # fmt: skip
BATCHES = (
    "5dd7e06a14cb22eb9f671a540d1b7c25", "5ea93a67294ea407fff1d09f752e9692", "942cd6a4bcdd0dd3c604fbe906cb4421",
    "ae636b3ba5c66a11e91e8cb52e771fcb", "53f37980c15c3d472c316c40844f3f0d", "803d5f7f4d78ea53de84dbe85f74fb6d",
)  # fmt: skip


def real(name: str) -> Samples:
    there = shelf.look_up(name)
    if there is None:
        pytest.skip(f"{name} is not on this machine; `timetrial data get {name}` brings it")
    if pinned := every()[name].content:
        assert there.content == pinned
    return shelf.load(there)


@pytest.mark.parametrize("name", COUNTS)
def test_the_classes_have_their_published_counts(name: str) -> None:
    samples = real(name)
    assert np.bincount(samples.y_train).tolist() == COUNTS[name][0]
    assert np.bincount(samples.y_test).tolist() == COUNTS[name][1]


def test_cifar_rebuilds_the_published_files() -> None:
    samples = real("cifar10")
    parts = [(samples.x_train[n : n + 10_000], samples.y_train[n : n + 10_000]) for n in range(0, 50_000, 10_000)]
    for (x, y), wanted in zip([*parts, (samples.x_test, samples.y_test)], BATCHES, strict=True):
        planes = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
        assert hashlib.md5(np.c_[y.astype(np.uint8), planes].tobytes()).hexdigest() == wanted


def test_the_shuttle_begins_as_published() -> None:
    samples = real("shuttle")
    assert samples.x_train[0].tolist() == [50, 21, 77, 0, 28, 0, 27, 48, 22]
    assert samples.y_train[0] + 1 == 2
    assert (samples.x_test.min(), samples.x_test.max()) == (-26_739, 15_164)


def test_enwik8_is_wikipedia() -> None:
    samples = real("enwik8")
    assert bytes(samples.x_train[:10]) == b"<mediawiki"
    assert (len(samples.x_train), len(samples.x_test)) == (90_000_000, 5_000_000)


def test_the_reviews_are_as_described() -> None:
    samples = real("imdb")
    every_text = [*samples.x_train, *samples.x_test]
    assert sum("<br />" in text for text in every_text) == 29_200
    assert 50_000 - len(set(every_text)) == 418


@pytest.mark.slow
def test_cifar_is_prepared_whole_within_two_gibibytes(tmp_path: Path) -> None:
    real("cifar10")
    layers = ["flatten", {"dense": {"units": 10}}]
    network = Network.model_validate({"name": "n", "input": {"shape": [32, 32, 3]}, "layers": layers})
    ready = prepare("cifar-10", network, Recipe.model_validate({"batch": 100}), 0, tmp_path)
    x = np.load(ready.x_train, mmap_mode="r")
    assert (x.shape, x.dtype) == ((50_000, 32, 32, 3), np.float32)
    assert np.array_equal(np.rint(x[-5000:] * 255), real("cifar10").x_train[-5000:])
    assert ready.provenance["sha256"] == find("cifar10").sha256
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * 2**20  # in kibibytes
