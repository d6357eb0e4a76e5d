"""Two measurements against each other: which cells belong together, and what became of each.

The direction is the same everywhere: the speed-up of NEW over BASE is the time of BASE over the time of NEW.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from timetrial.records.choice import attempts
from timetrial.records.digest import Digest, peaks, times
from timetrial.records.record import APART, Record
from timetrial.records.store import Unreadable
from timetrial.stats.floor import Floor, floor
from timetrial.stats.intervals import Interval, Ratio, interval, ratio
from timetrial.stats.verdicts import LEAST_FLOOR, Verdict, holm

# Of a cell: sizes that follow from its network, and the version, which may always differ.
NOT_COORDINATES = frozenset({"network", "parameters", "parameters_all", "multiply_adds", "version"})
State = Literal["slower", "faster", "same", "undecided", "not measured", "only in BASE", "only in NEW"]
STATES: tuple[State, ...] = get_args(State)


class Ambiguous(ValueError):
    """A cell of one side has several that could answer it on the other."""


@dataclass(frozen=True)
class Cell:
    """All runs of one cell of one side."""

    runs: tuple[Digest, ...]
    twins: tuple[Digest, ...] = ()  # the same cell measured under a second name
    apart: tuple[Digest, ...] = ()  # runs of memory alone, whose times count for nothing

    @property
    def seconds(self) -> tuple[float, ...]:
        return times(self.runs)

    @property
    def outcome(self) -> Digest:
        """The run that tells the cell's outcome: the first that failed, where one did."""
        return next((run for run in self.runs if not run.measured), self.runs[0])

    @property
    def kind(self) -> str:
        return "no time" if self.outcome.kind == "ok" and not self.outcome.measured else self.outcome.kind

    @property
    def step(self) -> Interval | None:
        return interval(self.seconds) if self.seconds else None

    @property
    def coordinates(self) -> dict[str, Any]:
        first = self.runs[0]
        named = {name: _plain(value) for name, value in first.cell.items() if name not in NOT_COORDINATES}
        return {**named, "machine": first.machine}


def _plain(value: Any) -> Any:
    """Coordinates are plain already; what somebody else wrote may not be, and is still compared."""
    return value if value is None or isinstance(value, (str, int, float)) else repr(value)


@dataclass(frozen=True)
class Side:
    """BASE or NEW, as it was asked for."""

    name: str
    cells: tuple[Cell, ...]
    unreadable: tuple[Unreadable, ...] = ()

    def values(self, coordinate: str) -> set[Any]:
        return {cell.coordinates[coordinate] for cell in self.cells if coordinate in cell.coordinates}


@dataclass(frozen=True)
class Line:
    """One cell of the comparison. A cell that has no ratio has a state that says why."""

    coordinates: Mapping[str, Any]
    base: Cell | None
    new: Cell | None
    state: State
    verdict: Verdict | None = None  # of NEW against BASE
    memory: Ratio | None = None  # peak of NEW over peak of BASE
    memory_note: str = ""  # the method of both peaks, or why there is no ratio


@dataclass(frozen=True)
class Comparison:
    base: Side
    new: Side
    lines: tuple[Line, ...]
    floors: tuple[Floor, ...]  # one for each cell that was measured twice

    @property
    def floor(self) -> float:
        """The smallest difference that these sessions can see."""
        return max((one.value for one in self.floors), default=LEAST_FLOOR)

    @property
    def counts(self) -> dict[State, int]:
        found = Counter(line.state for line in self.lines)
        return {state: found[state] for state in STATES if found[state]}


def side(name: str, items: Iterable[Digest | Unreadable]) -> Side:
    """One session's runs of one trial are one cell; if they are of several versions, that is refused later."""
    found = list(items)
    groups: dict[tuple[Any, ...], dict[str, list[Digest]]] = {}
    for run in attempts(item for item in found if isinstance(item, Digest) and item.role not in APART):
        key = (run.study, run.trial, run.machine, run.cell.get("profile"))
        groups.setdefault(key, {"cell": [], "twin": [], "memory": []})[run.role].append(run)
    cells = tuple(Cell(*map(tuple, roles.values())) for roles in groups.values() if roles["cell"])
    return Side(name, cells, tuple(item for item in found if isinstance(item, Unreadable)))


def shared(base: Side, new: Side) -> list[str]:
    """Coordinates that both sides name: what only one names was not known when the other was measured."""
    return [name for name in _names(base) if name in _names(new)]


def _names(one: Side) -> dict[str, None]:
    return dict.fromkeys(name for cell in one.cells for name in cell.coordinates)


