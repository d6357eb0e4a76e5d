"""Percent of what the machine can do: a cell's operations a second over the best matrix product of its own session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from timetrial.meters.limits import Attempt, MachineLimits, percent_of_limit
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report.words import figures
from timetrial.spec.placement import Placement

Ceilings = Mapping[str, MachineLimits]  # by session


def ceilings(store: Store, study: str) -> dict[str, MachineLimits]:
    """Of those sessions in which limits were measured."""
    return {str(name): _limits(found) for name, found in store.sessions(study).items() if found}


def _limits(found: Mapping[str, Any]) -> MachineLimits:
    return MachineLimits(tuple(Attempt(**one) for one in found["attempts"]), tuple(found["missing"]))


def percent(runs: Iterable[Record], seconds: float, known: Ceilings) -> float | None:
    """None where no run's session measured a limit of this precision on so many threads, or nobody knows how many."""
    first, *_ = runs = list(runs)
    cell, best = first.cell, None
    if cell.get("threads") == "as-shipped":
        return None
    place = Placement.parse(cell["placement"])
    for session in {run.session for run in runs} & known.keys():
        found = known[session].best(str(cell["precision"]), place.threads, place.device)
        best = max((one for one in (found, best) if one), key=lambda one: one.rate, default=None)
    operations = cell.get("operations")
    return percent_of_limit(int(operations), seconds, best) if operations and best else None


def sentences(known: Ceilings) -> list[str]:
    """The limits themselves, best first seen, by precision and threads."""
    found: dict[tuple[str, str, int], Attempt] = {}
    for limits in known.values():
        for one in limits.attempts:
            key = (one.dtype, one.device, one.threads)
            if one.kind == "product" and (key not in found or found[key].rate < one.rate):
                found[key] = one
    return [
        f"{dtype} on {device}, {threads} thread{'' if threads == 1 else 's'}: {figures(best.rate / 1e9)} GFLOP/s "
        f"({best.engine} {best.version}, {best.size} x {best.size})"
        for (dtype, device, threads), best in sorted(found.items())
    ]
