"""Energy and the energy-delay product. Pure: joules, watts and seconds in, figures out; unknown stays unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from timetrial.stats.intervals import Ratio, ratio


def total(joules: Iterable[float | None]) -> float | None:
    """A sum of which one part is not known is not known, nor is one of no parts."""
    parts = list(joules)
    known = [part for part in parts if part is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def above_idle(joules: float, idle_watts: float, seconds: float) -> float:
    """What the work took beyond what the device takes anyway. Negative where it is less than its own noise."""
    return joules - idle_watts * seconds


def edp(seconds: float, joules: Iterable[float]) -> float:
    """Time multiplied with the energy of all devices together: low only for what is both quick and frugal."""
    return seconds * sum(joules)


def relative(products: Mapping[str, Sequence[float]], reference: str) -> dict[str, Ratio]:
    """Each by name, as a multiple of the named reference: above 1 is worse. The values of a name are its processes';
    the interval is Welch's on their logarithms, where there are at least two on both sides."""
    base = products[reference]
    return {name: Ratio(1.0, 1.0, 1.0) if name == reference else ratio(base, own) for name, own in products.items()}
