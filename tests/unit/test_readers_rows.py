"""Readers of tables, arrays and texts against small files of the exact format, and against damaged ones."""

from __future__ import annotations

import gzip
import json
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import made_files as made
from tests.unit.damage import SAME_FOLDER, refused, survives
from timetrial.data.checking import checked
from timetrial.data.readers import (
    arrays,
    characters,
    files,
    radar,
    reviews,
    shuttle,
    table,
)  # fmt: skip
from timetrial.data.readers.rda import frame
from timetrial.data.samples import Samples, counted

# --- R and the shuttle ------------------------------------------------------------------------------------------------


def test_the_shuttle_is_read_from_r_and_from_text_alike(tmp_path: Path) -> None:
    columns, classes = made.shuttle_table(70)
    made.shuttle_rda(tmp_path / "r" / "Shuttle.rda", columns, classes)
    rows = np.stack([*columns.values(), classes], axis=1).astype(int)
    (tmp_path / "t").mkdir()
    for name, part in (("trn", rows[:50]), ("tst", rows[50:])):
        (tmp_path / "t" / f"shuttle.{name}").write_text("".join(" ".join(map(str, row)) + " \n" for row in part))
    first, second = shuttle.read(tmp_path / "r", train=50), shuttle.read(tmp_path / "t")
    for part in ("x_train", "y_train", "x_test", "y_test"):
        assert np.array_equal(getattr(first, part), getattr(second, part))
    assert first.x_train.shape == (50, 9)
    assert first.x_train[0].tolist() == [column[0] for column in columns.values()]
    assert first.y_train[:7].tolist() == list(range(7))


def test_a_frame_keeps_names_and_levels_and_follows_references(tmp_path: Path) -> None:
    columns, classes = made.shuttle_table(14)
    made.shuttle_rda(tmp_path / "Shuttle.rda", columns, classes)
    read = frame(tmp_path / "Shuttle.rda", "Shuttle")
    assert list(read) == [*columns, "Class"]
    assert read["Class"].levels[0] == "Rad.Flow"
    assert np.array_equal(read["Class"].values, classes)
    assert "has no object Satellite; it has Shuttle" in refused(lambda: frame(tmp_path / "Shuttle.rda", "Satellite"))


def test_damaged_r_data(tmp_path: Path) -> None:
    path = tmp_path / "Shuttle.rda"
    plain = made.shuttle_rda(path, *made.shuttle_table(14))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "cut off or damaged" in refused(lambda: frame(path, "Shuttle"))
    path.write_bytes(lzma.compress(plain[:500]))
    assert "Shuttle.rda" in refused(lambda: frame(path, "Shuttle"))
    path.write_bytes(b"PDX9" + plain[4:])
    assert "is no R data file" in refused(lambda: frame(path, "Shuttle"))
    path.write_bytes(plain.replace(struct.pack(">2i", 14, 14), struct.pack(">2i", 14, 2**31 - 1), 1))
    assert "announces 2,147,483,647 values" in refused(lambda: frame(path, "Shuttle"))
    path.write_bytes(plain[:7] + struct.pack(">4i", 2, 0, 0, 3))
    assert "R value of kind 3" in refused(lambda: frame(path, "Shuttle"))
    path.write_bytes(plain.replace(b"V3", b"W3"))
    assert "the columns are V1, V2, W3" in refused(lambda: shuttle.read(tmp_path))


@SAME_FOLDER
@given(place=st.integers(7, 1700), byte=st.integers(0, 255), cut=st.integers(100, 4000))
def test_no_damage_of_r_data_is_anything_but_a_data_error(tmp_path: Path, place: int, byte: int, cut: int) -> None:
    path = tmp_path / "Shuttle.rda"
    plain = bytearray(made.shuttle_rda(path, *made.shuttle_table(14)))
    plain[place % len(plain)] = byte
    path.write_bytes(plain[:cut])
    survives(lambda: shuttle.read(tmp_path, train=7))


