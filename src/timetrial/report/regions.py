"""What the clocks ran over, where that is not the same for all: said before anything is ranked, and by figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from timetrial.records.choice import counted
from timetrial.records.record import Record
from timetrial.report import words
from timetrial.spec.region import DRAWN
from timetrial.spec.trial import Settings

if TYPE_CHECKING:
    from timetrial.report.summary import Row

Pairs = list[tuple[str, str]]
KEYS = ("preset", *DRAWN, "threads")
_DEFAULTS: Mapping[str, Any] = Settings().model_dump(include={*DRAWN, "threads"})


def value(cell: Mapping[str, Any], name: str) -> Any:
    """What cells must have in common to stand in one table. Those of a preset differ in these on purpose; records from
    before a setting was one were made with its default."""
    if name in _DEFAULTS and cell.get("preset"):
        return None
    return cell.get(name) or _DEFAULTS.get(name) or None


def title(cell: Mapping[str, Any]) -> str:
    if cell.get("preset"):
        return f"as published by {cell['preset']}"
    return ", ".join(f"{k} {cell[k]}" for k in _DEFAULTS if cell.get(k) not in (None, _DEFAULTS[k]))


def banner(rows: Iterable[Row]) -> str:
    """Empty where all the clocks ran over the same work."""
    measured = [row for row in rows if row.step and row.includes]
    by_region: dict[str, list[str]] = {}
    for row in measured:
        by_region.setdefault(row.includes, []).append(row.engine)
    if len(by_region) < 2:
        return ""
    study = next((str(row.cell["preset"]) for row in measured if row.cell.get("preset")), "")
    purpose = f" on purpose, as the programs of the study '{study}' had it" if study else ""
    said = "; ".join(f"{', '.join(engines)}: [{region}]" for region, engines in by_region.items())
    return (
        f"NOT LIKE WITH LIKE: these clocks ran over different work{purpose}. What is faster here is the whole program, "
        f"not the engine alone. {said}"
    )


def timed(records: Sequence[Record]) -> list[str]:
    """The words that the records carry; where they differ, with what they are for."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for record in records:
        if record.includes:
            task, engine = str(record.cell.get("task", "")), str(record.cell.get("engine", ""))
            found.setdefault(task, {}).setdefault(record.includes, {})[engine] = None
    return [
        _for(task if len(found) > 1 else "", engines if len(regions) > 1 else (), text)
        for task, regions in sorted(found.items())
        for text, engines in sorted(regions.items())
    ]


def _for(task: str, engines: Iterable[str], text: str) -> str:
    lead = ", ".join([*filter(None, [task]), *engines])
    return f"{lead}: {text}" if lead else text


def method(records: Sequence[Record]) -> Pairs:
    pairs = (("Epochs", _epochs(records)), ("Waiting for input", _inputs(records)))
    return [(name, text) for name, text in pairs if text]


def _epochs(records: Sequence[Record]) -> str:
    steps = sorted({record.laps.epoch for record in records if record.laps and record.laps.epoch})
    if not steps:
        return ""
    return (
        f"A lap is a whole epoch of {' or '.join(f'{n:,}' for n in steps)} steps, or several; its seconds are shared "
        "out among the steps. The first step is timed apart, before it."
    )


def _inputs(records: Sequence[Record]) -> str:
    """By engine: the median seconds that a step waited for its batch, and their share of it."""
    found: dict[str, list[tuple[float, float]]] = {}
    for record in counted(records):
        if record.outcome.ok and record.laps and record.laps.input:
            pair = median(record.laps.input), median(record.laps.seconds)
            found.setdefault(str(record.cell.get("engine")), []).append(pair)
    if not found:
        return ""
    said = [_waited(engine, pairs) for engine, pairs in found.items()]
    return f"Of a step, spent by the host until its batch was there: {'; '.join(said)}. It is in the step time."


def _waited(engine: str, pairs: Sequence[tuple[float, float]]) -> str:
    seconds, share = median(s for s, _ in pairs), median(s / step for s, step in pairs)
    return f"{engine} {words.duration(seconds)} ({words.figures(100 * share, 2)} %)"


def threads(records: Sequence[Record]) -> Iterator[str]:
    """What engines took that were given no number of threads."""
    used: dict[str, list[float]] = {}
    for record in counted(records):
        if record.cell.get("threads") == "as-shipped" and record.outcome.ok and record.effort:
            used.setdefault(str(record.cell.get("engine")), []).append(record.effort.cores_used)
    for engine, cores in used.items():
        yield (
            f"{engine}: threads as shipped: it kept {median(cores):.2f} cores busy. Neither set nor held against a "
            "limit, so a difference may be one of threads alone."
        )
