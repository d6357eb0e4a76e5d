"""The charts of a group, as Vega-Lite. This module loads Altair, so it is only imported when it is needed.

Names of engines come from outside: they are data and lists of a scale, never part of an expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from timetrial.report import scaling, words
from timetrial.report.phases import PHASES, Phases
from timetrial.report.scaling import Ladder, Workload
from timetrial.report.style import PHASES as PHASE_COLOURS
from timetrial.report.style import Look, looks
from timetrial.report.summary import Group, Row
from timetrial.report.versions import History
from timetrial.stats.breakeven import Course, leaders

Spec = dict[str, Any]
Looks = Mapping[str, Look]
ROW_HEIGHT = 30
LOG_FROM = 8.0  # slowest over fastest: beyond it a common zero leaves the fast ones no room
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_POINTS_A_DECADE = 12


def step_chart(group: Group, look: Looks) -> Spec | None:
    """A dot for each process, the interval as a rule; what could not be measured has its line too."""
    measured = [row for row in group.rows if row.step]
    return wide(steps(group, look), f"Time of a step by engine: {group.title}") if measured else None


def steps(group: Group, look: Looks) -> alt.LayerChart:
    measured = [row for row in group.rows if row.step]
    all_times = [seconds for row in measured for seconds in _extent(row)]
    scale, unit = next(((s, u) for s, u in _UNITS if max(all_times) >= s), _UNITS[-1])
    log = max(all_times) / min(all_times) > LOG_FROM
    names = list(dict.fromkeys(row.engine for row in group.rows))
    y = alt.Y("engine:N", sort=None, scale=alt.Scale(domain=names), title=None)
    hue = _colour(names, look)
    axis = alt.Scale(type="log", nice=False, padding=12) if log else alt.Scale(zero=True, nice=True)
    title = f"time of a step in {unit}{', logarithmic' if log else ''}; less is better"
    ticks = alt.Axis(format="~g", tickCount=5) if log else alt.Axis(format="~r", tickCount=5)

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=axis, title=title, axis=ticks)

    rules = _chart([_rule(row, scale) for row in measured])
    dots = _chart([dot for row in measured for dot in _dots(row, scale)])
    layers = [
        rules.mark_rule(strokeWidth=9, opacity=0.4).encode(y=y, x=x("low"), x2="high", color=hue),
        dots.mark_circle(size=42, opacity=0.75, stroke=None).encode(
            y=y, x=x("seconds"), color=hue, tooltip=["engine:N", "process:N", "step:N"]
        ),
        rules.mark_tick(thickness=2, size=20, color="currentColor").encode(
            y=y, x=x("value"), tooltip=["engine:N", "median:N", "processes:N"]
        ),
    ]
    unmeasured = [
        {"engine": row.engine, "text": f"not measured: {row.outcome.kind}"} for row in group.rows if not row.step
    ]
    if unmeasured:
        layers.append(_chart(unmeasured).mark_text(align="left", fontStyle="italic", opacity=0.8).encode(
            y=y, x=alt.value(6), text="text:N"
        ))  # fmt: skip
    return alt.LayerChart(layer=layers).properties(height=ROW_HEIGHT * len(names))


def _extent(row: Row) -> list[float]:
    bounds = (row.step.low, row.step.high) if row.step else ()
    return [*row.process_seconds, *(bound for bound in bounds if bound is not None)]


def _rule(row: Row, scale: float) -> Spec:
    """Without an interval the rule has no length: nothing is drawn but the tick."""
    assert row.step is not None
    low, high = row.step.low, row.step.high
    value = row.step.value / scale
    return {
        "engine": row.engine,
        "value": value,
        "low": value if low is None else low / scale,
        "high": value if high is None else high / scale,
        "median": words.timing(row.step),
        "processes": str(row.step.processes),
    }


def _dots(row: Row, scale: float) -> list[Spec]:
    return [
        {"engine": row.engine, "seconds": seconds / scale, "process": str(i), "step": words.duration(seconds)}
        for i, seconds in enumerate(row.process_seconds, 1)
    ]


def start_chart(group: Group, phases: Mapping[str, Phases]) -> Spec | None:
    """What passes before an engine runs at its pace, phase on phase."""
    totals = {engine: sum(parts.values()) for engine, parts in phases.items() if parts}
    if not totals:
        return None
    names = sorted(totals, key=lambda engine: totals[engine])
    titles = [title for _, title in PHASES]
    data = [
        {
            "engine": engine,
            "phase": title,
            "order": i,
            "seconds": phases[engine][key],
            "time": words.duration(phases[engine][key]),
        }
        for engine in names
        for i, (key, title) in enumerate(PHASES)
        if key in phases[engine]
    ]
    chart = (
        _chart(data)
        .mark_bar(stroke="currentColor", strokeWidth=0.6)
        .encode(
            y=alt.Y("engine:N", sort=None, scale=alt.Scale(domain=names), title=None),
            x=alt.X("seconds:Q", title="seconds; less is better", axis=alt.Axis(format="~r", tickCount=5)),
            color=alt.Color("phase:N", scale=alt.Scale(domain=titles, range=list(PHASE_COLOURS))),
            order=alt.Order("order:Q"),
            tooltip=["engine:N", "phase:N", "time:N"],
        )
    )
    return wide(chart.properties(height=ROW_HEIGHT * len(names)), f"Time to get going by engine: {group.title}")


def course_chart(group: Group, lines: Mapping[str, Course], look: Looks) -> Spec | None:
    """Time since the start against steps, both logarithmic: where two lines cross, the slow start is paid for."""
    if len(lines) < 2:
        return None
    decades = _decades(lines)
    names = list(lines)
    dash = alt.Scale(domain=names, range=[list(look[name].dash) for name in names])
    # The points are worked out where they are drawn: a line is two numbers here.
    points = f"sequence({decades * _POINTS_A_DECADE + 1})"
    chart = (
        _chart([{"engine": name, "start": line.start, "step": line.step} for name, line in lines.items()])
        .transform_calculate(i=points)
        .transform_flatten(["i"])
        .transform_calculate(steps=f"pow(10, datum.i / {_POINTS_A_DECADE})")
        .transform_calculate(seconds="datum.start + datum.steps * datum.step")
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("steps:Q", scale=alt.Scale(type="log", nice=False), title="steps, logarithmic",
                    axis=alt.Axis(format="~s", values=[10**i for i in range(decades + 1)])),
            y=alt.Y("seconds:Q", scale=alt.Scale(type="log", nice=False), title="seconds since the start, logarithmic",
                    axis=alt.Axis(format="~g", tickCount=5)),
            color=_colour(names, look, legend=True),
            strokeDash=alt.StrokeDash("engine:N", scale=dash, sort=None),
            tooltip=["engine:N"],
        )
    )  # fmt: skip
    return wide(chart.properties(height=320), f"Time against number of steps by engine: {group.title}")


def _decades(lines: Mapping[str, Course]) -> int:
    """Until all have crossed and the start of the slowest is hardly seen any more, but no endless way."""
    last = leaders(lines)[-1][0]
    settled = max(line.start / line.step for line in lines.values())
    enough = 10 * max(last, settled, 10.0)
    return next((decades for decades in range(2, 9) if 10**decades >= enough), 9)


def speedup_chart(workload: Workload, look: Looks) -> Spec:
    """A line an engine with its intervals, beside the dashed line of what would be ideal."""
    names = [ladder.engine for ladder in workload.ladders]
    points = [point for ladder in workload.ladders for point in _climb(ladder)]
    counts = sorted({point["threads"] for point in points})
    x = alt.X("threads:Q", title="threads", scale=alt.Scale(nice=False, padding=24),
              axis=alt.Axis(values=counts, format="d", grid=False))  # fmt: skip
    hue = _colour(names, look, legend=len(names) > 1)
    y = alt.Y("speedup:Q", title="speed-up; more is better", axis=alt.Axis(format="~g", tickCount=5))
    data = _chart(points)
    ideal = _chart([{"threads": count, "speedup": count / counts[0]} for count in counts])
    layers = [
        ideal.mark_line(strokeDash=[4, 4], strokeWidth=1.5, opacity=0.6, color="currentColor").encode(x=x, y=y),
        data.mark_rule(strokeWidth=7, opacity=0.35).encode(x=x, y=alt.Y("low:Q", title=""), y2="high", color=hue),
        data.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=55, filled=True)).encode(
            x=x, y=y, color=hue, tooltip=["engine:N", "threads:Q", "times:N", "share:N"]
        ),
    ]
    chart = alt.LayerChart(layer=layers).properties(height=300)
    return wide(chart, f"Speed-up against threads by engine: {workload.title}")


def _climb(ladder: Ladder) -> list[Spec]:
    """Without an interval the rule has no length."""
    return [
        {
            "engine": ladder.engine,
            "threads": point.count,
            "speedup": point.speedup.value,
            "low": point.speedup.value if point.speedup.low is None else point.speedup.low,
            "high": point.speedup.value if point.speedup.high is None else point.speedup.high,
            "times": scaling.times(point.speedup),
            "share": scaling.share(point.efficiency),
        }
        for point in ladder.scaling.points
    ]


def version_chart(title: str, found: Sequence[History]) -> Spec | None:
    """A line an engine over its versions, oldest first, with the interval of each."""
    measured = [(history.engine, row) for history in found for row in history.rows if row.step]
    if not measured:
        return None
    most = max(max(_extent(row)) for _, row in measured)
    scale, unit = next(((s, u) for s, u in _UNITS if most >= s), _UNITS[-1])
    names = [history.engine for history in found]
    data = _chart([{**_rule(row, scale), "engine": name, "version": f"{name} {row.version}"} for name, row in measured])
    x = alt.X("version:N", sort=None, title=None, axis=alt.Axis(labelAngle=-30))
    hue = _colour(names, looks(names), legend=len(names) > 1)
    y = alt.Y("value:Q", title=f"time of a step in {unit}; less is better", axis=alt.Axis(format="~g", tickCount=5))
    layers = [
        data.mark_rule(strokeWidth=7, opacity=0.35).encode(x=x, y=alt.Y("low:Q", title=""), y2="high", color=hue),
        data.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=55, filled=True)).encode(
            x=x, y=y, color=hue, tooltip=["version:N", "median:N"]
        ),
    ]
    chart = alt.LayerChart(layer=layers).properties(height=280)
    return wide(chart, f"Time of a step by version: {title}")


def vega_lite() -> str:
    """The version that Altair writes for, as vl-convert names it."""
    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def _chart(values: Sequence[Spec]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(values)))


def _colour(names: Sequence[str], look: Looks, legend: bool = False) -> alt.Color:
    scale = alt.Scale(domain=list(names), range=[look[name].colour for name in names])
    return alt.Color("engine:N", scale=scale, sort=None, legend=alt.Legend(symbolStrokeWidth=2.5) if legend else None)


def wide(chart: alt.Chart | alt.LayerChart, description: str) -> Spec:
    """As wide as its place on the page. The colours of text are the page's, see `chart_config`."""
    sized = chart.properties(
        width="container", autosize=alt.AutoSizeParams(type="fit-x", contains="padding"), description=description
    )
    spec: Spec = sized.to_dict()
    spec.pop("config", None)
    return spec
