"""The charts of profiles, as Vega-Lite: where a step goes, its layers, and its layers under the roof.

Names come from outside: they are data and lists of a scale, never part of an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from timetrial.profiling.bottleneck_words import percent, short
from timetrial.profiling.bottlenecks import KINDS
from timetrial.profiling.roofline import Point, Roof
from timetrial.profiling.schema import PHASES
from timetrial.report import words
from timetrial.report.profile_groups import Seen, Work
from timetrial.report.style import KIND_COLOURS, PHASE_COLOURS, looks

Spec = dict[str, Any]
Drawn = alt.Chart | alt.LayerChart
MOST_LAYERS = 25
_BAR = 15
_ROW = 34


def shares(work: Work) -> Drawn | None:
    """A bar for each profile that is evidence enough: its step by what holds it up."""
    data = [
        {"engine": seen.name, "kind": short(one.kind), "order": KINDS.index(one.kind), "share": one.share,
         "said": percent(one.share), "time": words.duration(one.evidence.seconds)}
        for seen in work.profiles for one in seen.diagnosis.findings if one.share
    ]  # fmt: skip
    if not data:
        return None
    names = [seen.name for seen in work.profiles if seen.diagnosis.findings]
    met = [kind for kind in KINDS if short(kind) in {row["kind"] for row in data}]
    scale = alt.Scale(domain=[short(kind) for kind in met], range=[KIND_COLOURS[kind] for kind in met])
    y = alt.Y("engine:N", sort=None, scale=alt.Scale(domain=names), title=None)
    part = alt.Axis(format=".0%", tickCount=5)
    x = alt.X("share:Q", title="share of a step", axis=part, scale=alt.Scale(domain=[0, 1]))
    hue = alt.Color("kind:N", scale=scale, sort=None, legend=alt.Legend(columns=3))
    bars = _chart(data).mark_bar(stroke="currentColor", strokeWidth=0.6)
    tooltip = ["engine:N", "kind:N", "said:N", "time:N"]
    chart: alt.Chart = bars.encode(y=y, x=x, color=hue, order=alt.Order("order:Q"), tooltip=tooltip)
    return chart.properties(height=_ROW * len(names))


def layers(work: Work) -> Drawn | None:
    """Layers down in the order of the network, for each of them a bar a profile, its phases one after the other."""
    rows, order = _layer_rows(work)
    if not rows:
        return None
    names = [seen.name for seen in work.profiles]
    met = [phase for phase in PHASES if any(row["phase"] == phase for row in rows)]
    scale = alt.Scale(domain=met, range=[PHASE_COLOURS[phase] for phase in met])
    y = alt.Y("layer:N", sort=None, scale=alt.Scale(domain=order), title=None, axis=alt.Axis(labelLimit=220))
    beside = alt.YOffset("engine:N", sort=None, scale=alt.Scale(domain=names, paddingInner=0.15))
    x = alt.X("ms:Q", title="milliseconds of a step, under the profiler", axis=alt.Axis(format="~r", tickCount=6))
    bars = (
        _chart(rows)
        .mark_bar(stroke="currentColor", strokeWidth=0.4)
        .encode(
            y=y, yOffset=beside, x=x, color=alt.Color("phase:N", scale=scale, sort=None), order=alt.Order("order:Q"),
            tooltip=["engine:N", "layer:N", "phase:N", "time:N", "rate:N"],
        )
    )  # fmt: skip
    ends = _ends(rows)
    text = (
        _chart(ends)
        .mark_text(align="left", dx=4, fontSize=10, opacity=0.85)
        .encode(y=y, yOffset=beside, x=x, text="engine:N")
    )
    height = (_BAR * len(names) + 8) * len(order)
    return alt.LayerChart(layer=[bars, *([text] if len(names) > 1 else [])]).properties(height=height)


def _layer_rows(work: Work) -> tuple[list[Spec], list[str]]:
    """The layers that take longest; the others together, so that nothing is left out."""
    order = list(dict.fromkeys(layer for layer, _ in work.rows if layer is not None))
    totals = {layer: max(_total(seen, layer) for seen in work.profiles) for layer in order}
    met = [layer for layer in order if totals[layer]]
    kept = set(sorted(met, key=lambda layer: -totals[layer])[:MOST_LAYERS])
    rest = f"{len(met) - len(kept)} other layers"
    rows = []
    for seen in work.profiles:
        sums: dict[tuple[str, str], float] = {}
        for (layer, phase), seconds in seen.took.items():
            if layer is not None and seconds:
                key = (layer if layer in kept else rest, phase)
                sums[key] = sums.get(key, 0.0) + seconds
        rows += [_layer_row(seen, layer, phase, seconds) for (layer, phase), seconds in sums.items()]
    return rows, [layer for layer in met if layer in kept] + ([rest] if len(met) > len(kept) else [])


def _total(seen: Seen, layer: str) -> float:
    return sum(seconds for (of, _), seconds in seen.took.items() if of == layer)


def _layer_row(seen: Seen, layer: str, phase: str, seconds: float) -> Spec:
    point = seen.point(layer, phase)
    rate = f"{words.figures(point.rate / 1e9)} GFLOP/s" if point and point.rate else words.NOTHING
    return {
        "engine": seen.name, "layer": layer, "phase": phase, "order": PHASES.index(phase), "ms": 1e3 * seconds,
        "time": words.duration(seconds), "rate": rate,
    }  # fmt: skip


def _ends(rows: Sequence[Spec]) -> list[Spec]:
    sums: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (row["engine"], row["layer"])
        sums[key] = sums.get(key, 0.0) + row["ms"]
    return [{"engine": engine, "layer": layer, "ms": ms} for (engine, layer), ms in sums.items()]


def roofline(work: Work) -> Drawn | None:
    """Both axes logarithmic: operations a second against operations a byte, below what the machine allows."""
    found = [(seen, roof) for seen in work.profiles if (roof := seen.diagnosis.roof)]
    dots = [_dot(seen, point, roof) for seen, roof in found for point in seen.points if point.rate]
    if not dots:
        return None
    dots.sort(key=lambda dot: -float(dot["ms"]))  # the small ones before the large
    roofs = list({(roof.product.rate, roof.sweep.rate): roof for _, roof in found}.values())
    ends = _ends_of(dots, roofs)
    ticks = alt.Axis(format="~g", tickCount=5)
    across = alt.Scale(type="log", nice=False, domain=list(ends))
    x = alt.X("intensity:Q", title="operations for each byte, logarithmic", axis=ticks, scale=across)
    y = alt.Y("rate:Q", title="GFLOP/s, logarithmic", axis=ticks, scale=alt.Scale(type="log"))
    layers = [*_roofs(roofs, ends, x, y), _dots(dots, [seen.name for seen, _ in found], x, y)]
    return alt.LayerChart(layer=layers).properties(height=380)


def _roofs(roofs: Sequence[Roof], ends: tuple[float, float], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    dashes = alt.Scale(domain=["arithmetic", "bandwidth"], range=[[1, 0], [6, 3]])
    lines = _chart([part for i, roof in enumerate(roofs) for part in _line(roof, ends, i)])
    flat = _chart([_said(roof.ridge, roof, roof.product.engine) for roof in roofs])
    slope = _chart([_said(ends[0], roof, "") for roof in roofs])
    return [
        lines.mark_line(strokeWidth=2, color="currentColor").encode(
            x=x, y=y, detail=["roof:N", "part:N"], strokeDash=alt.StrokeDash("part:N", legend=None, scale=dashes)
        ),
        flat.mark_text(align="left", baseline="bottom", dy=-4, fontSize=11).encode(x=x, y=y, text="text:N"),
        slope.mark_text(align="left", baseline="top", dx=6, dy=6, fontSize=11).encode(x=x, y=y, text="text:N"),
    ]


def _dots(dots: Sequence[Spec], names: Sequence[str], x: alt.X, y: alt.Y) -> alt.Chart:
    look = looks(names)
    hues = alt.Scale(domain=list(names), range=[look[name].colour for name in names])
    shapes = alt.Scale(domain=["forward", "backward"], range=["circle", "diamond"])
    drawn: alt.Chart = (
        _chart(dots)
        .mark_point(filled=True, opacity=0.75, stroke="currentColor", strokeWidth=0.5)
        .encode(
            x=x,
            y=y,
            color=alt.Color("engine:N", sort=None, scale=hues),
            size=alt.Size("ms:Q", legend=None, scale=alt.Scale(range=[30, 900], zero=True)),
            shape=alt.Shape("phase:N", scale=shapes),
            tooltip=["engine:N", "layer:N", "phase:N", "time:N", "achieved:N", "bytes:N", "limit:N"],
        )
    )
    return drawn


def _dot(seen: Seen, point: Point, roof: Roof) -> Spec:
    assert point.seconds and point.rate and point.bandwidth
    return {
        "engine": seen.name, "layer": point.layer, "phase": point.phase, "intensity": point.intensity,
        "rate": point.rate / 1e9, "ms": 1e3 * point.seconds, "time": words.duration(point.seconds),
        "achieved": f"{words.figures(point.rate / 1e9)} GFLOP/s",
        "bytes": f"{words.figures(point.bandwidth / 1e9)} GB/s",
        "limit": f"{percent(point.attained(roof) or 0.0)} of the limit",
    }  # fmt: skip


def _ends_of(dots: Sequence[Spec], roofs: Sequence[Roof]) -> tuple[float, float]:
    """Of the horizontal axis: all dots and all ridges, and some room."""
    met = [dot["intensity"] for dot in dots] + [roof.ridge for roof in roofs]
    return min(met) / 2, max(met) * 4


def _line(roof: Roof, ends: tuple[float, float], number: int) -> list[Spec]:
    corners = (("bandwidth", ends[0]), ("bandwidth", roof.ridge), ("arithmetic", roof.ridge), ("arithmetic", ends[1]))
    return [{"roof": str(number), "part": part, "intensity": at, "rate": roof.at(at) / 1e9} for part, at in corners]


def _said(at: float, roof: Roof, engine: str) -> Spec:
    """The rate at the corner with the engine that reached it; the bandwidth elsewhere."""
    product, sweep = words.figures(roof.product.rate / 1e9), words.figures(roof.sweep.rate / 1e9)
    text = f"{product} GFLOP/s ({engine})" if engine else f"{sweep} GB/s"
    return {"intensity": at, "rate": roof.at(at) / 1e9, "text": text}


def _chart(values: Sequence[Spec]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(values)))
