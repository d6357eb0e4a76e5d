"""A diagnosis in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from timetrial.profiling.bottlenecks import NEAR, SHORT_NS, Diagnosis, Finding, Kind

_TITLES: Mapping[Kind, tuple[str, str]] = {
    "compute": ("operations whose limit is arithmetic", "arithmetic"),
    "memory": ("operations whose limit is memory bandwidth", "bandwidth"),
    "work": ("the layers' own operations", "layers"),
    "input": ("waiting for batches", "batches"),
    "dispatch": ("starting operations", "starting operations"),
    "communication": ("communication", "communication"),
    "optimiser": ("the optimiser", "optimiser"),
    "layout": ("copies and transposes", "copies"),
    "other": ("operations that nothing is counted of", "not counted"),
}


def title(kind: Kind) -> str:
    return _TITLES[kind][0]


def short(kind: Kind) -> str:
    """For the legend of a chart."""
    return _TITLES[kind][1]


def answer(found: Diagnosis) -> str:
    """What holds the step up, with the evidence; what else is worth a look; what is not known."""
    if found.problems:
        return f"Not enough evidence: {'; '.join(found.problems)}."
    first = found.first
    if first is None:
        return "Nothing was measured."
    said = f"{percent(first.share or 0.0)} of a step goes to {title(first.kind)}"
    said += f": {detail}." if (detail := evidence(first)) else "."
    if places := _places(first):
        said += f" Most of it: {places}."
    also = [one for one in found.findings if one.named and one is not first]
    if also:
        said += " Also: " + "; ".join(f"{title(one.kind)}, {percent(one.share or 0.0)}" for one in also) + "."
    if first.kind == "work":
        said += f" Whether arithmetic or memory limits them is not known: {found.no_roof}."
    return said


def evidence(found: Finding) -> str:
    """The figures behind the share."""
    if found.share is None:
        return f"not measured: {found.note}"
    return _DETAILS[found.kind](found) if found.kind in _DETAILS and found.share else ""


def _places(found: Finding) -> str:
    return ", ".join(f"{name} ({percent(share)})" for name, share in found.evidence.places)


def _limited(found: Finding) -> str:
    seen = found.evidence
    if seen.flops_rate is None or seen.bytes_rate is None:
        return ""
    rate = f"{seen.flops_rate / 1e9:.3g} GFLOP/s" if found.kind == "compute" else f"{seen.bytes_rate / 1e9:.3g} GB/s"
    if seen.attained is None or seen.least is None or seen.seconds is None:
        return f"{seen.flops_rate / 1e9:.3g} GFLOP/s and {seen.bytes_rate / 1e9:.3g} GB/s"
    share = f"{rate}, {percent(seen.attained)} of this machine's limit"
    if seen.attained >= NEAR:
        return f"{share}, so less work helps, or a smaller precision"
    far = f"at the limit they would take {_time(seen.least)} instead of {_time(seen.seconds)}"
    return f"{share}, so it is how they are done that holds them up: {far}"


def _dispatched(found: Finding) -> str:
    seen = found.evidence
    gap = f"gaps between operations {percent(seen.gap or 0.0)}"
    count = f"{seen.short or 0.0:,.0f}"
    return f"{gap}, {count} operation{'' if count == '1' else 's'} below {SHORT_NS / 1e3:.0f} µs a step"


_DETAILS: Mapping[Kind, Callable[[Finding], str]] = {
    "compute": _limited,
    "memory": _limited,
    "work": _limited,
    "dispatch": _dispatched,
    "input": lambda _: "nothing else runs meanwhile",
}


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.1f} %"


def _time(seconds: float) -> str:
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if seconds >= s), (1e-6, "µs"))
    return f"{seconds / scale:.3g} {unit}"
