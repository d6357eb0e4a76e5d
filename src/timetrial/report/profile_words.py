"""What profiles say, in words: the answer in a sentence, figures with their units, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from timetrial.profiling.compare import Change, Difference
from timetrial.profiling.profile import Header, Profile
from timetrial.profiling.views import COLUMNS, Cell, Key, choose, view
from timetrial.report import words

NAMED = 3  # parts of a step in the answer
_FLOP = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SCALES = {"flops": (_FLOP, "FLOP"), "flop_rate": (_FLOP, "FLOP/s"), "byte_rate": (_FLOP, "B/s")}
DIRECTION = "The speed-up is the time of BASE over the time of NEW: above 1, NEW is faster."


def answer(profile: Profile) -> str:
    """What takes most of a step, or why that cannot be said."""
    if profile.header.problems:
        return not_enough(profile.header)
    rows = view({"": profile}, choose("layer")).rows
    named = [(part(row.key), row.cells[0]) for row in islice(rows, NAMED)]
    said = [f"{name} {'takes ' if number == 0 else ''}{share(cell)}" for number, (name, cell) in enumerate(named)]
    return ", ".join([f"{said[0]} of the time of a step's operations", *said[1:]]) + "."


def not_enough(header: Header) -> str:
    return f"Not enough evidence: {'; '.join(header.problems)}."


def part(key: Key) -> str:
    """`conv2 backward` or `conv2 backward (layout)`; what belongs to no layer is named by its phase."""
    of, kind = key[:2], key[2:]
    name = " ".join(filter(None, of)) or "what has neither layer nor phase"
    return f"{name} ({kind[0]})" if kind else name


def share(cell: Cell | None) -> str:
    return words.percent(cell.share if cell else None)


def value(cell: Cell | None, column: str) -> str:
    """What is not known is '-', never 0."""
    found = COLUMNS[column].of(cell) if cell else None
    if found is None or found == "":
        return words.NOTHING
    return found if isinstance(found, str) else _figure(found, COLUMNS[column].unit)


def _figure(found: float, unit: str) -> str:
    if unit == "seconds":
        return words.duration(found)
    if unit == "share":
        return words.percent(found)
    if unit == "bytes":
        return words.memory(round(found))
    if unit == "count":
        return words.figures(found)
    scales, name = _SCALES[unit]
    scale, prefix = next(((s, p) for s, p in scales if found >= 0.9995 * s), scales[-1])
    return f"{words.figures(found / scale)} {prefix}{name}"


def evidence(header: Header) -> Mapping[str, str]:
    """How far a profile can be trusted, heading by heading."""
    return {
        "version": header.version or words.NOTHING,
        "step": words.duration(header.step_seconds),
        "profiled": words.duration(header.profiled_seconds),
        "overhead": f"{header.overhead:.3f}x",
        "coverage": words.percent(header.coverage),
        "attributed": words.percent(header.attributed),
        "recovered": words.percent(header.recovered),
        "steps": str(header.steps),
        "contended": "yes" if header.contended else "no",
        "evidence": "enough" if header.enough else "not enough",
    }


EVIDENCE = (
    "version", "step", "profiled", "overhead", "coverage", "attributed", "recovered", "steps", "contended", "evidence",
)  # fmt: skip
LEGEND = (
    "Step: without the profiler. Coverage: of a step, while an operation ran. Attributed: of the operations' time, "
    "what has a layer or a phase. Recovered: the operations' time over the step."
)


def notes(header: Header) -> list[str]:
    found = []
    if header.granularity_lost > 0:
        split = words.percent(header.granularity_lost)
        found.append(f"{split} of the time is in operations that do the work of several layers; it is split by work.")
    if header.overlapping:
        found.append(f"{header.overlapping} spans of one thread overlap; no instant is counted twice.")
    return [*found, *header.remarks]


# --- two profiles


def difference(found: Difference) -> str:
    """The steps, and how much of their difference the operations explain."""
    base, new = found.base.step_seconds, found.new.step_seconds
    ratio = f"{base / new:.2f}x" if new else words.NOTHING
    said = f"NEW takes {words.duration(new)} a step, BASE {words.duration(base)}: speed-up {ratio}."
    if found.explained is None:
        return f"{said} The steps differ by less than 1 %: there is hardly anything to explain."
    said += f" Operations explain {words.percent(found.explained)} of the difference"
    most = [f"{part(one.key)} {signed(one.delta)}" for one in found.changes[:NAMED] if one.delta]
    return f"{said}: {', '.join(most)}." if most else f"{said}."


def differs(found: Difference) -> str:
    pairs = [f"{name} {ours or words.NOTHING} → {theirs or words.NOTHING}" for name, ours, theirs in found.differs]
    return f"BASE → NEW: {', '.join(pairs)}." if pairs else "BASE and NEW differ in nothing that is recorded here."


def banner(found: Difference) -> str:
    return f"Not enough evidence: {'; '.join(found.problems)}." if found.problems else ""


def other_work(found: Difference) -> str:
    what = ", ".join(found.other_work)
    return f"They do not do the same work ({what} differs): a part may be faster because there is less of it."


def counts(found: Difference) -> str:
    return ", ".join(f"{count} {state}" for state, count in found.counts.items()) + "."


def signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '-' if seconds < 0 else ''}{words.duration(abs(seconds))}"


def of_all(one: Change, whole: float) -> str:
    return words.percent(one.delta / whole) if whole else words.NOTHING
