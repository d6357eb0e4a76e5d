"""One step as a flame chart in SVG: no script draws it, names are cut off where their bar ends, and it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from timetrial.profiling.lanes import Bar, Timeline
from timetrial.report import words
from timetrial.report.frame import environment
from timetrial.report.style import INK_OF_PICTURES, PHASE_COLOURS

LANE, HEAD, TOP, AXIS = 19, 20, 26, 22  # heights
LEAST = 0.0008  # of the width: less would not be seen
EDGED = 0.003  # from this width on it has an outline, so that it is told from its neighbours
NAMED = 0.03  # from this width on a bar has its name in it
MOST_THREADS = 8
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LETTER = 6.6  # pixels, as wide as one of the legend mostly is


@dataclass(frozen=True)
class Drawn:
    svg: Markup
    caption: str


def draw(found: Timeline, description: str, width: str = "100%", ink: str = "currentColor", paper: str = "") -> Drawn:
    """Where there is no page around it: `width` in pixels, and colours of `ink` and `paper`."""
    threads = list(dict.fromkeys(lane.thread for lane in found.lanes))
    shown = threads[:MOST_THREADS]
    bars, heads, y = [], [], TOP
    for thread in shown:
        heads.append((y + 13, _clean(thread)))
        y += HEAD
        for lane in (lane for lane in found.lanes if lane.thread == thread):
            bars += [_drawn(bar, y, lane.depth) for bar in lane.bars]
            y += LANE
    template = environment().get_template("timeline.svg.j2")
    svg = template.render(
        width=width,
        height=y + AXIS,
        top=TOP,
        bottom=y,
        ink=ink,
        paper=paper,
        dark=INK_OF_PICTURES,
        description=_clean(description),
        bars=bars,
        heads=heads,
        ticks=list(_ticks(found.seconds)),
        legend=list(_legend(found)),
    )
    return Drawn(Markup(svg), _caption(found, len(threads) - len(shown)))


def _drawn(bar: Bar, y: int, depth: int) -> dict[str, object]:
    length = max(bar.length, LEAST)
    return {
        "x": f"{100 * min(bar.start, 1 - length):.3f}%",
        "y": y,
        "width": f"{100 * length:.3f}%",
        "fill": PHASE_COLOURS.get(bar.phase, PHASE_COLOURS["unknown"]),
        "faint": bar.count > 1,
        "edged": length >= EDGED,
        "name": _clean(_name(bar, depth)) if length >= NAMED else "",
        "said": _clean(said(bar)),
    }


def _name(bar: Bar, depth: int) -> str:
    """With its layer, unless that stands above it already."""
    if bar.count > 1:
        return f"{bar.count} others"
    return f"{bar.layer}: {bar.name}" if bar.layer and not depth else bar.name


def said(bar: Bar) -> str:
    """On hovering: what it is, of which layer, how long, how much memory it asked for."""
    first = f"{bar.count} operations, each narrower than a pixel" if bar.count > 1 else bar.name
    kind = f"type {bar.type}" if bar.type and bar.type != bar.name else ""
    layer = f"layer {bar.layer}" if bar.layer else "no layer" if bar.count == 1 else "several layers or none"
    space = f"{words.memory(bar.bytes)} allocated" if bar.bytes is not None else "memory not measured"
    parts = (first, kind, layer, f"{bar.phase}, {bar.of_class}", words.duration(bar.seconds), space)
    return "\n".join(part for part in parts if part)


def _clean(text: str) -> str:
    """Without the characters that no XML may hold, not even escaped."""
    return _NOT_XML.sub("\ufffd", text)


def _ticks(seconds: float) -> Iterator[tuple[str, str]]:
    """At most eight round times along the step."""
    size: float = next(
        step * 10**power for power in range(-9, 6) for step in (1, 2, 5) if seconds / (step * 10**power) <= 8
    )
    for i in range(int(seconds / size) + 1):
        if i * size <= 0.97 * seconds:
            yield f"{100 * i * size / seconds:.3f}%", words.duration(i * size) if i else "0"


def _legend(found: Timeline) -> Iterator[tuple[int, str, str]]:
    x = 0
    for phase in found.phases:
        yield x, phase, PHASE_COLOURS.get(phase, PHASE_COLOURS["unknown"])
        x += round(30 + _LETTER * len(phase))


def _caption(found: Timeline, hidden: int) -> str:
    said = (
        f"Step {found.step}, whose time of {words.duration(found.seconds)} is the median of those traced: "
        f"{found.operations:,} operations, nested ones below those that called them."
    )
    if found.merged:
        said += f" {found.merged:,} of them are too narrow to draw and stand together in bars of their neighbours."
    if hidden:
        said += f" {hidden} threads that had less to do are left out."
    if found.outside:
        said += f" {found.outside:,} operations of the step ran before or after it and are left out."
    return said