# --- tables -----------------------------------------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "rows.csv") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_a_table_of_classes_is_split_always_the_same_way_and_of_each_class_its_share(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,kind\n" + "".join(f"{n},{n / 2},{'xyz'[n % 3]}\n" for n in range(30)))
    first, second = table.read(path), table.read(path)
    assert (first.x_train.shape, first.x_test.shape, first.class_names) == ((24, 2), (6, 2), ("x", "y", "z"))
    assert np.bincount(first.y_test).tolist() == [2, 2, 2]
    assert np.array_equal(first.x_test, second.x_test)
    together = np.sort(np.r_[first.x_train[:, 0], first.x_test[:, 0]])
    assert together.tolist() == list(range(30))


def test_numbers_are_targets_and_whole_numbers_classes_unless_told(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(f"{n},{n % 2}\n" for n in range(20)))
    assert table.read(path).class_names == ("0", "1")
    assert table.read(path, numeric=True).y_train.dtype == np.float32
    path = written(tmp_path, "".join(f"{n},{n + 0.5}\n" for n in range(20)))
    read = table.read(path, test=0.5)
    assert (read.y_train.shape, read.class_names) == ((10, 1), ())


def test_the_target_may_be_any_column(tmp_path: Path) -> None:
    path = written(tmp_path, "kind,a\n" + "".join(f"{n % 2},{n}\n" for n in range(20)))
    assert (
        sorted(table.read(path, target="kind").x_train[:, 0])[:2]
        == sorted(table.read(path, target="1").x_train[:, 0])[:2]
    )
    assert "has no column 'colour'; it has kind, a" in refused(lambda: table.read(path, target="colour"))


def test_train_and_test_files_share_their_classes(tmp_path: Path) -> None:
    written(tmp_path, "a,k\n1,b\n2,c\n", "train.csv")
    written(tmp_path, "a,k\n3,c\n4,b\n", "test.csv")
    read = table.read(tmp_path)
    assert (read.y_train.tolist(), read.y_test.tolist(), read.class_names) == ([0, 1], [1, 0], ("b", "c"))


