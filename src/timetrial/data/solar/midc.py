"""Sensor grids as NREL's Measurement and Instrumentation Data Center gives them out: text with commas.

Two forms are read. The Oahu archive has one file a day without a header, in a fixed order of columns; downloads from
the site have a header, with the date and the time in one of several forms. Irradiance on a tilted plane is left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.data.samples import DataError
from timetrial.data.solar.grid import SECOND, Floats, Grid, when

# The stations of the Oahu grid by the archive's order of columns, with latitude and longitude; None stands for a sensor
# on a tilted plane.
_ORDER = (
    "DH3", "DH4", "DH5", "DH10", "DH11", "DH9", "DH2", "DH1", None, "AP6", None, "AP1", "AP3", "AP5", "AP4", "AP7",
    "DH6", "DH7", "DH8",
)  # fmt: skip
OAHU = {
    "DH1": (21.31533, -158.08700), "DH2": (21.31451, -158.08534), "DH3": (21.31236, -158.08463),
    "DH4": (21.31303, -158.08505), "DH5": (21.31357, -158.08424), "DH6": (21.31179, -158.08678),
    "DH7": (21.31418, -158.08685), "DH8": (21.31034, -158.08675), "DH9": (21.31268, -158.08688),
    "DH10": (21.31183, -158.08554), "DH11": (21.31042, -158.08530), "AP1": (21.31276, -158.08389),
    "AP3": (21.31281, -158.08163), "AP4": (21.31141, -158.07947), "AP5": (21.30983, -158.08249),
    "AP6": (21.30812, -158.07935), "AP7": (21.31478, -158.07785),
}  # fmt: skip
ZONES = {"hst": -10, "akst": -9, "pst": -8, "mst": -7, "cst": -6, "est": -5, "utc": 0, "gmt": 0}  # hours ahead of UTC
ZONES.update({"time": ZONES["hst"], "hhmm": ZONES["hst"]})  # without a name it is Oahu's
MISSING = -90.0  # what is below stands for no measurement: -99999, -7999, -99
_STATION = re.compile(r"\b(?:DH|AP)\d+\b", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """Which columns hold the time, by name of the part, and which the sensors."""

    columns: tuple[str, ...]
    clock: dict[str, str]
    zone: int  # hours ahead of UTC
    sensors: dict[str, str]  # column by sensor
    headed: bool


def read(path: Path) -> Grid:
    """One file, or all .csv and .txt files of a folder in the order of their times."""
    parts = [_file(file) for file in _files(path)]
    first = parts[0]
    for part in parts[1:]:
        if part.sensors != first.sensors:
            raise DataError(
                f"{part.source}: its sensors are {', '.join(part.sensors)}, but those of {first.source} are "
                f"{', '.join(first.sensors)}; the files of a folder must have the same"
            )
    parts.sort(key=lambda part: int(part.times[0]))
    for earlier, later in pairwise(parts):
        if later.times[0] <= earlier.times[-1]:
            raise DataError(
                f"{later.source}: begins {when(later.times[0])}, before {earlier.source} ends "
                f"({when(earlier.times[-1])}); keep one file a time"
            )
    return Grid(
        source=str(path),
        times=np.concatenate([part.times for part in parts]),
        sensors=first.sensors,
        values=np.concatenate([part.values for part in parts]),
        latitude=first.latitude,
        longitude=first.longitude,
        station={"place": "Kalaeloa, Oahu, Hawaii", "network": "NREL Oahu solar measurement grid"}
        if set(first.sensors) <= set(OAHU)
        else {"place": "of the user", "network": "sensors of the user"},
    )


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise DataError(f"{path}: is not there")
    if path.is_file():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in (".csv", ".txt") and file.is_file())
    if not found:
        raise DataError(f"{path}: holds no .csv and no .txt file")
    return found


def _file(path: Path) -> Grid:
    layout = _layout(path)
    table = _table(path, layout)
    numbers = [_numbers(path, table, column, layout.headed) for column in layout.sensors.values()]
    values = np.stack(numbers, axis=1).astype(np.float32)
    values[~(values > MISSING)] = np.nan
    position = np.array([OAHU.get(sensor, (np.nan, np.nan)) for sensor in layout.sensors])
    times = _times(path, table, layout)
    return Grid(str(path), times, tuple(layout.sensors), values, position[:, 0], position[:, 1])


def _layout(path: Path) -> Layout:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = next(csv.reader(file), [])
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not text in UTF-8") from None
    if not first:
        raise DataError(f"{path}, line 1: is empty")
    if all(_is_number(cell) for cell in first):
        return _archive(path, len(first))
    return _headed(path, tuple(cell.strip() for cell in first))


def _archive(path: Path, count: int) -> Layout:
    clock = {"second": "second", "year": "year", "doy": "doy", "clock": "clock"}
    columns = (*clock, *(name or f"tilted {i}" for i, name in enumerate(_ORDER)))
    if count != len(columns):
        raise DataError(
            f"{path}, line 1: has {count} columns, but a file without a header must be of the Oahu archive, with "
            f"{len(columns)}: seconds, year, day of the year, HST and {len(_ORDER)} sensors"
        )
    return Layout(columns, clock, ZONES["hst"], {name: name for name in _ORDER if name}, headed=False)


def _headed(path: Path, header: tuple[str, ...]) -> Layout:
    clock, zone = _clock(path, header)
    others = [column for column in header if column and column not in clock.values()]
    level = [column for column in others if re.search(r"global horiz|(?<![a-z])ghi?(?![a-z])", column, re.IGNORECASE)]
    level = level or [c for c in others if not re.search(r"tilt|^gt_|zenith|azimuth|airmass", c, re.IGNORECASE)]
    sensors: dict[str, str] = {}
    for column in level:
        if sensors.setdefault(_sensor(column), column) != column:
            raise DataError(f"{path}, line 1: two columns are of sensor '{_sensor(column)}'; rename one")
    if not sensors:
        raise DataError(f"{path}, line 1: has no column of a sensor beside those of the time")
    return Layout(header, clock, zone, sensors, headed=True)


def _clock(path: Path, header: Sequence[str]) -> tuple[dict[str, str], int]:
    """The columns of date and time: DATE with HST, or Year and DOY with HST and Seconds."""
    words = {column: re.sub(r"[^a-z].*", "", column.lower()) for column in header}
    kinds = {"year": "year", "doy": "doy", "seconds": "second", "second": "second", "date": "date", "ss": "second"}
    clock = {kinds[word]: column for column, word in reversed(words.items()) if word in kinds}
    zones = [(word, column) for column, word in words.items() if word in ZONES]
    if not zones or not ("date" in clock or {"year", "doy"} <= clock.keys()):
        raise DataError(
            f"{path}, line 1: needs columns DATE, or Year and DOY, and the time in a column named after its zone "
            f"({', '.join(sorted(ZONES)).upper()}); it has {', '.join(header)}"
        )
    word, clock["clock"] = zones[0]
    return clock, ZONES[word]


def _sensor(column: str) -> str:
    """GHI DH3 [W/m^2], GH_DH3: DH3. Another name is kept without its unit."""
    code = _STATION.search(column.replace("_", " "))
    return code[0].upper() if code else re.sub(r"\s*[\[(].*", "", column).strip()


def _table(path: Path, layout: Layout) -> Any:
    import pyarrow
    from pyarrow import csv as arrow

    dates = {layout.clock[part]: pyarrow.string() for part in ("date", "clock") if part in layout.clock}
    try:
        return arrow.read_csv(
            path,
            read_options=arrow.ReadOptions(column_names=list(layout.columns), skip_rows=int(layout.headed)),
            convert_options=arrow.ConvertOptions(null_values=["", "NaN", "nan", "NA"], column_types=dates),
        )
    except pyarrow.ArrowInvalid as error:
        found = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
        if not found:
            raise DataError(f"{path}: cannot be read as a table ({error})") from None
        line = _odd_line(path, int(found[1]))
        raise DataError(f"{path}, line {line}: has {found[2]} columns where line 1 has {found[1]}") from None


def _odd_line(path: Path, count: int) -> int:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return next((i for i, row in enumerate(csv.reader(file), 1) if row and len(row) != count), 1)


def _numbers(path: Path, table: Any, column: str, headed: bool) -> Floats:
    import pyarrow

    content = table[column]
    if not (pyarrow.types.is_floating(content.type) or pyarrow.types.is_integer(content.type)):
        if pyarrow.types.is_null(content.type):
            return np.full(len(content), np.nan)
        at, text = next(_no_numbers(content.to_pylist()), (0, ""))
        raise DataError(f"{path}, line {at + 1 + headed}, column '{column}': '{text}' is no number")
    found: Floats = content.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    return found


def _no_numbers(content: Sequence[Any]) -> Iterator[tuple[int, str]]:
    yield from ((i, str(text)) for i, text in enumerate(content) if text is not None and not _is_number(str(text)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _times(path: Path, table: Any, layout: Layout) -> Any:
    clock = layout.clock
    texts = np.array(table[clock["clock"]].to_pylist(), dtype=object)
    seconds = _of_day(path, texts, layout.headed)
    if "second" in clock:
        seconds = seconds + _whole(path, table, clock["second"], layout.headed)
    if "date" in clock:
        days = _dates(path, table[clock["date"]].to_pylist(), layout.headed)
    else:
        years = _whole(path, table, clock["year"], layout.headed) - 1970
        days = years.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
        days = days + _whole(path, table, clock["doy"], layout.headed) - 1
    return (days * 86_400 + seconds - layout.zone * 3600) * SECOND


def _whole(path: Path, table: Any, column: str, headed: bool) -> Any:
    numbers = _numbers(path, table, column, headed)
    odd = np.flatnonzero(numbers != np.floor(numbers))  # NaN is unequal to all
    if odd.size:
        raise DataError(f"{path}, line {odd[0] + 1 + headed}, column '{column}': wants a whole number")
    return numbers.astype(np.int64)


def _of_day(path: Path, texts: Any, headed: bool) -> Any:
    """Seconds from 9:15, 09:15:30 or 915; each text is understood once."""
    known, places = np.unique([str(text).strip() for text in texts], return_inverse=True)
    found = np.array([_clock_time(text) for text in known])
    if (found < 0).any():
        at = int(np.flatnonzero(found[places] < 0)[0])
        raise DataError(f"{path}, line {at + 1 + headed}: '{texts[at]}' is no time as 09:15, 09:15:30 or 915")
    return found[places]


def _clock_time(text: str) -> int:
    parts = re.fullmatch(r"(\d{1,2}):(\d\d)(?::(\d\d))?", text) or re.fullmatch(r"(\d{0,2}?)(\d{1,2})()(?:\.0*)?", text)
    if not parts:
        return -1
    hour, minute, second = (int(part or 0) for part in parts.groups())
    return hour * 3600 + minute * 60 + second if hour < 25 and minute < 60 and second < 60 else -1


def _dates(path: Path, texts: Sequence[Any], headed: bool) -> Any:
    """Days since 1970 from 9/8/2013 (month first, as the site writes) or 2013-09-08."""
    known, places = np.unique([str(text).strip() for text in texts], return_inverse=True)
    days = []
    for i, text in enumerate(known):
        parts = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text)
        try:
            day = np.datetime64(f"{parts[3]}-{int(parts[1]):02}-{int(parts[2]):02}" if parts else text, "D")
        except ValueError:
            line = int(np.flatnonzero(places == i)[0]) + 1 + headed
            raise DataError(f"{path}, line {line}: '{text}' is no date as 09/08/2013 or 2013-09-08") from None
        days.append(int(day.astype(np.int64)))
    return np.array(days)[places]
