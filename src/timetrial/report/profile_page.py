"""Profiles as one HTML file: what holds each step up, how far that can be trusted, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial import __version__
from timetrial.meters.limits import MachineLimits
from timetrial.profiling.bottleneck_words import answer
from timetrial.profiling.lanes import timeline
from timetrial.profiling.profile import Profile
from timetrial.records.store import write_atomically
from timetrial.report import charts, words
from timetrial.report import profile_charts as drawing
from timetrial.report import profile_page_words as told
from timetrial.report import profile_tables as tables
from timetrial.report.frame import Figure, rendered
from timetrial.report.profile_groups import Seen, Work, works
from timetrial.report.tables import Table
from timetrial.report.timeline import Drawn, draw


@dataclass(frozen=True)
class Sheet:
    """A table with what stands above it."""

    id: str
    title: str
    caption: str
    table: Table
    filter: str = ""  # what is asked for in the box that narrows it
    by: int = 0


@dataclass(frozen=True)
class Step:
    """The flame chart of one profile."""

    id: str
    title: str
    drawn: Drawn


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    answers: tuple[tuple[str, str, str], ...]  # engine, time of a step, what holds it up
    trust: Sheet
    kinds: Sheet
    figures: tuple[Figure, ...]
    steps: tuple[Step, ...]
    sheets: tuple[Sheet, ...]


def write_page(
    path: Path, title: str, profiles: Sequence[Profile], limits: Mapping[str, MachineLimits] | None = None
) -> None:
    """`limits` by session, as `report.ceiling.ceilings` gives them; a profile is held against its own session's."""
    write_atomically(path, page(title, profiles, limits))


def page(title: str, profiles: Sequence[Profile], limits: Mapping[str, MachineLimits] | None = None) -> str:
    found = works(profiles, limits)
    every = [seen for work in found for seen in work.profiles]
    sections = [_section(work, i) for i, work in enumerate(found, 1)]
    return rendered(
        "profile.html.j2",
        drawn=any(section.figures for section in sections),
        title=title or "Profiles",
        sections=sections,
        facts=_facts(profiles),
        method=told.method(),
        versions=[(seen.name, told.versions(seen)) for seen in every if seen.profile.header.versions],
        shortcomings=[text for seen in every for text in told.shortcomings(seen)],
    )


def _section(work: Work, number: int) -> Section:
    name = f"work-{number}"
    return Section(
        id=name,
        title=work.title,
        answers=tuple(_answer(seen) for seen in work.profiles),
        trust=Sheet(f"{name}-trust", "How far these profiles can be trusted", told.TRUST, tables.trust(work)),
        kinds=Sheet(f"{name}-kinds", "What holds a step up", told.KINDS, tables.kinds(work)),
        figures=tuple(_figures(work, name)),
        steps=tuple(_step(seen, work, f"{name}-step-{i}") for i, seen in enumerate(work.profiles, 1)),
        sheets=(
            Sheet(f"{name}-layers", "By layer and phase", told.LAYERS, tables.by_layer(work), "layer, phase"),
            Sheet(
                f"{name}-beside", "Counted beside measured", told.BESIDE, tables.beside(work), "layer, phase, engine"
            ),
            Sheet(f"{name}-types", "By type of operation", told.TYPES, tables.by_type(work), "type, engine, class"),
            Sheet(f"{name}-classes", "By class of operation", told.CLASSES, tables.by_class(work)),
        ),
    )


def _answer(seen: Seen) -> tuple[str, str, str]:
    return seen.name, words.duration(seen.profile.header.step_seconds), answer(seen.diagnosis)


def _figures(work: Work, name: str) -> list[Figure]:
    drawn: tuple[tuple[str, Callable[[Work], drawing.Drawn | None], str], ...] = (
        ("Where a step goes", drawing.shares, told.SHARES),
        ("Layer by layer", drawing.layers, told.CHART_OF_LAYERS),
        ("Under the roof", drawing.roofline, told.ROOF),
    )
    found = [(title, chart, caption) for title, draws, caption in drawn if (chart := draws(work)) is not None]
    return [
        Figure(f"{name}-chart-{i}", title, charts.wide(chart, f"{title}: {work.title}"), caption)
        for i, (title, chart, caption) in enumerate(found, 1)
    ]


def _step(seen: Seen, work: Work, name: str) -> Step:
    said = (
        f"One step of {seen.name} as bars over time, by thread and nesting: {work.title}. The tables have its figures."
    )
    return Step(name, f"One step of {seen.name}", draw(timeline(seen.profile), said))


def _facts(profiles: Sequence[Profile]) -> list[str]:
    count = len(profiles)
    steps = sum(profile.header.steps for profile in profiles)
    return [f"{count} {'profile' if count == 1 else 'profiles'}", f"{steps:,} steps traced", f"Timetrial {__version__}"]
