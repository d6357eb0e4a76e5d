"""What more threads bring: cells that differ in nothing but the number of threads, and the answer in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from timetrial.records.record import Outcome
from timetrial.report import words
from timetrial.report.summary import Group, Row
from timetrial.spec.placement import Placement
from timetrial.stats.intervals import Ratio
from timetrial.stats.scaling import Point, Scaling, scaling

HEADS = ("engine", "threads", "time of a step", "speed-up", "efficiency", "than fewer threads")
_TITLED = ("model", "variant", "task", "batch", "dataset", "preprocessing")


@dataclass(frozen=True)
class Ladder:
    """One engine on more and more threads."""

    engine: str
    scaling: Scaling
    failures: tuple[tuple[int, Outcome], ...]  # numbers of threads on which it could not be measured


@dataclass(frozen=True)
class Workload:
    title: str
    ladders: tuple[Ladder, ...]


def workloads(groups: Sequence[Group]) -> list[Workload]:
    """Only of what was measured on more than one number of threads."""
    cells: dict[tuple[tuple[str, object], ...], dict[str, dict[int, Row]]] = {}
    floor: dict[tuple[tuple[str, object], ...], float] = {}
    for group in groups:
        key = tuple((name, value) for name, value in group.key if name != "placement")
        threads = _threads(group)
        if threads is not None:
            floor[key] = group.floor.value
            for row in group.rows:
                cells.setdefault(key, {}).setdefault(row.engine, {})[threads] = row
    found = {key: tuple(_ladders(engines, floor[key])) for key, engines in cells.items()}
    known = {key: ladders for key, ladders in found.items() if ladders}
    return [Workload(_title(key, known), ladders) for key, ladders in known.items()]


def _threads(group: Group) -> int | None:
    """Of a placement on the processor. On another device threads are not what the work is done with, and an engine as
    it ships takes as many whatever the placement."""
    if any(row.cell.get("threads") == "as-shipped" for row in group.rows):
        return None
    try:
        placement = Placement.parse(group.cell["placement"])
    except ValueError:  # of another version: nothing is known about it
        return None
    return placement.threads if placement.device == "cpu" else None


def _ladders(engines: Mapping[str, Mapping[int, Row]], floor: float) -> Iterator[Ladder]:
    for engine, rows in engines.items():
        measured = {threads: row.process_seconds for threads, row in rows.items() if row.step}
        if len(measured) > 1:
            failures = tuple((threads, row.outcome) for threads, row in sorted(rows.items()) if not row.step)
            yield Ladder(engine, scaling(measured, floor), failures)


def _title(key: tuple[tuple[str, object], ...], all_keys: Iterable[tuple[tuple[str, object], ...]]) -> str:
    """What people name it by, and whatever else tells it from the others."""
    cell, others = dict(key), [dict(other) for other in all_keys]
    parts = [f"batch {cell[name]}" if name == "batch" else str(cell.get(name) or "") for name in _TITLED]
    apart = [name for name in cell if name not in _TITLED and len({str(other.get(name)) for other in others}) > 1]
    return ", ".join([*(part for part in parts if part), *(f"{name} {cell[name]}" for name in apart)])


# --- in words


def answer(ladder: Ladder) -> str:
    """What the most threads bring, and from where on one more no longer helps."""
    first, last = ladder.scaling.points[0], ladder.scaling.points[-1]
    gain = f"{last.count} threads are {times(last.speedup)} as fast as {first.count}"
    return f"{ladder.engine}: {gain}, {share(last.efficiency)} of what they could be; {_decay(ladder.scaling)}."


def _decay(found: Scaling) -> str:
    last = found.points[-1].count
    if found.answer == "grows":
        return f"more threads help up to {last}, and beyond that was not measured"
    if found.answer == "decays":
        return (
            "more threads do not help"
            if found.decay == found.points[0].count
            else f"beyond {found.decay} they do not help"
        )
    more = f"; {found.more} more {'run' if found.more == 1 else 'runs'} of each would tell" if found.more else ""
    return f"whether more than {found.decay} help is undecided{more}"


def notes(ladder: Ladder) -> Iterator[str]:
    """What else there is to say: counts that failed, and gains that are too good."""
    for threads, outcome in ladder.failures:
        yield f"{ladder.engine} on {threads} threads: {outcome.kind}{f', {outcome.reason}' if outcome.reason else ''}."
    for point in ladder.scaling.points:
        if point.superlinear:
            least = ladder.scaling.points[0].count
            yield (
                f"{ladder.engine} on {point.count} threads gains more than the threads can explain: on {least} it was "
                "short of something else, often of memory or of cache."
            )


def times(found: Ratio) -> str:
    return f"{found.value:.2f}x" + _span(found, 1.0, "x")


def share(found: Ratio) -> str:
    return f"{100 * found.value:.0f} %" + _span(found, 100.0, " %")


def _span(found: Ratio, scale: float, unit: str) -> str:
    if found.low is None or found.high is None or found.low == found.high:
        return ""
    digits = 2 if scale == 1 else 0
    return f" [{scale * found.low:.{digits}f} to {scale * found.high:.{digits}f}{unit}]"


def cells(ladder: Ladder) -> Iterator[tuple[str, ...]]:
    """One line of the table for each number of threads, measured or not."""
    lines = {point.count: _cells(ladder, point) for point in ladder.scaling.points}
    for threads, outcome in ladder.failures:
        lines[threads] = (ladder.engine, str(threads), outcome.kind, *[words.NOTHING] * 3)
    yield from (line for _, line in sorted(lines.items()))


def _cells(ladder: Ladder, point: Point) -> tuple[str, ...]:
    step = point.step.word if point.step else words.NOTHING
    return (
        ladder.engine,
        str(point.count),
        words.timing(point.time),
        times(point.speedup),
        share(point.efficiency),
        step,
    )
