"""What may differ between two sides, what must not, and what is refused until it is asked for.

Without further words the engine's version, the adapter's code and the time may differ. A coordinate whose difference is
wanted is named (`across`); what is other work, or another clock, is not comparable whatever is named, unless forced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from timetrial.records.digest import Digest
from timetrial.report.comparison import Cell, Comparison, Side, lines, noise_floors, pairs, shared
from timetrial.stats.verdicts import LEAST_FLOOR

WORK = ("model", "variant", "task", "dataset", "preprocessing", "batch")  # another of these is another amount of work
ALWAYS = ("version", "code")  # may be named, and may differ without
HELPERS = ("numpy",)  # packages beside the engine: theirs is not the engine's version
# Of a recipe's hash: coordinates that change it.
OF_RECIPE = ("precision", *WORK)


@dataclass(frozen=True)
class Problem:
    """Something that makes the two sides incomparable."""

    what: str
    base: str
    new: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.base} in BASE, {self.new} in NEW; {self.remedy}"


class Incomparable(ValueError):
    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("not comparable\n" + "\n".join(f"  {problem}" for problem in problems))
        self.problems = tuple(problems)


class NotAxis(ValueError):
    """Named as wanted to differ, and is nothing that could."""


@dataclass(frozen=True)
class Compared:
    """A comparison, what differed in it, and what was forced."""

    found: Comparison
    across: tuple[str, ...]
    differs: tuple[tuple[str, str, str], ...]  # what, in BASE, in NEW
    problems: tuple[Problem, ...]  # not comparable, and compared all the same

    @property
    def banner(self) -> str:
        if not self.problems:
            return ""
        return "FORCED: these are not comparable, the ratios may mean nothing. " + "; ".join(
            f"{problem.what}: {problem.base} in BASE, {problem.new} in NEW" for problem in self.problems
        )


def compare(base: Side, new: Side, across: Collection[str] = (), force: bool = False) -> Compared:
    """Raises `Incomparable` unless forced, and `Ambiguous` where a cell could be matched with several."""
    asked = _axes(base, new, across, force)
    problems = list(_coordinates(base, new, asked))
    free = {*asked, *(problem.what for problem in problems)}
    found = pairs(base, new, free)
    both = [(left, right) for _, left, right in found if left and right]
    if not both and not problems:
        problems.append(Problem("cells", _few(base), _few(new), "no cell is in both; name what differs with --across"))
    problems += _unlike(both, free)
    if problems and not force:
        raise Incomparable(problems)
    floors = noise_floors((base, new))
    least = max((one.value for one in floors), default=LEAST_FLOOR)
    comparison = Comparison(base, new, lines(found, least), floors)
    return Compared(comparison, tuple(across), tuple(_differences(both, free)), tuple(problems))


def _axes(base: Side, new: Side, across: Collection[str], force: bool) -> set[str]:
    known = [*shared(base, new), *ALWAYS]
    for name in across:
        if name not in known:
            raise NotAxis(
                f"--across {name}: there is no such coordinate in both; use {', '.join(dict.fromkeys(known))}"
            )
        if name in WORK and not force:
            raise NotAxis(f"--across {name}: with another {name} it is other work; --force compares all the same")
    return {*across}


def _coordinates(base: Side, new: Side, free: Collection[str]) -> Iterator[Problem]:
    """No value in common, so that nothing can be matched, and not asked for; or asked for, and other work."""
    for name in shared(base, new):
        ours, theirs = ({_plain(name, value) for value in one.values(name)} for one in (base, new))
        if name in WORK and (ours != theirs if name in free else not ours & theirs):
            yield Problem(name, _listed(ours), _listed(theirs), "this is other work; --force compares all the same")
        elif name not in free and not ours & theirs:
            remedy = f"if that is what you want to compare: --across {name}"
            yield Problem(name, _listed(ours), _listed(theirs), remedy)


def _plain(name: str, value: Any) -> str:
    return str(value).partition("@")[0] if name == "engine" else str(value)


def _unlike(both: Iterable[tuple[Cell, Cell]], free: Collection[str]) -> list[Problem]:
    """What matched cells must have in common though no coordinate names it. Each difference is said once."""
    found: dict[Problem, None] = {}
    for pair in both:
        found |= dict.fromkeys(_mixed(pair))
        for what, of, remedy in _MUST:
            ours, theirs = (_seen(cell, of) for cell in pair)
            if what not in free and ours and theirs and ours != theirs:
                found[Problem(what, _listed(ours), _listed(theirs), remedy)] = None
        if not {"version", "engine"} & set(free):
            found |= dict.fromkeys(_packages(pair))
        if not {*free} & {*OF_RECIPE}:
            found |= dict.fromkeys(_work(pair))
    return list(found)


_MUST: tuple[tuple[str, Callable[[Digest], Any], str], ...] = (
    ("schema", lambda run: run.schema, "measure the older side again"),
    ("timed region", lambda run: run.includes, "the clocks did not run over the same work; measure one side again"),
)


def _seen(cell: Cell, of: Callable[[Digest], Any]) -> set[str]:
    """Of the runs that came far enough to know it."""
    return {str(of(run)) for run in cell.runs if run.measured} - {""}


def _mixed(pair: tuple[Cell, Cell]) -> Iterator[Problem]:
    """Runs of a cell that were made with different software are no sample of anything."""
    for name, cell in zip(("BASE", "NEW"), pair, strict=True):
        for what, of in (("versions", _versions), ("adapter code", _code)):
            seen = _seen(cell, of)
            if len(seen) > 1:
                both = {"BASE": "-", "NEW": "-", name: f"{len(seen)} different ones in a cell"}
                remedy = f"measure {cell.runs[0].cell.get('model')} again with --fresh"
                yield Problem(f"{what} of {name}", both["BASE"], both["NEW"], remedy)


def _versions(run: Digest) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(run.versions.items()))


def _code(run: Digest) -> str:
    return run.hashes.get("adapter", "")


def _packages(pair: tuple[Cell, Cell]) -> Iterator[Problem]:
    """A package beside the engine may change along with the engine, but not alone."""
    ours, theirs = (_first_versions(cell) for cell in pair)
    changed = [name for name in ours if name in theirs and ours[name] != theirs[name]]
    if changed and all(name in HELPERS for name in changed):
        for name in changed:
            remedy = "the engine's version does not differ; if this is what you want to compare: --across version"
            yield Problem(name, ours[name], theirs[name], remedy)


def _first_versions(cell: Cell) -> dict[str, str]:
    return next((dict(run.versions) for run in cell.runs if run.measured), {})


def _work(pair: tuple[Cell, Cell]) -> Iterator[Problem]:
    """The same name, and another network or recipe behind it."""
    for what in ("network", "recipe"):
        ours, theirs = (_seen(cell, lambda run, what=what: run.hashes.get(what, "")) for cell in pair)  # type: ignore[misc]
        if ours and theirs and ours != theirs:
            model = pair[0].runs[0].cell.get("model")
            remedy = "the same names, but other work behind them; --force compares all the same"
            yield Problem(f"{what} of {model}", _listed(ours), _listed(theirs), remedy)


def _differences(both: Sequence[tuple[Cell, Cell]], free: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """What is compared, then: everything that is not the same on both sides."""
    axes: list[tuple[str, Callable[[Digest], Any]]] = [(name, _value(name)) for name in sorted({*free} - {*ALWAYS})]
    axes += [("packages", _versions), ("adapter code", _code), ("measured on", lambda run: run.started[:10])]
    for name, of in axes:
        ours, theirs = ({str(of(run)) for pair in both for run in pair[i].runs} for i in (0, 1))
        if ours != theirs:
            yield name, _listed(ours), _listed(theirs)


def _value(name: str) -> Callable[[Digest], Any]:
    return lambda run: run.machine if name == "machine" else run.cell.get(name, "")


def _listed(values: Iterable[str], most: int = 4) -> str:
    known = sorted(value for value in values if value)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more if known else "-"


def _few(one: Side) -> str:
    return f"{len(one.cells)} cells"
