"""The tables of profiles as cells: how far each is to be trusted, and where its step goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from timetrial.profiling.bottleneck_words import evidence, percent, title
from timetrial.profiling.bottlenecks import Finding
from timetrial.report import words
from timetrial.report.profile_groups import Seen, Work
from timetrial.report.tables import Cell, Table, number

NO_LAYER = "(no layer)"
MOST_TYPES = 60  # of an engine; the others together
_MERGED = ("within another layer's",)
_TEXT, _RIGHT = ("text", "left"), ("number", "right")


def trust(work: Work) -> Table:
    names = (
        ("engine", *_TEXT), ("evidence", *_TEXT), ("step without profiler", *_RIGHT), ("steps traced", *_RIGHT),
        ("covered", *_RIGHT), ("attributed", *_RIGHT), ("profiler's cost", *_RIGHT),
        ("operations over plain step", *_RIGHT), ("split over layers", *_RIGHT), ("contention", *_TEXT),
    )  # fmt: skip
    return Table(tuple(_trust(seen) for seen in work.profiles), (), (), names)


def _trust(seen: Seen) -> tuple[Cell, ...]:
    head = seen.profile.header
    good = Cell("enough", "enough", mark="good")
    bad = Cell("not enough", "not enough", more=("why", *head.problems), mark="bad")
    return (
        Cell(seen.name, seen.name, (head.version,) if head.version else ()),
        good if head.enough else bad,
        number(words.duration(head.step_seconds), head.step_seconds),
        number(str(head.steps), head.steps),
        _share(head.coverage),
        _share(head.attributed),
        number(f"{head.overhead:.2f}x", head.overhead),
        number(f"{head.recovered:.2f}x", head.recovered),
        _share(head.granularity_lost),
        Cell("seen", "seen", more=("which", *head.contended), mark="bad") if head.contended else Cell("none", "none"),
    )


def kinds(work: Work) -> Table:
    """What holds a step up, profile by profile."""
    found = {seen.name: {one.kind: one for one in seen.diagnosis.findings} for seen in work.profiles}
    asked = list(dict.fromkeys(kind for seen in work.profiles for kind in found[seen.name]))
    rows = [
        (Cell(title(kind), title(kind)), *(_kind(found[seen.name].get(kind)) for seen in work.profiles))
        for kind in asked
    ]
    return Table(tuple(rows), (), (), (("a step goes to", *_TEXT), *((seen.name, *_RIGHT) for seen in work.profiles)))


def _kind(found: Finding | None) -> Cell:
    if found is None:
        return Cell(words.NOTHING, small=("not enough evidence",), mark="right")
    if found.share is None:
        return Cell("not measured", mark="right", more=("why", found.note))
    said = evidence(found)
    places = [f"{name}, {percent(share)}" for name, share in found.evidence.places]
    more = ("evidence", *([said] if said else []), *places) if said or places else ()
    small = (words.duration(found.evidence.seconds),) if found.share else ()
    return replace(_share(found.share), small=small, more=more)


def by_layer(work: Work) -> Table:
    """All profiles in one table; the gaps too, so that each column adds up to its step under the profiler."""
    columns = (("layer", *_TEXT), ("phase", *_TEXT), *((seen.name, *_RIGHT) for seen in work.profiles))
    rows = [
        (
            _text(layer or NO_LAYER),
            _text(phase),
            *(_time(seen, seen.took.get((layer, phase))) for seen in work.profiles),
        )
        for layer, phase in work.rows
        if any(seen.took.get((layer, phase)) for seen in work.profiles)
    ]
    gaps = (_text("(gaps)"), _text("no operation runs"), *(_time(seen, _gap(seen)) for seen in work.profiles))
    return Table((*rows, gaps), (), (), columns)


def _step(seen: Seen) -> float:
    return float(seen.profile.steps["duration_ns"].mean()) / 1e9


def _gap(seen: Seen) -> float:
    return max(1.0 - seen.profile.header.coverage, 0.0) * _step(seen)


def _time(seen: Seen, seconds: float | None) -> Cell:
    if seconds is None:
        return Cell(words.NOTHING, mark="right")
    return replace(number(words.duration(seconds), seconds), small=(percent(seconds / _step(seen)),))


def beside(work: Work) -> Table:
    """What is counted of the network beside what was measured."""
    limited = any(seen.diagnosis.roof for seen in work.profiles)
    columns = (
        ("layer", *_TEXT), ("phase", *_TEXT), ("engine", *_TEXT), ("multiply-adds", *_RIGHT), ("bytes", *_RIGHT),
        ("operations a byte", *_RIGHT), ("time", *_RIGHT), ("GFLOP/s", *_RIGHT), ("GB/s", *_RIGHT),
        *((("of the limit", *_RIGHT), ("limited by", *_TEXT)) if limited else ()),
    )  # fmt: skip
    rows = [row for seen in work.profiles for row in _beside(seen, limited)]
    return Table(tuple(rows), (), (), columns)


def _beside(seen: Seen, limited: bool) -> Iterator[tuple[Cell, ...]]:
    roof = seen.diagnosis.roof
    for point in seen.points:
        yield (
            _text(point.layer), _text(point.phase), _text(seen.name),
            number(f"{point.flops / 2:,.0f}", point.flops / 2), number(f"{point.bytes:,.0f}", point.bytes),
            number(words.figures(point.intensity), point.intensity),
            replace(number(words.duration(point.seconds), point.seconds), small=_MERGED if point.merged else ()),
            _giga(point.rate), _giga(point.bandwidth),
            *(_limit(point.attained(roof) if roof else None, point.bound(roof) if roof else "") if limited else ()),
        )  # fmt: skip


def _limit(attained: float | None, bound: str) -> tuple[Cell, Cell]:
    if attained is None:
        return Cell(words.NOTHING, mark="right"), Cell(words.NOTHING)
    return _share(attained), _text({"compute": "arithmetic", "memory": "bandwidth"}[bound])


def by_type(work: Work) -> Table:
    columns = (
        ("type", *_TEXT), ("engine", *_TEXT), ("class", *_TEXT), ("a step", *_RIGHT), ("time", *_RIGHT),
        ("share", *_RIGHT), ("allocated", *_RIGHT),
    )  # fmt: skip
    rows = [row for seen in work.profiles for row in _by_type(seen)]
    return Table(tuple(rows), (), (), columns)


def _by_type(seen: Seen) -> Iterator[tuple[Cell, ...]]:
    table = seen.profile.per_step("type", "class")
    for row in table.head(MOST_TYPES).to_dict("records"):
        yield _type(seen, str(row["type"]), str(row["class"]), row["count"], row["wall_ns"], row["alloc_bytes"])
    rest = table.iloc[MOST_TYPES:]
    if len(rest):
        sums = (rest[name].sum(min_count=1) for name in ("count", "wall_ns", "alloc_bytes"))
        yield _type(seen, f"{len(rest)} other types", "", *sums)


def _type(seen: Seen, kind: str, of_class: str, count: float, wall: float, alloc: float) -> tuple[Cell, ...]:
    size = None if pd.isna(alloc) else int(alloc)
    return (
        _text(kind), _text(seen.name), _text(of_class or words.NOTHING), number(words.figures(count), count),
        number(words.duration(wall / 1e9), wall), _share(wall / 1e9 / _step(seen)), number(words.memory(size), size),
    )  # fmt: skip


def by_class(work: Work) -> Table:
    sums = {seen.name: _classes(seen) for seen in work.profiles}
    met = sorted(
        {name for found in sums.values() for name in found},
        key=lambda name: -max(found.get(name, 0.0) for found in sums.values()),
    )
    columns = (("class", *_TEXT), *((seen.name, *_RIGHT) for seen in work.profiles))
    return Table(
        tuple((_text(name), *(_time(seen, sums[seen.name].get(name)) for seen in work.profiles)) for name in met),
        (),
        (),
        columns,
    )


def _classes(seen: Seen) -> dict[str, float]:
    table = seen.profile.per_step("class")
    return {str(name): wall / 1e9 for name, wall in zip(table["class"], table["wall_ns"], strict=True)}


def _text(text: str) -> Cell:
    return Cell(text, text)


def _giga(rate: float | None) -> Cell:
    return number(words.NOTHING if rate is None else words.figures(rate / 1e9), rate)


def _share(value: float) -> Cell:
    return number(percent(value), value)
