"""What the same work takes in energy on one placement and another: cells that differ in engine and placement alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.report import words
from timetrial.report.energy import Spent, products
from timetrial.report.scaling import _title, times
from timetrial.report.summary import Group
from timetrial.stats.intervals import Interval

HEADS = ("engine", "placement", "time of a step", "energy a step", "above idle", "EDP", "with idle devices", "remarks")


@dataclass(frozen=True)
class Bill:
    title: str
    answer: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Item:
    engine: str
    placement: str
    step: Interval
    energy: Spent

    @property
    def name(self) -> str:
        return f"{self.engine} on {self.placement}"


def bills(groups: Sequence[Group]) -> list[Bill]:
    """Only of what was measured on more than one placement; within one the table of the group says it."""
    found: dict[tuple[tuple[str, object], ...], list[_Item]] = {}
    for group in groups:
        key = tuple((name, value) for name, value in group.key if name != "placement")
        placement = str(group.cell["placement"])
        measured = [_Item(row.engine, placement, row.step, row.energy) for row in group.rows if row.step and row.energy]
        found.setdefault(key, []).extend(measured)
    known = {key: items for key, items in found.items() if len({item.placement for item in items}) > 1}
    return [_bill(_title(key, known), items) for key, items in known.items()]


def _bill(title: str, items: Sequence[_Item]) -> Bill:
    ranked = sorted(items, key=lambda item: item.step.value)
    found = products({item.name: item.energy for item in ranked})
    least = min(ranked, key=lambda item: item.energy.joules.value)
    best = min(ranked, key=lambda item: found[item.name].ratio.value)
    answer = (
        f"{least.name} takes least energy, {words.energy(least.energy.joules.value)} a step; the energy-delay product, "
        f"as a multiple of that of {ranked[0].name}, is least for {best.name}: {times(found[best.name].ratio)}."
    )
    rows = []
    for item in ranked:
        product = found[item.name]
        whole = words.NOTHING if product.with_idle is None else times(product.with_idle)
        rows.append((
            item.engine, item.placement, words.timing(item.step), words.joules(item.energy.joules),
            words.joules(item.energy.active), times(product.ratio), whole,
            ", ".join(item.energy.marks) or words.NOTHING,
        ))  # fmt: skip
    return Bill(title, answer, tuple(rows))
