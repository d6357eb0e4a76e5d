"""Readers of pictures against small files of the exact format, and against damaged ones."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.unit import made_files as made
from tests.unit.damage import SAME_FOLDER, refused, survives
from timetrial.data.readers import (
    cifar,
    idx,
    images,
    matlab,
    norb,
    pictures,
)  # fmt: skip

# --- IDX --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_are_read_packed_or_not_anywhere_below_the_folder(tmp_path: Path, packed: bool) -> None:
    written = made.mnist(tmp_path / "deep" / "down", packed)
    read = idx.read(tmp_path)
    assert np.array_equal(read.x_train, written["train-images-idx3-ubyte"])
    assert np.array_equal(read.y_test, written["t10k-labels-idx1-ubyte"])
    assert (read.x_train.dtype, read.x_train.shape) == (np.uint8, (30, 28, 28))


def test_a_stray_idx_label_is_named_with_its_file(tmp_path: Path) -> None:
    written = made.mnist(tmp_path)
    labels = written["train-labels-idx1-ubyte"].copy()
    labels[4] = 200
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(made.idx(labels))
    assert refused(lambda: idx.read(tmp_path)) == (
        f"{tmp_path / 'train-labels-idx1-ubyte'}: sample 5 has label 200, the largest, but none has label {labels[labels < 200].max() + 1}; "
        "classes are numbered from 0 without a gap"
    )


@pytest.mark.parametrize("kind", ["|u1", ">i2", ">f4"])
def test_idx_of_other_numbers(tmp_path: Path, kind: str) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    (tmp_path / "a").write_bytes(made.idx(array))
    read = idx.array(tmp_path / "a")
    assert np.array_equal(read, array)
    assert read.dtype.isnative


@pytest.mark.parametrize(("damage", "said"), [
    (lambda data: b"", "does not begin as an IDX file"),
    (lambda data: b"\x89PNG" + data[4:], "does not begin as an IDX file does (89 50 4e 47)"),
    (lambda data: data[:6], "ends inside its header"),
    (lambda data: data[:-1], "ends after 799 of 800 bytes"),
    (lambda data: data + b"x", "holds more than 800 bytes"),
    (lambda data: data[:4] + b"\xff" * 12 + data[16:], "announces"),
    (lambda data: gzip.compress(data)[:-20], "cut off or damaged"),
    (lambda data: gzip.compress(data)[:9] + b"\0" * 20, "damaged"),
])  # fmt: skip
def test_damaged_idx_says_file_and_fault(tmp_path: Path, damage: Callable[[bytes], bytes], said: str) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(damage(made.idx(np.zeros((1, 28, 28), np.uint8))))
    message = refused(lambda: idx.array(path))
    assert str(path) in message
    assert said in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    made.mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    assert "t10k-labels-idx1-ubyte" in refused(lambda: idx.read(tmp_path))


@SAME_FOLDER
@given(place=st.integers(0, 15), byte=st.integers(0, 255), length=st.integers(0, 100))
def test_no_damage_of_an_idx_header_is_anything_but_a_data_error(
    tmp_path: Path, place: int, byte: int, length: int
) -> None:
    data = bytearray(made.idx(np.zeros((3, 4, 5), np.uint8)))
    data[place] = byte
    (tmp_path / "a").write_bytes(data[:length])
    survives(lambda: idx.array(tmp_path / "a"))


# --- CIFAR-10 ---------------------------------------------------------------------------------------------------------


def test_cifar_is_the_same_from_both_formats(tmp_path: Path) -> None:
    train, test = made.cifar_rows(50), made.cifar_rows(10)
    made.cifar_binary(tmp_path / "binary", *train, test)
    made.cifar_sprites(tmp_path / "sprites", *train, test)
    first, second = cifar.read(tmp_path / "binary"), cifar.read(tmp_path / "sprites")
    for part in ("x_train", "y_train", "x_test", "y_test"):
        assert np.array_equal(getattr(first, part), getattr(second, part))
    assert np.array_equal(first.x_train[:10], train[0][::5])
    assert first.class_names[3] == "cat"


def test_damaged_cifar(tmp_path: Path) -> None:
    train, test = made.cifar_rows(50), made.cifar_rows(10)
    made.cifar_binary(tmp_path / "b", *train, test)
    (tmp_path / "b" / "data_batch_2.bin").write_bytes(b"x" * 3072)
    assert "3,072 bytes, which is no multiple of 3073" in refused(lambda: cifar.read(tmp_path / "b"))
    (tmp_path / "b" / "data_batch_2.bin").unlink()
    assert "data_batch_2 is missing" in refused(lambda: cifar.read(tmp_path / "b"))
    made.cifar_sprites(tmp_path / "s", *train, test)
    (tmp_path / "s" / "train_lables.json").write_text("[1, 2]")
    assert "labels of shape [2] for 50 images" in refused(lambda: cifar.read(tmp_path / "s"))
    Image.new("RGB", (1000, 10)).save(tmp_path / "s" / "data_batch_3.png")
    assert "1000 pixels wide" in refused(lambda: cifar.read(tmp_path / "s"))
    (tmp_path / "s" / "data_batch_1.png").write_bytes(b"no picture at all")
    assert "is no picture in the format PNG" in refused(lambda: cifar.read(tmp_path / "s"))
    assert "has neither data_batch_1.bin" in refused(lambda: cifar.read(tmp_path / "nothing"))


@SAME_FOLDER
@given(cut=st.integers(0, 400), place=st.integers(0, 399), byte=st.integers(0, 255))
def test_no_damage_of_a_picture_is_anything_but_a_data_error(tmp_path: Path, cut: int, place: int, byte: int) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(path)
    data = bytearray(path.read_bytes())
    data[place % len(data)] = byte
    path.write_bytes(data[:cut] if cut < 200 else data)
    survives(lambda: pictures.pixels(path))


def test_a_picture_that_announces_too_much_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    Image.new("L", (4, 4)).save(path)
    data = bytearray(path.read_bytes())
    data[16:24] = struct.pack(">2I", 60_000, 60_000)
    data[29:33] = struct.pack(">I", __import__("zlib").crc32(bytes(data[12:29])))
    path.write_bytes(data)
    assert "bomb.png" in refused(lambda: pictures.pixels(path))


# --- SVHN, NORB -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compressed", [True, False])
def test_svhn_has_images_first_and_ten_is_zero(tmp_path: Path, compressed: bool) -> None:
    written_ = made.svhn(tmp_path, compressed)
    read = matlab.read(tmp_path)
    assert np.array_equal(read.x_train[4], written_["train"][0][..., 4])
    assert read.y_train[:11].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_damaged_svhn(tmp_path: Path) -> None:
    from scipy.io import savemat

    made.svhn(tmp_path)
    path = tmp_path / "train_32x32.mat"
    whole = path.read_bytes()
    path.write_bytes(whole[:5000])
    assert "has no variable y; it has X, or is cut off" in refused(lambda: matlab.read(tmp_path))
    path.write_bytes(whole[:-4])
    assert "no whole MATLAB file" in refused(lambda: matlab.read(tmp_path))
    savemat(path, {"X": np.zeros((32, 32, 3, 4), np.uint8)})
    assert "has no variable y; it has X, or is cut off" in refused(lambda: matlab.read(tmp_path))
    savemat(path, {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.array([[1], [2], [11], [3]])})
    assert "label 3 in y is 11" in refused(lambda: matlab.read(tmp_path))
    savemat(path, {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.ones((5, 1))})
    assert "for 5 labels in y" in refused(lambda: matlab.read(tmp_path))


@SAME_FOLDER
@given(place=st.integers(0, 3000), byte=st.integers(0, 255), cut=st.integers(0, 70_000))
def test_no_damage_of_a_matlab_file_is_anything_but_a_data_error(
    tmp_path: Path, place: int, byte: int, cut: int
) -> None:
    if not (tmp_path / "whole").exists():
        made.svhn(tmp_path, compressed=False)
        (tmp_path / "whole").write_bytes((tmp_path / "test_32x32.mat").read_bytes())
    data = bytearray((tmp_path / "whole").read_bytes())
    data[place if place < 200 else -place] = byte
    (tmp_path / "test_32x32.mat").write_bytes(data[:cut] if cut < 35_000 else data)
    survives(lambda: matlab.read(tmp_path))


@pytest.mark.parametrize(("classes", "parts", "packed"), [(5, 1, False), (6, 2, True)])
def test_norb_pairs_become_channels_and_parts_are_joined(
    tmp_path: Path, classes: int, parts: int, packed: bool
) -> None:
    written_ = made.norb(tmp_path, classes, parts, packed)
    read = norb.read(tmp_path)
    assert read.x_train.shape == (2 * classes * parts, 96, 96, 2)
    first = next(array for name, array in written_.items() if "training" in name and "dat" in name)
    assert np.array_equal(read.x_train[3, ..., 1], first[3, 1])
    assert read.class_names[-1] == {5: "car", 6: "nothing"}[classes]
    assert np.bincount(read.y_test).tolist() == [parts] * classes


@pytest.mark.parametrize(("damage", "said"), [
    (lambda data: data[:-1], "bytes, a matrix of [5, 2, 96, 96] has"),
    (lambda data: data + b"x", "bytes, a matrix of [5, 2, 96, 96] has"),
    (lambda data: b"abcd" + data[4:], "does not begin as a binary matrix does (61 62 63 64)"),
    (lambda data: b"", "it is empty"),
    (lambda data: data[:4] + struct.pack("<i", 99) + data[8:], "says that it has 99 sizes"),
    (lambda data: data[:8] + struct.pack("<i", -5) + data[12:], "negative size"),
    (lambda data: data[:8] + struct.pack("<2i", 2**31 - 1, 2**31 - 1) + data[16:], "announces"),
])  # fmt: skip
def test_damaged_norb(tmp_path: Path, damage: Callable[[bytes], bytes], said: str) -> None:
    path = tmp_path / "norb.mat"
    path.write_bytes(damage(made.norb_matrix(np.zeros((5, 2, 96, 96), np.uint8))))
    assert said in refused(lambda: norb.matrix(path))


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_fish_masks_are_taken_without_the_photographs(tmp_path: Path) -> None:
    made.fish(tmp_path)
    read = images.read(tmp_path, masks=True, grey=True, size=(20, 30), test=0.15)
    assert (read.x_train.shape, read.x_test.shape) == ((54, 20, 30, 1), (9, 20, 30, 1))
    assert read.class_names == tuple(f"Fish {kind}" for kind in range(9))
    assert np.unique(read.x_train).tolist() == [255]
    assert np.bincount(read.y_test).tolist() == [1] * 9


def test_a_folder_a_class_with_and_without_a_split(tmp_path: Path) -> None:
    made.pictures(tmp_path / "a", ("cat", "dog"), 5)
    read = images.read(tmp_path / "a")
    assert (read.x_train.shape, read.x_test.shape, read.class_names) == ((8, 6, 8, 3), (2, 6, 8, 3), ("cat", "dog"))
    assert all(read.x_train[place, 0, 0, 0] == 10 * label for place, label in enumerate(read.y_train))
    for part, each in (("train", 3), ("val", 2)):
        made.pictures(tmp_path / "b" / part, ("cat", "dog"), each, mode="L")
    read = images.read(tmp_path / "b")
    assert (read.x_train.shape, read.x_test.shape) == ((6, 6, 8, 1), (4, 6, 8, 1))


def test_bad_folders_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.pictures(tmp_path / "a", ("cat", "dog"), 5)
    Image.new("RGB", (9, 9)).save(tmp_path / "a" / "dog" / "0.png")
    message = refused(lambda: images.read(tmp_path / "a"))
    assert "dog/0.png: is 9x9x3, the first picture is 6x8x3; make them alike with --size" in message
    assert images.read(tmp_path / "a", size=(3, 4)).x_train.shape == (8, 3, 4, 3)
    (tmp_path / "a" / "cat" / "1.png").write_bytes(b"GIF89a nothing")
    assert "cat/1.png: is no picture" in refused(lambda: images.read(tmp_path / "a", size=(3, 4)))
    made.pictures(tmp_path / "one", ("cat",), 5)
    assert "it holds 1" in refused(lambda: images.read(tmp_path / "one"))
    assert "is no folder of pictures" in refused(lambda: images.read(tmp_path / "nowhere"))
    made.pictures(tmp_path / "c" / "train", ("cat", "dog"), 2)
    made.pictures(tmp_path / "c" / "test", ("cat", "eel"), 2)
    assert "class 'eel' that is not among" in refused(lambda: images.read(tmp_path / "c"))
    monkeypatch.setattr(images, "MOST_BYTES", 100)
    assert "give a smaller --size" in refused(lambda: images.read(tmp_path / "c" / "train", test=0.5))
