"""The charts of profiles as pictures, for pages that show no scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from timetrial.meters.limits import MachineLimits
from timetrial.profiling.lanes import timeline
from timetrial.profiling.profile import Profile
from timetrial.report import profile_charts as drawing
from timetrial.report.picture import SCALE, save, write_bytes
from timetrial.report.profile_groups import works
from timetrial.report.style import INK_OF_PICTURES, PAPER_OF_PICTURES
from timetrial.report.timeline import draw

_WIDTH, _STEP_WIDTH = 560, 900
_CHARTS = {"shares": drawing.shares, "layers": drawing.layers, "roofline": drawing.roofline}


def write_pictures(
    folder: Path, profiles: Sequence[Profile], limits: Mapping[str, MachineLimits] | None = None
) -> list[Path]:
    """`shares.png`, `layers.png`, `roofline.png` where there are limits, and `step-ENGINE.png`; of several networks or
    tasks each with its number. Returns what was written."""
    import vl_convert

    found = works(profiles, limits)
    if not found:
        raise ValueError(f"{folder}: there are no profiles to draw; use measure: [time, profile]")
    written = []
    for number, work in enumerate(found, 1):
        end = f"-{number}.png" if len(found) > 1 else ".png"
        for name, draws in _CHARTS.items():
            if (chart := draws(work)) is not None:
                spec = chart.properties(width=_WIDTH, title=work.title).to_dict()
                save(folder / f"{name}{end}", spec)
                written.append(folder / f"{name}{end}")
        for seen in work.profiles:
            path = folder / f"step-{re.sub('[^A-Za-z0-9._-]+', '-', seen.name)}{end}"
            svg = draw(timeline(seen.profile), work.title, str(_STEP_WIDTH), INK_OF_PICTURES, PAPER_OF_PICTURES).svg
            write_bytes(path, vl_convert.svg_to_png(str(svg), scale=SCALE))
            written.append(path)
    return written
