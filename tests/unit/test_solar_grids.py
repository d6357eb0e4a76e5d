"""Sensor grids: the sun and its clear sky, the readers of files, and the synthetic grid's plausibility."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from timetrial.data.samples import DataError
from timetrial.data.solar import clouds, entries, melpitz, midc, sun, synthetic
from timetrial.data.solar.grid import SECOND, Grid, when
from timetrial.data.solar.synthetic import Scene

SMALL = Scene(sensors=6, days=1, start="2011-03-01", lowest=40)


def moment(text: str) -> np.ndarray:
    return np.array([int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND])


def grid(values: Any, step: int = 1, **changes: Any) -> Grid:
    """Sensors a, b, … along a line of about 100 m, by day at Oahu."""
    values = np.asarray(values, np.float32)
    count = values.shape[1]
    start = int(moment("2010-08-01T22:00:00")[0])
    fields = {
        "source": "made.csv", "times": start + np.arange(len(values)) * step * SECOND,
        "sensors": tuple("abcdefghijklmnopqrstuvwxyz"[:count]), "values": values,
        "latitude": 21.3 + np.arange(count) * 1e-3, "longitude": -158.0 + np.arange(count) ** 2 * 1e-4,
    }  # fmt: skip
    return Grid(**{**fields, **changes})


# --- the sun ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "latitude", "longitude", "degrees"), [
    ("2003-10-17T19:30:30", 39.742476, -105.1786, 39.872),  # the worked example of NREL's solar position algorithm
    ("2000-06-21T12:02:00", 51.4779, 0.0, 61.96),  # noon at Greenwich: 90 - latitude + obliquity
    ("2010-03-20T12:07:30", 0.0, 0.0, 89.94),  # an equinox at the equator
    ("2013-12-21T22:29:00", 21.3069, -157.8583, 45.26),  # noon at Honolulu in winter
])  # fmt: skip
def test_the_sun_stands_where_it_should(at: str, latitude: float, longitude: float, degrees: float) -> None:
    assert sun.elevation(moment(at), latitude, longitude)[0] == pytest.approx(degrees, abs=0.1)


@pytest.mark.parametrize(("day", "latitude", "longitude", "minutes"), [
    ("2010-06-21", 21.3069, -157.8583, 13 * 60 + 26),  # Honolulu
    ("2010-12-21", 21.3069, -157.8583, 10 * 60 + 50),
    ("2023-06-21", 51.5074, -0.1278, 16 * 60 + 38),  # London
    ("2023-12-22", 51.5074, -0.1278, 7 * 60 + 50),
    ("2010-03-20", 0.0, 0.0, 12 * 60 + 7),  # refraction and the sun's disc make a day of the equator longer than half
])  # fmt: skip
def test_days_are_as_long_as_almanacs_say(day: str, latitude: float, longitude: float, minutes: int) -> None:
    midnight = moment(day + "T00:00:00")[0] - round(longitude * 240) * SECOND
    heights = sun.elevation(midnight + np.arange(86_400) * SECOND, latitude, longitude)
    assert (heights > sun.HORIZON).sum() / 60 == pytest.approx(minutes, abs=2)


def test_the_clear_sky_is_that_of_haurwitz() -> None:
    """Known values of the model, as other implementations give them."""
    heights = [-20, -0.05, 5, 10, 30, 50, 90]
    known = [0, 0, 48.6298687941956, 135.741748091813, 487.894132885425, 778.766689344363, 1035.09203253450]
    assert sun.clear_sky(heights) == pytest.approx(known)


# --- grids ------------------------------------------------------------------------------------------------------------


def test_positions_become_metres_around_the_middle() -> None:
    made = grid(np.ones((3, 2)), latitude=np.array([21.0, 21.01]), longitude=np.array([-158.0, -158.0]))
    assert made.metres == pytest.approx(np.array([[0, -555.97], [0, 555.97]]), abs=0.1)
    assert made.step == 1


@pytest.mark.parametrize(("changes", "words"), [
    ({"times": np.array([3, 3, 4]) * SECOND}, "made.csv, row 2: 1970-01-01 00:00:03 UTC is there twice"),
    ({"times": np.array([3, 5, 4]) * SECOND}, "row 3: 1970-01-01 00:00:04 UTC comes after 1970-01-01 00:00:05 UTC"),
    ({"sensors": ("a", "a")}, "two sensors are named 'a'"),
    ({"sensors": ("a", "b", "c")}, "3 times and 3 sensors, but values of 3x2"),
    ({"latitude": np.array([1.0])}, "2 sensors, but 1 positions"),
    ({"times": np.array([], int)}, "0 times and 2 sensors"),
])  # fmt: skip
def test_a_grid_that_cannot_be_is_refused_with_its_place(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=r"made\.csv") as caught:
        grid(np.ones((3, 2)), **changes)
    assert words in str(caught.value)


# --- files of MIDC ----------------------------------------------------------------------------------------------------

ARCHIVE = "{second},2010,213,{clock}," + ",".join(["{value}"] * 19) + "\n"


def archive(path: Path, rows: int = 5, clock: int = 1215, value: str = "500.25") -> Path:
    path.write_text("".join(ARCHIVE.format(second=second, clock=clock, value=value) for second in range(rows)))
    return path


def test_a_file_of_the_oahu_archive_is_read(tmp_path: Path) -> None:
    made = midc.read(archive(tmp_path / "20100801.txt"))
    assert when(made.times[0]) == "2010-08-01 22:15:00 UTC"  # 12:15 in Hawaii
    assert (made.step, len(made.times), len(made.sensors)) == (1, 5, 17)
    assert made.sensors[:8] == ("DH3", "DH4", "DH5", "DH10", "DH11", "DH9", "DH2", "DH1")
    assert made.place == pytest.approx((21.312, -158.084), abs=0.002)
    assert made.values[0, 0] == 500.25
    assert np.ptp(made.metres, axis=0) == pytest.approx([948, 802], abs=5)


def test_columns_of_a_tilted_plane_are_left_out(tmp_path: Path) -> None:
    cells = ["0", "2010", "213", "1215", *map(str, range(100, 119))]
    (tmp_path / "day.txt").write_text(",".join(cells) + "\n" + ",".join(["1", *cells[1:]]) + "\n")
    values = dict(zip((made := midc.read(tmp_path / "day.txt")).sensors, made.values[0], strict=True))
    assert (values["DH1"], values["AP6"], values["AP1"], values["DH8"]) == (107, 109, 111, 118)
    assert not {108.0, 110.0} & set(map(float, made.values[0]))


@pytest.mark.parametrize(("header", "row"), [
    ("DATE (MM/DD/YYYY),HST,GHI DH3 [W/m^2],GHI_AP7 [W/m^2],Global Tilt DH1", "8/1/2010,12:15,1,2,3"),
    ("Date,UTC,GH_DH3,GH_AP7", "2010-08-01,22:15:00,1,2"),
    ("Year,DOY,HST,Seconds,GHI DH3,GHI AP7", "2010,213,1215,0,1,2"),
    ("year,doy,HHMM,SS,DH3,AP7", "2010,213,1215,0,1,2"),
    ("SS,Year,DOY,MST,GHI AP7,GHI DH3", "0,2010,213,1515,2,1"),
    ("\ufeffDATE,TIME,dh3,ap7", "08/01/2010,12:15:00,1,2"),
])  # fmt: skip
def test_downloads_with_a_header_are_read_in_any_of_their_forms(tmp_path: Path, header: str, row: str) -> None:
    (tmp_path / "mine.csv").write_text(f"{header}\n{row}\n")
    made = midc.read(tmp_path / "mine.csv")
    assert [when(at) for at in made.times] == ["2010-08-01 22:15:00 UTC"]
    assert dict(zip(made.sensors, map(float, made.values[0]), strict=True)) == {"DH3": 1, "AP7": 2}


def test_other_sensors_are_read_without_positions(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("Date,UTC,roof [W/m2],yard\n2010-08-01,22:15,1,\n2010-08-01,22:16,-99999,4\n")
    made = midc.read(tmp_path / "mine.csv")
    assert made.sensors == ("roof", "yard")
    assert np.array_equal(made.values, np.array([[1, np.nan], [np.nan, 4]], np.float32), equal_nan=True)
    assert made.central() == 0
    with pytest.raises(DataError, match=r"mine\.csv: no sensor has a position"):
        _ = made.place


def test_the_files_of_a_folder_are_joined_in_the_order_of_their_times(tmp_path: Path) -> None:
    archive(tmp_path / "a.txt", clock=1216)
    archive(tmp_path / "b.txt", clock=1215)
    (tmp_path / "notes.md").write_text("not data")
    made = midc.read(tmp_path)
    assert len(made.times) == 10
    assert when(made.times[0]) == "2010-08-01 22:15:00 UTC"
    archive(tmp_path / "c.txt", clock=1215)
    with pytest.raises(DataError, match=r"c\.txt: begins 2010-08-01 22:15:00 UTC, before .*b\.txt ends"):
        midc.read(tmp_path)


GOOD = "Date,UTC,a,b\n2010-08-01,22:15,1,2\n"


@pytest.mark.parametrize(("text", "words"), [
    ("", "line 1: is empty"),
    ("1,2,3\n", "line 1: has 3 columns, but a file without a header must be of the Oahu archive, with 23"),
    (GOOD + "2010-08-01,22:16,1\n", "line 3: has 3 columns where line 1 has 4"),
    (GOOD + "2010-08-01,22:16,1,2,9\n", "line 3: has 5 columns where line 1 has 4"),
    (GOOD + "2010-08-01,22:16,1,broken\n", "line 3, column 'b': 'broken' is no number"),
    (GOOD + "2010-08-01,25:16,1,2\n", "line 3: '25:16' is no time"),
    (GOOD + "2010-08-41,22:16,1,2\n", "line 3: '2010-08-41' is no date"),
    (GOOD + "2010-08-01,22:15,1,2\n", "row 2: 2010-08-01 22:15:00 UTC is there twice"),
    ("Date,a\n2010-08-01,1\n", "line 1: needs columns DATE, or Year and DOY, and the time in a column named after"),
    ("UTC,a\n22:15,1\n", "it has UTC, a"),
    ("Date,UTC\n2010-08-01,22:15\n", "has no column of a sensor"),
    ("Date,UTC,GHI DH1,GH_DH1\n2010-08-01,22:15,1,2\n", "two columns are of sensor 'DH1'"),
    ("Year,DOY,UTC,a\n2010,1.5,1215,3\n", "line 2, column 'DOY': wants a whole number"),
])  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        midc.read(tmp_path / "mine.csv")
    assert str(caught.value).startswith(str(tmp_path / "mine.csv")) and words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_has_the_whole_path_and_a_record_the_name_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(GOOD)
    read = midc.read(tmp_path / "mine.csv")
    assert (read.source, read.name) == (str(tmp_path / "mine.csv"), "mine.csv")


def test_a_folder_without_data_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.csv"):
        midc.read(tmp_path)
    with pytest.raises(DataError, match="is not there"):
        midc.read(tmp_path / "gone")
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DataError, match="is not text"):
        midc.read(tmp_path)


# --- the file of HOPE-Melpitz -----------------------------------------------------------------------------------------


def hope(path: Path, names: bytes = b"(lp0\n(I1\n(lp1\nI2\naI7\natp2\na.", positions: tuple[int, ...] = (2, 7)) -> Path:
    rows = np.zeros(4, [("index", "<i8"), ("values_block_0", "<f4", (2,))])
    rows["index"] = moment("2013-09-08T09:15:00") + np.arange(4) * SECOND
    rows["values_block_0"] = np.arange(8).reshape(4, 2)
    places = np.zeros(len(positions), [("index", "<i8"), ("values_block_0", "<f4", (2,))])
    places["index"], places["values_block_0"] = positions, [(51.5 + i / 1000, 12.9) for i in range(len(positions))]
    with h5py.File(path, "w") as file:
        file.create_group("data").create_dataset("table", data=rows)
        file["data"].attrs["non_index_axes"] = np.bytes_(names)
        file.create_group("latlon").create_dataset("table", data=places)
    return path


def test_the_hdf5_file_is_read_without_unpickling(tmp_path: Path) -> None:
    made = melpitz.read(hope(tmp_path / "hope.h5"))
    assert made.sensors == ("2", "7")
    assert made.values.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert when(made.times[-1]) == "2013-09-08 09:15:03 UTC"
    assert made.latitude == pytest.approx([51.5, 51.501])


def test_a_pickle_that_would_run_something_is_only_listed(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    evil = f"cos\nsystem\n(S'touch {mark}'\ntR.".encode()
    with pytest.raises(DataError, match=rf"^{tmp_path}/hope\.h5: 2 columns of measurements, but names for 0"):
        melpitz.read(hope(tmp_path / "hope.h5", names=evil))
    assert not mark.exists()


def test_files_that_are_not_of_melpitz_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"hope\.h5: 'latlon/table' has no position of sensor 7"):
        melpitz.read(hope(tmp_path / "hope.h5", positions=(2,)))
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(DataError, match="is no HDF5 file"):
        melpitz.read(tmp_path / "text.h5")
    with pytest.raises(DataError, match="is not there"):
        melpitz.read(tmp_path / "gone.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.create_group("data")
    with pytest.raises(DataError, match="has no table 'data/table'"):
        melpitz.read(tmp_path / "other.h5")


def test_a_file_under_the_right_name_with_other_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMETRIAL_HOPE_MELPITZ", str(hope(tmp_path / "hope.h5")))
    with pytest.raises(DataError, match="is not the file of dataset 'hope-melpitz': its SHA-256"):
        entries.open_grid("hope-melpitz")


def test_a_dataset_that_is_not_there_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path))
    for name in ("hope-melpitz", "oahu"):
        monkeypatch.delenv(f"TIMETRIAL_{name.upper().replace('-', '_')}", raising=False)
        with pytest.raises(DataError, match=f"'{name}' does not come with Timetrial: get it .* set TIMETRIAL_"):
            entries.open_grid(name)
    (tmp_path / "data" / "grids" / "oahu").mkdir(parents=True)
    archive(tmp_path / "data" / "grids" / "oahu" / "20100801.txt")
    assert len(entries.open_grid("oahu?horizon=2").times) == 5


def real() -> Path:
    kept = entries._path("hope-melpitz")
    if kept is None or not kept.exists():
        pytest.skip("the file of HOPE-Melpitz is not here; name it in TIMETRIAL_HOPE_MELPITZ")
    return kept


def test_the_real_hour_of_melpitz_is_as_described() -> None:
    made = melpitz.read(real())
    assert (made.values.shape, made.step) == ((3601, 50), 1)
    assert (when(made.times[0]), when(made.times[-1])) == ("2013-09-08 09:15:00 UTC", "2013-09-08 10:15:00 UTC")
    assert not np.isnan(made.values).any()
    assert (made.values.min(), made.values.max()) == pytest.approx((37.2, 1102.6), abs=0.1)
    assert np.ptp(made.metres, axis=0) == pytest.approx([2013, 1930], rel=0.02)  # as its own UTM coordinates
    assert sun.elevation(made.times[[0, -1]], *made.place) == pytest.approx([38.6, 42.8], abs=0.1)


# --- the synthetic grid -----------------------------------------------------------------------------------------------


def index_of(made: Grid) -> np.ndarray:
    return made.values / sun.clear_sky(sun.elevation(made.times, *made.place))[:, None]


def correlations(index: np.ndarray, metres: np.ndarray, bounds: tuple[float, ...]) -> list[float]:
    apart = np.hypot(*(metres[:, None] - metres).transpose(2, 0, 1))
    pairs = np.corrcoef(index.T)
    return [float(pairs[(apart >= low) & (apart < high) & (apart > 0)].mean()) for low, high in pairwise(bounds)]


def test_the_synthetic_grid_is_labelled_and_the_same_for_the_same_scene() -> None:
    first = synthetic.make(SMALL)
    synthetic.make.cache_clear()
    again, other = synthetic.make(SMALL), synthetic.make(Scene(**{**SMALL.__dict__, "seed": 2}))
    assert first.synthetic
    assert "synthetic" in first.source
    assert all("synthetic" in words for words in first.station.values())
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values[:1000], other.values[:1000])
    assert first.sensors == ("1", "2", "3", "4", "5", "6")
    assert set(np.diff(first.times)) == {SECOND}
    assert sun.elevation(first.times, *first.place).min() >= 39.99


def test_days_have_other_clouds_and_the_place_its_own_time() -> None:
    made = synthetic.make(Scene(sensors=2, days=2, lowest=60))
    nights = np.flatnonzero(np.diff(made.times) > SECOND)
    assert len(nights) == 1
    days = np.split(made.values, nights + 1)
    assert len(days[0]) == pytest.approx(len(days[1]), rel=0.02)
    assert abs(np.corrcoef(days[0][:5000, 0], days[1][:5000, 0])[0, 1]) < 0.9
    noon = made.times[len(days[0]) // 2]
    assert datetime.fromtimestamp(noon // SECOND, UTC).hour == 22  # 12:37 in Hawaii
    assert datetime.fromtimestamp(noon // SECOND, UTC).day == 1


def test_the_synthetic_sky_is_plausible() -> None:
    """Against an hour of broken clouds at Melpitz: correlation by distance 0.91, 0.85, 0.79, 0.72, 0.65; two modes."""
    made = synthetic.make(Scene(sensors=25, days=1, extent=1500, start="2010-09-01", seed=3))
    index = index_of(made)
    near = correlations(index, made.metres, (0, 200, 400, 800, 1500))
    assert near == sorted(near, reverse=True)
    assert 0.8 < near[0] < 0.99
    assert 0.4 < near[-1] < 0.95
    shade, between, open_sky = (
        np.mean((index > low) & (index < high)) / (high - low) for low, high in ((0.3, 0.75), (0.75, 0.95), (0.95, 1.3))
    )
    assert between < min(shade, open_sky) / 2
    assert 1.1 < np.percentile(index, 99.5) < 1.5  # brighter than a clear sky beside clouds
    ramps = np.abs(index[10:] - index[:-10])[made.times[10:] - made.times[:-10] == 10 * SECOND]
    assert 0.01 < np.sqrt(np.mean(np.square(ramps))) < 0.15  # at Melpitz 0.123
    assert np.percentile(ramps, 99) > 5 * np.percentile(ramps, 50)


def test_clouds_reach_a_sensor_downwind_later() -> None:
    rng, seconds = np.random.default_rng(4), np.arange(4000.0)
    metres = np.array([[0.0, 0.0], [300.0, 0.0], [0.0, 300.0]])
    seen = clouds.thickness(rng, (clouds.Layer(10.0, 0.0, 1.0),), seconds, metres)
    assert seen[30:, 1] == pytest.approx(seen[:-30, 0], abs=0.02)  # 300 m at 10 m/s
    assert not np.allclose(seen[30:, 2], seen[:-30, 0], atol=0.2)
    assert seen.dtype == np.float32


@pytest.mark.parametrize(("changes", "words"), [
    ({"sensors": 0}, "from 1 to 1000 sensors, not 0"),
    ({"days": 61}, "from 1 to 60 days, not 61"),
    ({"start": "yesterday"}, "'yesterday' is no day"),
    ({"cover": 1.5}, "a cover between 0 and 1"),
    ({"latitude": 80.0, "start": "2010-12-21"}, "does not rise above 5 degrees at latitude 80"),
])  # fmt: skip
def test_scenes_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as caught:
        synthetic.make(Scene(**changes))
    assert words in str(caught.value)


@pytest.mark.slow
def test_the_default_grid_takes_seconds() -> None:
    synthetic.make.cache_clear()
    start = time.process_time()
    made = synthetic.make(Scene())
    assert time.process_time() - start < 30
    assert made.values.shape[1] == 50
    start = time.process_time()
    assert synthetic.make(Scene()) is made
    assert time.process_time() - start < 0.1
