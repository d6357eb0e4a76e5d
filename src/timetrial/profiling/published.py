"""The report of the published study, to the character: what TensorFlow 1's profiler printed for types of operations.

A cell is `value (A%, B%)`: B is the row's share of all rows that are shown, A that of the row and all below it. Units
are decimal. Means over the steps, in whole microseconds and bytes, as the tool had them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import pandas as pd

if TYPE_CHECKING:
    from timetrial.profiling.profile import Profile

Order = Literal["micros", "bytes", "name"]
LEAST_MICROS = LEAST_BYTES = 1  # of a row and all below it, else it is not shown
NOT_MEASURED = "not measured"
_HEAD = "==================Model Analysis Report======================"
_END = "======================End of Report=========================="
_DOC = """Doc:
op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes belonging to the same type are aggregated together.
requested bytes: The memory requested by the operation, accumulatively.
total execution time: Sum of accelerator execution time and cpu execution time.
cpu execution time: The time from the start to the end of the operation. It's the sum of actual cpu run time plus the time that it spends waiting if part of computation is launched asynchronously.
accelerator execution time: Time spent executing on the accelerator. This is normally measured by the actual hardware library."""  # noqa: E501
_COLUMNS = ("requested bytes", "total execution time", "accelerator execution time", "cpu execution time")


@dataclass(frozen=True)
class Row:
    """One type of operation in a mean step."""

    name: str
    bytes: int | None  # None where the engine does not tell
    accelerator: int  # microseconds
    cpu: int

    @property
    def micros(self) -> int:
        return self.accelerator + self.cpu


def report(profile: Profile, precision: float | None = None, order: Order = "micros") -> str:
    """In the published form; with the precision that the network reached, where it is known, as its last line."""
    return printed(rows(profile), order) + ("" if precision is None else "\n" + reached(precision))


def rows(profile: Profile) -> list[Row]:
    """By type; what a session does for itself is none of the graph's operations."""
    ops = profile.ops[profile.ops["phase"] != "runtime"]
    steps = max(profile.header.steps, 1)
    stream = ops["thread"].astype(str).str.contains("stream", case=False).to_numpy()
    micros = ops["self_ns"].to_numpy(float) / 1000 / steps
    table = pd.DataFrame({
        "type": ops["type"].astype(object),
        "bytes": (ops["alloc_bytes"].astype("Float64") * ops["share"] / steps).astype("float64"),
        "accelerator": micros * stream,
        "cpu": micros * ~stream,
    })  # fmt: skip
    sums = table.groupby("type", sort=True).sum(min_count=1)
    return [
        Row(str(name), None if pd.isna(bytes_) else round(bytes_), round(accelerator), round(cpu))
        for name, bytes_, accelerator, cpu in sums.itertuples()
    ]


def printed(
    given: Iterable[Row], order: Order = "micros", least_micros: int = LEAST_MICROS, least_bytes: int = LEAST_BYTES
) -> str:
    shown = displayed(ordered(given, order), least_micros, least_bytes)
    columns = [
        cells([row.bytes for row in shown], memory_text),
        *(cells([getattr(row, kind) for row in shown], time_text) for kind in ("micros", "accelerator", "cpu")),
    ]
    lines = [
        f"{row.name:<25}" + ", ".join(f"{cell:>30}" for cell in found)
        for row, *found in zip(shown, *columns, strict=True)
    ]
    head = " | ".join(("node name", *_COLUMNS))
    return "\n".join(["", _HEAD, "", _DOC, "", "Profile:", head, *lines, "", _END])


def ordered(given: Iterable[Row], order: Order) -> list[Row]:
    """Largest first, and by name among equals."""
    by_name = sorted(given, key=lambda row: row.name)
    if order == "name":
        return by_name
    return sorted(by_name, key=lambda row: -((row.micros if order == "micros" else row.bytes) or 0))


def displayed(given: Sequence[Row], least_micros: int, least_bytes: int) -> list[Row]:
    """A row falls out where it and all below it together have less than the least."""
    micros = accumulated([row.micros for row in given])
    asked = accumulated([row.bytes or 0 for row in given])
    told = any(row.bytes is not None for row in given)
    return [
        row
        for row, time, size in zip(given, micros, asked, strict=True)
        if time >= least_micros and (size >= least_bytes or not told)
    ]


def accumulated(values: Sequence[int]) -> list[int]:
    """Each with all that come after it."""
    found, total = [], 0
    for value in reversed(values):
        total += value
        found.append(total)
    return found[::-1]


def shares(values: Sequence[int], of: Literal["memory", "time"]) -> list[tuple[float, float]]:
    """(A, B) of each value. The tool leaves A out where a row has no bytes itself, but not where it has no time."""
    sums = accumulated(values)
    total = sums[0] if sums else 0
    found = []
    for value, rest in zip(values, sums, strict=True):
        counts = value > 0 if of == "memory" else rest > 0
        found.append((100.0 * rest / total, 100.0 * value / total) if counts else (0.0, 0.0))
    return found


def cells(values: Sequence[int | None], text: Callable[[int], str]) -> list[str]:
    of: Literal["memory", "time"] = "memory" if text is memory_text else "time"
    found = shares([value or 0 for value in values], of)
    return [
        NOT_MEASURED if value is None else f"{text(value)} ({below:.2f}%, {own:.2f}%)"
        for value, (below, own) in zip(values, found, strict=True)
    ]


def time_text(micros: int) -> str:
    if micros < 1000:
        return f"{micros}us"
    return f"{micros / 1000:.2f}ms" if micros < 1_000_000 else f"{micros / 1_000_000:.2f}sec"


def memory_text(size: int) -> str:
    if size < 1000:
        return f"{size}B"
    return f"{size / 1000:.2f}KB" if size < 1_000_000 else f"{size / 1_000_000:.2f}MB"


def reached(precision: float, at: datetime | None = None) -> str:
    """The line with which the study's evaluation ended."""
    return f"{at or datetime.now():%Y-%m-%d %H:%M:%S.%f}: precision @ 1 = {precision:.3f}"