Key = tuple[tuple[str, Any], ...]
Pair = tuple[Key, Cell | None, Cell | None]


def pairs(base: Side, new: Side, free: Collection[str]) -> list[Pair]:
    """Cells that agree in all coordinates but the free ones; those of one side alone stay, with None beside them."""
    names = [name for name in shared(base, new) if name not in free]
    plain = _engines_of_one_version(base, new)
    left, right = _by_key(base, names, plain), _by_key(new, names, plain)
    return [(key, left.get(key), right.get(key)) for key in {**left, **right}]


def _engines_of_one_version(base: Side, new: Side) -> set[str]:
    """`torch@2.9.1` answers `torch`, unless a side has several versions of it: then these are told apart."""
    counts = [Counter(_engine(name) for name in one.values("engine")) for one in (base, new)]
    return {name for count in counts for name in count if all(count[name] <= 1 for count in counts)}


def _engine(name: Any) -> str:
    return str(name).partition("@")[0]


def _by_key(one: Side, names: Sequence[str], plain: Collection[str]) -> dict[Key, Cell]:
    found: dict[Key, Cell] = {}
    for cell in one.cells:
        values = cell.coordinates
        if "engine" in values and _engine(values["engine"]) in plain:
            values["engine"] = _engine(values["engine"])
        key = tuple((name, values.get(name)) for name in names)
        if key in found:
            raise Ambiguous(_which(one, found[key], cell))
        found[key] = cell
    return found


def _which(one: Side, first: Cell, second: Cell) -> str:
    """Names what tells the two apart, and how to take one of them."""
    ours, theirs = ({**cell.coordinates, "study": cell.runs[0].study} for cell in (first, second))
    apart = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    said = ", ".join(f"{name} {ours.get(name)} and {theirs.get(name)}" for name in apart) or "nothing that is recorded"
    name = apart[0] if apart else "study"
    return (
        f"{one.name}: more than one cell could be meant by {ours.get('model')} {ours.get('task')}: they differ in "
        f"{said}; take one of them with '{one.name}{'&' if '?' in one.name else '?'}{name}={ours.get(name)}'"
    )


def lines(found: Iterable[Pair], least: float) -> tuple[Line, ...]:
    """With verdicts that hold together: with 95 % confidence not one of the whole table is wrong."""
    rows = list(found)
    times_ = {key: (new.seconds, base.seconds) for key, base, new in rows if base and new}
    judged = holm({key: pair for key, pair in times_.items() if all(pair)}, least)
    return tuple(_line(key, base, new, judged.get(key)) for key, base, new in rows)


def _line(key: Key, base: Cell | None, new: Cell | None, found: Verdict | None) -> Line:
    coordinates = dict(key)
    if base is None or new is None:
        return Line(coordinates, base, new, "only in NEW" if base is None else "only in BASE")
    memory, note = _memory(base, new)
    return Line(coordinates, base, new, found.word if found else "not measured", found, memory, note)


def _memory(base: Cell, new: Cell) -> tuple[Ratio | None, str]:
    """More over less is no speed-up: NEW's peak over BASE's, where both were measured in the same way."""
    (before, method), (after, other) = peaks((*base.runs, *base.apart)), peaks((*new.runs, *new.apart))
    if not before or not after:
        return None, ""
    if method != other:
        return None, f"not comparable: {method} in BASE, {other} in NEW"
    return ratio(before, after), method


def noise_floors(sides: Iterable[Side]) -> tuple[Floor, ...]:
    """Of each cell that was measured a second time under another name."""
    found = (floor(cell.seconds, times(cell.twins)) for one in sides for cell in one.cells)
    return tuple(one for one in found if one.twins)


def matching(side_: Side, wanted: Mapping[str, str]) -> Side:
    """Only the cells that a filter names."""
    found = [cell for cell in side_.cells if named_by(wanted, cell.runs[0], side_.name)]
    return Side(side_.name, tuple(found), side_.unreadable)


def named_by(wanted: Mapping[str, str], run: Digest | Record, place: str) -> bool:
    """As exclusions of a study do: `*` and `?` stand for any letters."""
    from fnmatch import fnmatchcase

    values = {**run.cell, "machine": run.machine, "study": run.study}
    unknown = next((name for name in wanted if name not in values), None)
    if unknown:
        raise ValueError(f"{place}: there is no '{unknown}' to choose by; use {', '.join(values)}")
    return all(fnmatchcase(str(values[name]), text) for name, text in wanted.items())
