"""All cells of a study in one picture: engines down, workloads across, each as a multiple of its fastest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from timetrial.report import words
from timetrial.report.summary import TITLED, Group, Row

Spec = dict[str, Any]
_PARTS = (
    "model",
    "variant",
    "task",
    "batch",
    "placement",
    "dataset",
    "preprocessing",
    "precision",
    "allocator",
    *TITLED,
    "machine",
)
_INKS = {"dark": "#1b1f24", "light": "white", "page": "currentColor"}  # of the text, on what lies below it
_DARK_FROM = 4.0  # as a multiple of the fastest: from there on white text is easier to read
_LABEL, _HEIGHT = 360, 24


def overview(groups: Sequence[Group]) -> alt.LayerChart | None:
    """None where one group alone is all there is, or nothing was measured."""
    columns = _columns(groups)
    cells = [_cell(row, column) for group, column in zip(groups, columns, strict=True) for row in group.rows]
    if len(groups) < 2 or not any(cell["times"] for cell in cells):
        return None
    # A list to sort by becomes part of an expression, and names come from outside: the scale has the order.
    y = alt.Y("engine:N", sort=None, scale=alt.Scale(domain=_ranked(groups)), title=None)
    x = alt.X("work:N", sort=None, title=None, axis=alt.Axis(orient="top", labelAngle=0, labelLimit=_LABEL))
    base = alt.Chart(alt.InlineData(values=cells)).encode(x=x, y=y, tooltip=["engine:N", "work:N", "time:N", "label:N"])
    shade = alt.Color("times:Q", scale=alt.Scale(type="log", scheme="blues"), legend=None)
    ink = alt.Color("ink:N", scale=alt.Scale(domain=list(_INKS), range=list(_INKS.values())), legend=None)
    layers = [
        base.transform_filter("isValid(datum.times)").mark_rect().encode(color=shade),
        base.mark_text(fontSize=12).encode(text="label:N", color=ink),
    ]
    chart: alt.LayerChart = alt.LayerChart(layer=layers).resolve_scale(color="independent")
    chart = chart.properties(height=_HEIGHT * len({cell["engine"] for cell in cells}))
    return chart


def _cell(row: Row, column: str) -> Spec:
    times = 1 / row.verdict.speedup.value if row.verdict else 1.0 if row.fastest else None
    label = f"{words.figures(times)}x" if times else words.duration(row.step.value) if row.step else row.outcome.kind
    ink = "page" if times is None else "light" if times >= _DARK_FROM else "dark"
    said = {"label": label, "time": words.timing(row.step), "ink": ink}
    return {"engine": row.engine, "work": column, "times": times, **said}


def _columns(groups: Sequence[Group]) -> list[str]:
    """Of each group what tells it from the others."""
    cells = [group.cell for group in groups]
    apart = [part for part in _PARTS if len({str(cell.get(part)) for cell in cells}) > 1]
    return [", ".join(f"batch {cell[p]}" if p == "batch" else str(cell.get(p) or "-") for p in apart) for cell in cells]


def _ranked(groups: Sequence[Group]) -> list[str]:
    """By the mean multiple over the workloads; those that were measured on fewer of them further down."""
    found: Mapping[str, list[float]] = {row.engine: [] for group in groups for row in group.rows}
    for group in groups:
        for row in group.rows:
            if times := _cell(row, "")["times"]:
                found[row.engine].append(math.log(times))
    return sorted(found, key=lambda engine: (-len(found[engine]), sum(found[engine]) / max(len(found[engine]), 1)))
