"""Numbers and verdicts for people: units that fit, three figures, intervals beside values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from timetrial.stats.floor import Floor
from timetrial.stats.intervals import Interval
from timetrial.stats.tails import Tails
from timetrial.stats.verdicts import Verdict

if TYPE_CHECKING:
    from timetrial.records.digest import Brief
    from timetrial.report.summary import Row

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_JOULES = ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"))
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
NOTHING = "-"


def figures(value: float, digits: int = 3) -> str:
    """Three significant figures, no exponent for everyday sizes, thousands apart."""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    return text if "e" not in text else f"{value:.1e}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    if seconds >= 120:
        return f"{seconds / 60:.0f} min"
    # 0.9996 ms is written as 1 ms, not as 1,000 µs: what rounds up takes the larger unit.
    scale, unit = next(((s, u) for s, u in _TIMES if seconds >= 0.9995 * s), _TIMES[-1])
    return f"{figures(seconds / scale)} {unit}"


def memory(size: int | None) -> str:
    if size is None:
        return NOTHING
    scale, unit = next(((s, u) for s, u in _BYTES if size >= s), (1, "B"))
    return f"{figures(size / scale)} {unit}"


def energy(joules: float | None) -> str:
    if joules is None:
        return NOTHING
    scale, unit = next(((s, u) for s, u in _JOULES if joules >= 0.9995 * s), _JOULES[-1])
    return f"{figures(joules / scale)} {unit}"


def joules(found: Interval | None) -> str:
    if found is None:
        return NOTHING
    width = found.half_width
    return energy(found.value) + ("" if width is None else f" ± {figures(100 * width, 2)} %")


def rate(value: float | None) -> str:
    return NOTHING if value is None else f"{figures(value)}/s"


def timing(found: Interval | None) -> str:
    """`1.23 ms ± 2.1 %`: the half width of the 95 % interval."""
    if found is None:
        return NOTHING
    width = found.half_width
    return duration(found.value) + ("" if width is None else f" ± {figures(100 * width, 2)} %")


def brief_line(found: Brief) -> str:
    """A cell in one line, its parts with tabs between: what it is, its time, its outcomes."""
    cell = found.cell
    names = ("model", "engine", "placement", "task", "batch", "variant", "precision")
    what = ", ".join(str(cell[name]) for name in names if cell.get(name) not in (None, ""))
    ends = ", ".join(f"{count} {kind}" for kind, count in found.outcomes.items())
    what = " ".join(what.split())  # a name from outside may hold what ends a line
    return f"{what}\t{timing(found.step)}\t{ends}"


def tails(found: Tails | None) -> str:
    """Only those percentiles that so many laps carry."""
    known = [] if found is None else [("p90", found.p90), ("p95", found.p95), ("p99", found.p99)]
    return ", ".join(f"{name} {duration(value)}" for name, value in known if value is not None)


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def error(row: Row) -> str:
    return NOTHING if row.error is None else f"mse {figures(row.error)}"


def baselines(row: Row, rms: bool = False) -> list[str]:
    """`persistence 0.0123`: the mean squared error of what needs no network, in the order of the dataset."""
    texts = {name: in_unit(error, row.unit) if rms else "" for name, error in row.baselines.items()}
    return [f"{name} {figures(row.baselines[name])}{f', {text} rms' if text else ''}" for name, text in texts.items()]


def in_unit(error: float, unit: tuple[str, float]) -> str:
    """The root of a mean squared error in the unit of what was measured: 41 W/m²."""
    name, size = unit
    return f"{figures(error**0.5 * size)} {name}" if name else ""


def errors(rows: Sequence[Row]) -> list[str]:
    """The errors over the held-out samples once more, in the unit of what was measured."""
    known = [row for row in rows if row.error is not None and row.unit[0]]
    if not known:
        return []
    found = [f"{row.engine} {in_unit(row.error, row.unit)}" for row in known if row.error is not None]
    beside = [f"{name} {in_unit(error, known[0].unit)}" for name, error in known[0].baselines.items()]
    return [f"Error over the held-out samples, root mean square: {', '.join(found + beside)}."]


def equivalence(row: Row) -> str:
    if row.equivalence is None:
        return NOTHING
    return "proved" if row.equivalence.passed else "WRONG"


def versus(found: Verdict | None, fastest: bool) -> str:
    """Against the fastest of its group, always as a factor of its time."""
    if fastest:
        return "fastest"
    if found is None:
        return NOTHING
    times = f"{1 / found.speedup.value:.2f}x its time"
    if found.word == "undecided":
        runs = "run" if found.more == 1 else "runs"
        more = f"; {found.more} more {runs} would decide" if found.more else ""
        return f"undecided ({times}{more})"
    return {"same": f"same ({times})", "slower": times, "faster": times}[found.word]


def floor(found: Floor) -> str:
    """What the verdicts stand beside: one cell measured under two names."""
    least = f"{figures(100 * found.value, 2)} %"
    if found.twins is None:
        return f"Noise floor not measured; no difference below {least} is claimed."
    seen = f"{figures(100 * abs(found.twins.value - 1), 2)} %"
    return f"Noise floor: one cell against itself differs by {seen}; no difference below {least} is claimed."


def answer(rows: Sequence[Row]) -> str:
    """The group's answer in one sentence."""
    measured = [row for row in rows if row.step]
    if not measured:
        return "No engine could be measured."
    first, *rest = measured
    if not rest:
        return f"Only {first.engine} could be measured: {timing(first.step)} a step."
    tied = [row.engine for row in rest if row.verdict and row.verdict.word in ("same", "undecided")]
    beaten = [row for row in rest if row.verdict and row.verdict.word == "slower" and row.verdict.speedup.low]
    words = f"{first.engine} is fastest with {timing(first.step)} a step"
    if tied:
        words += f", not told apart from {', '.join(tied)}"
    if beaten:
        least, most = 1 / beaten[0].verdict.speedup.value, 1 / beaten[-1].verdict.speedup.value  # type: ignore[union-attr]
        span = f"{least:.2f}x" if len(beaten) == 1 else f"{least:.2f}x to {most:.2f}x"
        words += (
            f"; {', '.join(row.engine for row in beaten)} {'takes' if len(beaten) == 1 else 'take'} {span} its time"
        )
    return words + "."