@pytest.mark.parametrize(("text", "said"), [
    ("a,b,k\n1,2,x\n1,2\n", "line 3: has 2 columns, the first line has 3"),
    ("a,b,k\n1,2,x\n1,two,x\n", "line 3, column 2: 'two' is no finite number"),
    ("a,b,k\n1,2,x\n1,nan,x\n", "line 3, column 2: 'nan' is no finite number"),
    ("a,b,k\n1,2,x\n1,,x\n", "line 3, column 2: is empty"),
    ("a,b,k\n1,2,x\n1,2,\n", "line 3: the target, column 3, is empty"),
    ("a,b,k\n", "has a heading and no rows"),
    ("a\n1\n", "no table with inputs and a target"),
    ("", "no table with inputs and a target"),
    ("a,k\n1,x\n2,x\n3,y\n", "class y has 1 sample, too few for a training and a test part"),
    ("a,k\n1,3\n2,3\n3,7\n", "class 7 has 1 sample"),
    ("a,b,k\n1,2,x\n\n1,1e300,x\n", "line 4, column 2: '1e300' is too large for float32; scale or remove it"),
    ("a,k\n1,0.5\n\n2,1e300\n", "line 4: the target '1e300' is too large for float32"),
    ("a,k\n1,0.5\n2,inf\n", "line 3: the target 'inf' is no finite number"),
    ("a,k\n" + "".join(f"{n},{n}\n" for n in range(1500)), "1,500 different values; if it is a number to predict, say --numeric"),
])  # fmt: skip
def test_a_bad_table_says_line_and_column(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    message = refused(lambda: table.read(path))
    assert said in message and str(path) in message


def test_a_table_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xff\xfe\x00a,b\n")
    assert "is not a text file in UTF-8" in refused(lambda: table.read(path))


@SAME_FOLDER
@given(text=st.text(alphabet='1a,\n". -e', max_size=60))
def test_no_text_is_anything_but_a_table_or_a_data_error(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    survives(lambda: table.read(path))


# --- arrays, texts, reviews, radar ------------------------------------------------------------------------------------


def test_numpy_arrays_packed_and_single(tmp_path: Path) -> None:
    x, y = np.arange(40.0).reshape(10, 4), np.arange(10).reshape(-1, 1) % 2
    np.savez_compressed(tmp_path / "a.npz", x=x, y=y)
    read = arrays.read(tmp_path / "a.npz")
    assert (read.x_train.shape, read.x_train.dtype, read.y_test.shape) == ((8, 4), np.float32, (2,))
    folder = tmp_path / "single"
    folder.mkdir()
    for name, array in (("x_train", x), ("y_train", y[:, 0] / 2), ("x_test", x[:2]), ("y_test", y[:2, 0] / 2)):
        np.save(folder / f"{name}.npy", array)
    read = arrays.read(folder)
    assert (read.x_test.shape, read.y_train.shape, read.y_train.dtype) == ((2, 4), (10, 1), np.float32)


def test_a_number_of_numpy_that_is_too_large_is_refused_without_a_warning(tmp_path: Path) -> None:
    x, y = np.ones((20, 2)), np.arange(20) % 2
    x[:, 1] = 1e300
    np.savez(tmp_path / "a.npz", x=x, y=y)
    message = refused(lambda: checked(tmp_path / "a.npz", arrays.read(tmp_path / "a.npz"), 2))
    assert "the input of training sample 1 holds NaN or infinity" in message


def test_arrays_of_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], object), y=np.zeros(1))
    assert "without objects" in refused(lambda: arrays.read(tmp_path / "a.npz"))
    np.savez(tmp_path / "a.npz", images=np.zeros(3))
    assert "it has images" in refused(lambda: arrays.read(tmp_path / "a.npz"))
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    assert "no whole file" in refused(lambda: arrays.read(tmp_path / "a.npz"))


def test_a_text_is_split_in_its_own_order(tmp_path: Path) -> None:
    text = bytes(range(200)) * 5
    (tmp_path / "enwik8.gz").write_bytes(gzip.compress(text))
    read = characters.read(tmp_path, name="enwik8")
    assert (bytes(read.x_train), bytes(read.x_test)) == (text[:900], text[950:])
    (tmp_path / "enwik8.gz").write_bytes(gzip.compress(b"short"))
    assert "too short a text" in refused(lambda: characters.read(tmp_path, name="enwik8"))


def test_the_official_split_of_the_reviews_is_put_back(tmp_path: Path) -> None:
    items = made.reviews(tmp_path / "a" / "reviews.json", 6)
    read = reviews.read(tmp_path / "a")
    assert (len(read.x_train), len(read.x_test)) == (12, 12)
    assert all(text.startswith("train") for text in read.x_train)
    assert all(text.startswith("test") for text in read.x_test)
    assert [int(text.split()[1]) for text in read.x_train] == read.y_train.tolist()
    assert 0 < np.flatnonzero(read.y_train)[0] < 8  # the classes are mixed
    for item in items:
        part, label, number, _ = str(item["t"]).split()
        place = tmp_path / "b" / "aclImdb" / part / ("neg", "pos")[int(label)] / f"{number}_1.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(item["t"]), encoding="utf-8")
    again = reviews.read(tmp_path / "b")
    assert again.x_train.tolist() == read.x_train.tolist()
    assert again.y_test.tolist() == read.y_test.tolist()


@pytest.mark.parametrize(("text", "said"), [
    ("[", "is not JSON"),
    ("{}", "is not a list of reviews"),
    ('[{"t": "a", "s": 0}, {"t": "b", "s": 2}]', 'item 2 is not {"t": text, "s": 0 or 1}'),
    (json.dumps([{"t": "a", "s": n % 2} for n in range(8)]), "the official split is not to be found"),
])  # fmt: skip
def test_bad_reviews(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "reviews.json").write_text(text)
    assert said in refused(lambda: reviews.read(tmp_path))


