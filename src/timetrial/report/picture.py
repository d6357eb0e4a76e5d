"""The charts of a study as one picture, for a page that shows no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from timetrial.records.store import StoreError, whole
from timetrial.report import charts
from timetrial.report.overview import overview
from timetrial.report.style import INK_OF_PICTURES, PAPER_OF_PICTURES, chart_config, looks
from timetrial.report.summary import Group

_WIDTH = 560
SCALE = 2  # pixels of a .png for each of its chart


def write_picture(path: Path, groups: Sequence[Group]) -> None:
    """All cells at a glance, and the step chart of each group, one below the other, as .png or .svg."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"{path}: a picture is a .png or a .svg; give it one of these endings")
    measured = [group for group in groups if any(row.step for row in group.rows)]
    if not measured:
        raise ValueError(f"{path}: nothing was measured, so there is nothing to draw")
    look = looks(row.engine for group in measured for row in group.rows)
    drawn: list[alt.LayerChart] = [
        charts.steps(group, look).properties(width=_WIDTH, title=group.title) for group in measured
    ]
    glance = overview(measured)
    if glance is not None:
        drawn.insert(0, glance.properties(width=_WIDTH, title="time of a step, as a multiple of the fastest"))
    spec = alt.vconcat(*drawn).resolve_scale(x="independent", y="independent", color="independent").to_dict()
    save(path, spec)


def save(path: Path, spec: dict[str, Any]) -> None:
    """A chart of a page, without the page."""
    import vl_convert

    whole = {"config": chart_config(INK_OF_PICTURES, "sans-serif") | {"background": PAPER_OF_PICTURES}}
    spec = _inked(spec, INK_OF_PICTURES) | whole
    if path.suffix.lower() == ".png":
        write_bytes(path, vl_convert.vegalite_to_png(spec, vl_version=charts.vega_lite(), scale=SCALE))
    else:
        write_bytes(path, vl_convert.vegalite_to_svg(spec, vl_version=charts.vega_lite()).encode())


def _inked(part: Any, ink: str) -> Any:
    """`currentColor` means something on a page only."""
    if isinstance(part, dict):
        return {key: _inked(value, ink) for key, value in part.items()}
    if isinstance(part, list):
        return [_inked(value, ink) for value in part]
    return ink if part == "currentColor" else part


def write_bytes(path: Path, content: bytes) -> None:
    with whole(path, _elsewhere) as temporary:
        temporary.write_bytes(content)


def _elsewhere(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path}: cannot be written ({error.strerror or error}); choose another place")
