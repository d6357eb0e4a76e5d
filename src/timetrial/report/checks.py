"""What a session's own checks found: of its inputs, of tiny numbers, of a drift, of the device's own clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from timetrial.records.choice import counted, floor_of
from timetrial.records.record import Laps, Record
from timetrial.report.words import duration, figures
from timetrial.stats.drift import Drift, drift
from timetrial.stats.intervals import process_value

Pairs = list[tuple[str, str]]
LEAST_GAIN = 0.05  # a repeated input that saves less is no sign of anything
KNOWN = {True: "taken for zero by", False: "kept by", None: "not tried with"}


def method(records: Sequence[Record]) -> Pairs:
    """Only what was checked: a rule without a figure is left out."""
    texts = (
        ("Inputs", _inputs(records)),
        ("Tiny numbers", _tiny(records)),
        ("Device time", _device(records)),
        ("Cool-down", _cooldown(records)),
    )
    return [(name, text) for name, text in texts if text]


def shortcomings(records: Sequence[Record]) -> list[str]:
    return [*_remembered(records), *_drifted(records)]


# --- a repeated input -------------------------------------------------------------------------------------------------


def repeated_share(laps: Laps) -> float | None:
    """Time of a step that meets one input again and again, over that of a step whose inputs cycle."""
    return median(laps.repeated) / median(laps.seconds) if laps.repeated and laps.seconds else None


def remembers(laps: Laps) -> bool:
    """By more than 5 %, and by more than laps scatter: each of them beats even the fastest of the others so far."""
    return bool(laps.repeated) and max(laps.repeated) < (1 - LEAST_GAIN) * min(laps.seconds)


def _checked(records: Iterable[Record]) -> list[tuple[Record, Laps, float]]:
    """Runs that repeated an input, and their share."""
    found = [(record, record.laps) for record in counted(records) if record.outcome.ok and record.laps]
    shares = [(record, laps, repeated_share(laps)) for record, laps in found]
    return [(record, laps, share) for record, laps, share in shares if share is not None]


def _inputs(records: Sequence[Record]) -> str:
    shares = sorted(share for _, _, share in _checked(records))
    if not shares:
        return ""
    span = f"{shares[0]:.2f}" if len(shares) == 1 else f"{shares[0]:.2f} to {shares[-1]:.2f}"
    return (
        "Different batches take turns through the laps. Once a cell, some laps after them met one batch again and "
        f"again: they took {span} of the time of the others. None of them is in the step time."
    )


def _remembered(records: Sequence[Record]) -> Iterator[str]:
    for record, laps, share in _checked(records):
        if remembers(laps):
            yield (
                f"{record.cell.get('engine')} ({_where(record)}): remembers its input: with one batch repeated a step "
                f"takes {share:.2f} of its time. Its answers may be kept, or its inputs in the processor's caches; "
                "its time here holds for inputs that change."
            )


# --- tiny numbers -----------------------------------------------------------------------------------------------------


def _tiny(records: Sequence[Record]) -> str:
    """Which engines flush, as each was tried at the end of its runs."""
    said: dict[str, dict[str, None]] = {}
    for record in records:
        if record.outcome.ok and "flush" in record.readback:
            does = KNOWN.get(record.readback["flush"], "kept by some threads of")
            said.setdefault(does, {})[_named(record)] = None
    if not said:
        return ""
    parts = [f"{does} {', '.join(sorted(names))}" for does, names in sorted(said.items())]
    text = f"Numbers below the normal range (1.2e-38 in float32), as each engine was tried: {'; '.join(parts)}."
    return text + (" With settings: {flush: true} all do the same, or are unsupported." if len(said) > 1 else "")


def _named(record: Record) -> str:
    asked = record.cell.get("flush")
    engine = str(record.cell.get("engine"))
    return engine if asked is None else f"{engine} (flush: {str(asked).lower()})"


# --- the device's clock, pauses, drift --------------------------------------------------------------------------------


def _device(records: Sequence[Record]) -> str:
    shares = [
        median(record.laps.device) / median(record.laps.seconds)
        for record in counted(records)
        if record.outcome.ok and record.laps and record.laps.device
    ]
    if not shares:
        return ""
    span = f"{100 * min(shares):.0f} %" + ("" if len(shares) == 1 else f" to {100 * max(shares):.0f} %")
    return (
        f"By the device's own clock, from the first to the last of a lap's work, a step took {span} of its wall time."
    )


def _cooldown(records: Sequence[Record]) -> str:
    pauses = sorted({record.cooldown for record in records if record.cooldown})
    return f"The machine was left alone for {' or '.join(map(duration, pauses))} before each run." if pauses else ""


def _drifted(records: Sequence[Record]) -> Iterator[str]:
    """The anchor cell, which comes again in every block, through each session."""
    floor = floor_of(records).value
    anchors = {record.trial for record in records if record.role == "twin"}
    runs: dict[tuple[str, str], list[Record]] = {}
    for record in counted(records):
        if record.trial in anchors and record.role != "memory" and record.outcome.ok and record.laps:
            runs.setdefault((record.session, record.trial), []).append(record)
    for of_session in runs.values():
        of_session.sort(key=lambda record: record.started)
        values = [process_value(record.laps.seconds) for record in of_session if record.laps]
        if change := _change(drift(range(len(values)), values, floor)):
            yield (
                f"{of_session[0].cell.get('engine')} ({_where(of_session[0])}), measured again and again, {change}: "
                "the machine drifted. Blocks share that out among the cells; the times themselves are less sure."
            )


def _change(found: Drift) -> str:
    """In words; nothing where there is no drift that is certain."""
    if found.kind == "slide" and found.slide:
        return f"took {_percent(found.slide.value)} from the session's first run of it to its last"
    if found.kind == "jump" and found.jump and found.jump_at is not None:
        return f"took {_percent(found.jump.value)} from its run {found.jump_at + 1} of {len(found.deviations)} on"
    return ""


def _percent(ratio: float) -> str:
    return f"{figures(100 * abs(ratio - 1), 2)} % {'more' if ratio > 1 else 'less'} time"


def _where(record: Record) -> str:
    return f"{record.cell.get('model')}, {record.cell.get('task')}, batch {record.cell.get('batch')}"