def test_radar_rows_become_sequences_with_their_gaps(tmp_path: Path) -> None:
    made.radar(tmp_path / "train.csv")
    read = radar.read(tmp_path)
    assert (len(read.x_train), len(read.x_test), read.y_train.shape) == (8, 2, (8, 1))
    lengths = sorted(len(rows) for rows in (*read.x_train, *read.x_test))
    assert lengths == sorted((3, 1, 4, 2, 5, 2, 2, 3, 1, 6))
    first = read.x_train[0]
    assert (first.shape[1], first.dtype) == (22, np.float32)
    assert np.isnan(first).any()
    hours = np.rint(np.r_[read.y_train, read.y_test].ravel() / 0.254).astype(int)
    assert sorted(hours) == list(range(1, 11))
    assert checked("here", read, None, gaps=True).y_train.dtype == np.float32


@pytest.mark.parametrize(("change", "said"), [
    (lambda text: text.replace(",Expected", ""), "has no column Expected (the test file has none)"),
    (lambda text: text.replace("radardist_km", "distance"), "has no column radardist_km"),
    (lambda text: text.replace("10.0", "ten", 1), "cannot be read as a table of numbers"),
    (lambda text: text + text.splitlines()[1] + "\n", "the rows of an Id do not follow each other"),
    (lambda text: text.replace("0.254\n", "0.999\n", 1), "Expected differs within Id 1"),
    (lambda text: text.splitlines()[0] + "\n", "has no rows"),
])  # fmt: skip
def test_bad_radar_tables(tmp_path: Path, change: Callable[[str], str], said: str) -> None:
    made.radar(tmp_path / "train.csv")
    (tmp_path / "train.csv").write_text(change((tmp_path / "train.csv").read_text()))
    assert said in refused(lambda: radar.read(tmp_path))


# --- what all have in common ------------------------------------------------------------------------------------------


def samples(**changes: np.ndarray) -> Samples:
    parts = {"x_train": np.zeros((4, 2), np.float32), "y_train": np.array([0, 1, 0, 1]),
             "x_test": np.zeros((2, 2), np.float32), "y_test": np.array([0, 1])}  # fmt: skip
    return Samples(**{**parts, **changes})


@pytest.mark.parametrize(("changes", "said"), [
    ({"y_train": np.array([0, 1, 2, 1])}, "training sample 3 has label 2; labels are 0 to 1"),
    ({"y_test": np.array([0, -1])}, "test sample 2 has label -1"),
    ({"y_test": np.array([0, 0])}, "the test part has no sample of class 1"),
    ({"x_train": np.array([[0, 1], [2, np.nan], [0, 0], [0, 0]])}, "the input of training sample 2 holds NaN"),
    ({"x_test": np.full((2, 2), np.inf)}, "the input of test sample 1 holds NaN or infinity"),
    ({"x_test": np.zeros((2, 3))}, "training samples are 2, test samples 3"),
    ({"y_train": np.array([0, 1])}, "the training part has 4 samples and 2 labels"),
    ({"y_train": np.array([0, 1, 0, 0.5])}, "not one whole number a sample"),
    ({"x_test": np.zeros((0, 2)), "y_test": np.zeros(0, int)}, "the test part has 0 samples"),
])  # fmt: skip
def test_what_is_not_whole_is_refused(changes: dict[str, np.ndarray], said: str) -> None:
    assert said in refused(lambda: checked("here", samples(**changes), 2))


def test_a_bomb_stops_at_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(b"\0" * 10_000_000))
    assert "holds more than 1,000 bytes" in refused(lambda: files.content(path, 1000))


@pytest.mark.parametrize(
    ("asked", "count"), [(7, 7), ("33%", 19_800), ("57%", 34_200), ("0.001%", 1), ("100%", 60_000)]
)
def test_a_share_is_exact_and_at_least_one(asked: int | str, count: int) -> None:
    assert counted(asked, 60_000) == count
