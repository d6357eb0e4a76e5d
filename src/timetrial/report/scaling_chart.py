"""Speed-up against threads, as Vega-Lite. Loads Altair, so it is only imported when it is needed."""

from __future__ import annotations

from typing import Any

import altair as alt

from timetrial.report import charts, scaling
from timetrial.report.scaling import Workload


def speedup_chart(workload: Workload, look: charts.Looks) -> charts.Spec:
    """A line an engine with its intervals, beside the dashed line of what would be ideal."""
    names = [ladder.engine for ladder in workload.ladders]
    points = [point for ladder in workload.ladders for point in _points(ladder)]
    counts = sorted({point["threads"] for point in points})
    x = alt.X("threads:Q", title="threads", scale=alt.Scale(nice=False, padding=24),
              axis=alt.Axis(values=counts, format="d", grid=False))  # fmt: skip
    hue = charts._colour(names, look, legend=len(names) > 1)
    y = alt.Y("speedup:Q", title="speed-up; more is better", axis=alt.Axis(format="~g", tickCount=5))
    data = charts._chart(points)
    ideal = charts._chart([{"threads": count, "speedup": count / counts[0]} for count in counts])
    layers = [
        ideal.mark_line(strokeDash=[4, 4], strokeWidth=1.5, opacity=0.6, color="currentColor").encode(x=x, y=y),
        data.mark_rule(strokeWidth=7, opacity=0.35).encode(x=x, y=alt.Y("low:Q", title=""), y2="high", color=hue),
        data.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=55, filled=True)).encode(
            x=x, y=y, color=hue, tooltip=["engine:N", "threads:Q", "times:N", "share:N"]
        ),
    ]
    chart = alt.LayerChart(layer=layers).properties(height=300)
    return charts._spec(chart, f"Speed-up against threads by engine: {workload.title}")


def _points(ladder: scaling.Ladder) -> list[dict[str, Any]]:
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
