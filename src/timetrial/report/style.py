"""Colours and lines that stay the same for an engine in every chart of every report.

The colours are Okabe and Ito's, which people with any kind of colour vision tell apart; names stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"

_OF_ENGINES = {
    "torch": VERMILION,
    "tensorflow": ORANGE,
    "jax": BLUE,
    "keras-torch": PURPLE,
    "keras-tensorflow": GREEN,
    "keras-jax": SKY,
    "reference": GREY,
}
_OF_OTHERS = (YELLOW, GREY, GREEN, SKY, PURPLE, ORANGE, BLUE, VERMILION)
_DASHES = ((1, 0), (7, 3), (2, 3), (7, 3, 2, 3), (12, 3))
# One hue from dark to light: phases have an order, engines have not.
PHASES = ("#2f6690", "#6a9fc4", "#a9cbe0", "#dcebf4")
# Of the phases of a step, and of what holds one up. Dark text can be read on all of them.
PHASE_COLOURS = {
    "forward": SKY, "loss": PURPLE, "backward": ORANGE, "optimiser": GREEN, "input": YELLOW, "transfer": VERMILION,
    "compile": "#c9a36b", "wait": "#d5d5d5", "runtime": "#bdbdbd", "unknown": GREY,
}  # fmt: skip
KIND_COLOURS = {
    "compute": BLUE, "memory": SKY, "work": BLUE, "input": YELLOW, "dispatch": VERMILION, "communication": PURPLE,
    "optimiser": GREEN, "layout": ORANGE, "other": GREY,
}  # fmt: skip
INK_OF_PICTURES, PAPER_OF_PICTURES = "#1b1f24", "white"


@dataclass(frozen=True)
class Look:
    colour: str
    dash: tuple[int, ...]


def looks(engines: Iterable[str]) -> dict[str, Look]:
    """An engine's colour is its own; its versions and loops share it and differ in the dash of their lines."""
    names = sorted(set(engines))
    bases = sorted({_base(name) for name in names} - _OF_ENGINES.keys())
    colours = _OF_ENGINES | {base: _OF_OTHERS[i % len(_OF_OTHERS)] for i, base in enumerate(bases)}
    found: dict[str, Look] = {}
    for name in names:
        variant = [other for other in names if _base(other) == _base(name)].index(name)
        found[name] = Look(colours[_base(name)], _DASHES[variant % len(_DASHES)])
    return found


def _base(engine: str) -> str:
    """`torch@2.9.1 (fit)` is a torch."""
    return engine.partition(" (")[0].partition("@")[0]


def chart_config(ink: str, font: str) -> dict[str, Any]:
    """`ink` may be `currentColor`: then a chart follows the page around it, in light, in dark and on paper."""
    text = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": None},
        "axis": {
            **text,
            "domainColor": ink,
            "tickColor": ink,
            "gridColor": ink,
            "gridOpacity": 0.15,
            "labelLimit": 150,
        },
        "legend": {**text, "labelLimit": 150, "columns": 2, "orient": "top", "title": None},
        "title": {"color": ink, "subtitleColor": ink, "anchor": "start", "fontSize": 14, "subtitleFontSize": 12},
        "text": {"color": ink, "fontSize": 12},
    }
