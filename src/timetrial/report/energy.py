"""Energy of a step over the runs that were made for it, and the energy-delay product beside the others'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from timetrial.records.choice import counted
from timetrial.records.energy import Domain, Energy
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report import words
from timetrial.stats.energy import relative
from timetrial.stats.intervals import Interval, Ratio, interval

_KINDS = {
    ("replay", "counter"): "a file played again, no measurement of these runs",
    ("model", "counter"): "a model, no measurement",
}
_STAND_INS = {"replay": "replayed", "model": "modelled"}


@dataclass(frozen=True)
class Spent:
    """Of one cell. Joules are those of the devices that take part, their idle power included."""

    joules: Interval
    active: Interval | None  # less what the same devices take doing nothing
    products: tuple[float, ...]  # energy-delay products of the processes
    products_all: tuple[float, ...]  # with idle devices; empty where there are none, or one is not known
    idle_watts: tuple[float, float] | None  # before and after, medians over the runs
    seconds: float  # the shortest window
    method: str
    marks: tuple[str, ...] = ()  # what makes the figure less than a measurement


@dataclass(frozen=True)
class Product:
    """An energy-delay product as a multiple of the reference's."""

    reference: str
    ratio: Ratio
    with_idle: Ratio | None = None


def spent(runs: Iterable[Record]) -> Spent | None:
    """None where no run could be measured."""
    found = [run.energy for run in runs if run.outcome.ok and run.energy]
    good = [one for one in found if not one.problem and (one.joules() or 0) > 0]
    if not good:
        return None
    return Spent(
        joules=interval([joules for one in good if (joules := one.per_step(one.joules()))]),
        active=_positive([one.per_step(one.active_joules()) for one in good]),
        products=tuple(product for one in good if (product := one.edp())),
        products_all=_with_idle(good),
        idle_watts=_idle(good),
        seconds=min(one.seconds or 0.0 for one in good),
        method=_method(good[0].parts()),
        marks=tuple(dict.fromkeys(mark for one in good for mark in _marks(one))),
    )


def _positive(values: Sequence[float | None]) -> Interval | None:
    """There is no logarithm of less than nothing: a run that cannot be told from idling has no figure."""
    known = [value for value in values if value is not None and value > 0]
    return interval(known) if len(known) == len(values) else None


def _with_idle(found: Sequence[Energy]) -> tuple[float, ...]:
    products = [one.edp(with_idle=True) for one in found if one.has_idle_devices]
    known = tuple(product for product in products if product is not None)
    return known if len(known) == len(found) else ()


def _idle(found: Sequence[Energy]) -> tuple[float, float] | None:
    watts = [[part.idle_watts for part in one.parts()] for one in found]
    sums = [(sum(pair[0] for pair in one if pair), sum(pair[1] for pair in one if pair)) for one in watts if all(one)]
    return (_median([a for a, _ in sums]), _median([b for _, b in sums])) if sums else None


def _median(values: Sequence[float]) -> float:
    from statistics import median

    return median(values)


def _marks(one: Energy) -> Iterator[str]:
    yield from (word for source, word in _STAND_INS.items() if any(part.source == source for part in one.parts()))
    if one.short:
        yield "window too short"


def _method(parts: Sequence[Domain]) -> str:
    named: dict[str, list[str]] = {}
    for part in parts:
        plain = f"{part.source} {'counters' if part.kind == 'counter' else 'power, sampled ten times a second'}"
        named.setdefault(_KINDS.get((part.source, part.kind), plain), []).append(part.domain)
    return "; ".join(f"{kind} ({', '.join(domains)})" for kind, domains in named.items())


def products(cells: Mapping[str, Spent]) -> dict[str, Product]:
    """By name. The first is the reference that the others are held against."""
    reference = next(iter(cells), None)
    if reference is None:
        return {}
    own = relative({name: cell.products for name, cell in cells.items()}, reference)
    idle = {name: cell.products_all for name, cell in cells.items() if cell.products_all}
    whole = relative(idle, reference) if reference in idle else {}
    return {name: Product(reference, ratio, whole.get(name)) for name, ratio in own.items()}


def short_words(found: Spent | None) -> str:
    """For the terminal: the figure, what of it is above idle, and what is to be said against it."""
    if found is None:
        return words.NOTHING
    remarks = [f"{words.energy(found.active.value)} above idle"] if found.active else []
    remarks += found.marks
    return words.joules(found.joules) + (f" ({', '.join(remarks)})" if remarks else "")


def small_print(found: Spent) -> tuple[str, ...]:
    """Below the figure, in the report."""
    above = (f"{words.joules(found.active)} above idle",) if found.active else ("not above idle",)
    window = f"window of {words.duration(found.seconds)}"
    if found.idle_watts is None:
        return (*found.marks, "idle power not measured", window)
    before, after = found.idle_watts
    return (*found.marks, *above, f"idle {words.figures(before)} W before, {words.figures(after)} W after", window)


def footnote(found: Spent) -> str:
    return f"Energy: {found.method}. What the same devices take while idle is part of the figure."


def product_note(found: Product) -> str:
    return f"EDP: time of a step times its energy, as a multiple of that of {found.reference}; below 1 is better."


def method(records: Iterable[Record]) -> list[tuple[str, str]]:
    """A row of the report's method, where energy was measured."""
    if not any(record.energy for record in records):
        return []
    return [(
        "Energy", "In runs of its own, over the steady laps: counters are read when these begin and end, a power ten "
        "times a second. A window lasts at least 5 s and 100 updates, else it is marked. What the same devices take "
        "for 5 s before and after the run, doing nothing, is idle power; above idle is what is left without it. The "
        "energy-delay product is time times energy, of the same laps, summed over the devices that take part; with "
        "idle devices, over all."
    )]  # fmt: skip


def shortcomings(records: Iterable[Record]) -> Iterator[str]:
    told: dict[str, None] = {}
    for record in counted(records):
        if record.energy is None:
            continue
        name = f"{record.cell.get('engine')} ({record.cell.get('model')}, {record.cell.get('placement')})"
        if problem := record.energy.problem:
            told[f"{name}: energy not measured in a run, {problem}."] = None
        elif record.energy.short:
            told[f"{name}: energy, {record.energy.short}."] = None
        told.update((f"Energy: {source}.", None) for source in record.energy.absent)
    yield from told


def why_not(store: Store, study: str) -> str:
    """What the last session said that was asked for energy and could not measure any; empty where it could."""
    said = list(store.sessions(study, "energy").values())
    return said[-1] or "" if said else ""
