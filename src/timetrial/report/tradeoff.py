"""What accuracy costs: models that learn the same data, by the time of a step against what they got right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from timetrial.report import charts, words
from timetrial.report.summary import GROUP_KEYS, Group, Row
from timetrial.stats.intervals import Interval

HEADS = ("model", "engine", "parameters", "multiply-adds", "step", "speed-up", "accuracy", "change", "nothing beats it")
_ACROSS = ("model", "task")  # everything else is the same for all points of a picture


@dataclass(frozen=True)
class Point:
    model: str
    engine: str
    parameters: int
    multiply_adds: int
    step: Interval
    accuracy: float
    front: bool = False  # no other is both faster and more accurate


@dataclass(frozen=True)
class Tradeoff:
    """Points from much to little computing: the first of an engine is what its others are held against."""

    title: str
    cost: str  # which step is the cost
    points: tuple[Point, ...]

    def first(self, point: Point) -> Point:
        return next(one for one in self.points if one.engine == point.engine)


def tradeoffs(groups: Sequence[Group]) -> list[Tradeoff]:
    """One for each dataset, batch and placement on which several models were trained and tested. The cost is the time
    of a prediction where that was measured too."""
    alike: dict[tuple[object, ...], list[Group]] = defaultdict(list)
    for group in groups:
        keys = tuple(group.cell.get(name) for name in (*GROUP_KEYS, "machine") if name not in _ACROSS)
        alike[keys].append(group)
    return [found for same in alike.values() if (found := _tradeoff(same))]


def _tradeoff(groups: Sequence[Group]) -> Tradeoff | None:
    trained = [(group, row) for group in groups for row in group.rows if row.accuracy is not None and row.step]
    if len({group.cell["model"] for group, _ in trained}) < 2:
        return None
    answers = {
        (group.cell["model"], row.engine): row.step
        for group in groups
        for row in group.rows
        if group.cell["task"] == "infer" and row.step
    }
    predicts = all((group.cell["model"], row.engine) in answers for group, row in trained)
    points = [_point(row, answers[group.cell["model"], row.engine] if predicts else row.step) for group, row in trained]
    points.sort(key=lambda point: -point.multiply_adds)
    cell = groups[0].cell
    title = ", ".join(str(part) for part in (cell["dataset"], f"batch {cell['batch']}", cell["placement"]))
    return Tradeoff(title, "prediction" if predicts else "training", _with_front(points))


def _point(row: Row, step: Interval | None) -> Point:
    assert step is not None and row.accuracy is not None
    size = {name: int(str(row.cell[name])) for name in ("parameters", "multiply_adds")}
    return Point(str(row.cell["model"]), row.engine, size["parameters"], size["multiply_adds"], step, row.accuracy)


def _with_front(points: Sequence[Point]) -> tuple[Point, ...]:
    return tuple(replace(one, front=not any(_beats(other, one) for other in points)) for one in points)


def _beats(one: Point, other: Point) -> bool:
    """At least as fast and as accurate, and better in one of the two."""
    as_good = one.step.value <= other.step.value and one.accuracy >= other.accuracy
    return as_good and (one.step.value, one.accuracy) != (other.step.value, other.accuracy)


def answer(found: Tradeoff) -> str:
    front = sorted((point for point in found.points if point.front), key=lambda point: point.step.value)
    names = ", ".join(
        f"{_name(found, one)} ({words.duration(one.step.value)}, {words.percent(one.accuracy)})" for one in front
    )
    count = "One is" if len(front) == 1 else f"{len(front)} are"
    return f"{count} beaten by no other in both time and accuracy: {names}."


def _name(found: Tradeoff, point: Point) -> str:
    several = len({one.engine for one in found.points}) > 1
    return f"{point.model} on {point.engine}" if several else point.model


def cells(found: Tradeoff) -> list[tuple[str, ...]]:
    """A line for each point, by the heads."""
    return [
        (
            point.model,
            point.engine,
            f"{point.parameters:,}",
            f"{point.multiply_adds:,}",
            words.timing(point.step),
            f"{words.figures(found.first(point).step.value / point.step.value)}x",
            words.percent(point.accuracy),
            f"{100 * (point.accuracy - found.first(point).accuracy):+.1f}",
            "yes" if point.front else "",
        )
        for point in found.points
    ]


def note(found: Tradeoff) -> str:
    return (
        f"The step is of {found.cost}; speed-up and change of accuracy (in points) are against the model of each "
        "engine that computes most. Accuracies are of one training each: differences of a point or two may be chance."
    )


def chart(found: Tradeoff) -> dict[str, Any]:
    """A dot for each model; the line joins those that nothing beats."""
    data = [
        {
            "name": _name(found, point),
            "engine": point.engine,
            "ms": 1e3 * point.step.value,
            "accuracy": 100 * point.accuracy,
            "front": "nothing beats it" if point.front else "beaten",
            "step": words.timing(point.step),
        }
        for point in found.points
    ]
    x = alt.X("ms:Q", scale=alt.Scale(type="log", nice=False, padding=30), axis=alt.Axis(format="~g", tickCount=5),
              title=f"milliseconds a step of {found.cost}, logarithmic; less is better")  # fmt: skip
    y = alt.Y("accuracy:Q", scale=alt.Scale(zero=False, padding=20), title="accuracy in per cent; more is better")
    whole = alt.Chart(alt.InlineData(values=data)).encode(x=x, y=y, tooltip=["name:N", "step:N", "accuracy:Q"])
    front = whole.transform_filter(alt.datum.front == "nothing beats it")
    layers = [
        front.mark_line(interpolate="step-after", strokeDash=[4, 4], color="currentColor", opacity=0.6),
        whole.mark_point(size=70, filled=True, opacity=1).encode(
            shape=alt.Shape("front:N", title=None), color=alt.Color("front:N", title=None)
        ),
        whole.mark_text(align="left", dx=8, dy=-6).encode(text="name:N"),
    ]
    drawn = alt.LayerChart(layer=layers).properties(height=340)
    return charts.wide(drawn, f"Accuracy against time of a step: {found.title}")
