"""From records to rows: what a table and a chart show, worked out once.

Cells that differ in nothing but the engine (and its loop) form a group; within it they are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from timetrial.records.choice import counted, floor_of
from timetrial.records.digest import MEMORY
from timetrial.records.record import APART, Equivalence, Outcome, Record, Training
from timetrial.report import regions
from timetrial.report.ceiling import Ceilings, percent
from timetrial.report.energy import Product, Spent, products, spent
from timetrial.spec.trial import Settings
from timetrial.stats.bootstrap import crosscheck
from timetrial.stats.floor import Floor
from timetrial.stats.intervals import Interval, interval, process_value
from timetrial.stats.outliers import outliers
from timetrial.stats.tails import Tails, tails
from timetrial.stats.verdicts import Verdict, holm

# Settings that older records do not have: those were measured with what is the default now.
LATER = ("wait", "layout", "update", "xla_flags")
TITLED = ("compile", *LATER)  # named where they are not the default
GROUP_KEYS = (
    "model", "variant", "dataset", "preprocessing", "batch", "task", "placement", "precision", "seed", "compile",
    "allocator", "tf32", "deterministic", "flush", *LATER, "profile", *regions.KEYS,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One cell over all its runs. A cell that could not be measured has an outcome and no times."""

    engine: str
    version: str
    cell: dict[str, object]
    outcome: Outcome
    step: Interval | None
    process_seconds: tuple[float, ...]
    samples_per_second: float | None
    first_step: float | None
    start: float | None  # import and build
    memory: int | None
    memory_method: str
    accuracy: float | None
    error: float | None  # mean squared error, of a regression
    equivalence: Equivalence | None
    stable: bool
    laps: Tails | None = None  # of all its laps: what a look at one of them may find
    severe: float = 0.0  # share of laps that lie far out of their process; they count like all others
    resampled: bool | None = None  # whether a bootstrap agrees with the interval; None: too few processes for one
    device: float | None = None  # seconds a step by the device's own clock, where it has one
    input: float | None = None  # of them, seconds that a step waited for its batch, where that can be told
    includes: str = ""  # what its clock ran over
    limit: float | None = None  # percent of what the machine can do
    energy: Spent | None = None
    edp: Product | None = None  # against the fastest that has one
    flagged: int = 0  # runs that count though the machine was not steady meanwhile
    baselines: Mapping[str, float] = field(default_factory=dict)  # mean squared error of guesses that need no network
    unit: tuple[str, float] = ("", 1.0)  # of the targets: what one of them is
    verdict: Verdict | None = None  # against the fastest of the group; the fastest itself has none
    fastest: bool = False


@dataclass(frozen=True)
class Group:
    key: tuple[tuple[str, object], ...]
    rows: tuple[Row, ...]  # ranked: measured ones from fast to slow, then the others
    floor: Floor = field(default_factory=Floor)  # the smallest difference that could be seen here
    banner: str = ""  # where the clocks of its rows did not run over the same work

    @property
    def cell(self) -> dict[str, object]:
        return dict(self.key)

    @property
    def title(self) -> str:
        cell = self.cell
        parts = [
            cell["model"],
            cell.get("variant"),
            cell["task"],
            f"batch {cell['batch']}",
            cell["placement"],
            cell["dataset"],
            cell.get("preprocessing"),
            *(f"{name} {cell[name]}" for name in TITLED if cell.get(name) not in (None, "", "default")),
            regions.title(cell),
        ]
        return ", ".join(str(part) for part in parts if part)


def summarise(records: Iterable[Record], known: Ceilings = MappingProxyType({})) -> list[Group]:
    """`known`: what the machine can do at most, by session, where that was measured."""
    cells: dict[tuple[tuple[str, object], ...], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    floors: dict[str, list[Record]] = defaultdict(list)
    for record in counted(records):
        key = tuple((name, _shared(record.cell, name)) for name in GROUP_KEYS)
        cells[(*key, ("machine", record.machine))][record.trial].append(record)
        floors[record.machine].append(record)
    noise = {machine: floor_of(runs) for machine, runs in floors.items()}
    found = []
    for key, trials in cells.items():
        floor = noise[str(dict(key)["machine"])]
        rows = _ranked([_row(runs, known) for runs in trials.values()], floor.value)
        found.append(Group(key, rows, floor, regions.banner(rows)))
    return found


def _shared(cell: Mapping[str, object], name: str) -> object:
    if name in regions.KEYS:
        return regions.value(cell, name)
    return cell.get(name, Settings.model_fields[name].default) if name in LATER else cell.get(name)


def _row(all_runs: Sequence[Record], known: Ceilings) -> Row:
    """A twin is the anchor cell once more: it says how much noise there is, and is no cell. Memory has its own runs."""
    runs = [run for run in all_runs if run.role == "cell"] or all_runs
    good = [run for run in runs if run.outcome.ok and run.laps]
    times = tuple(process_value(run.laps.seconds) for run in good if run.laps)
    step = interval(times) if times else None
    bad = next((run.outcome for run in runs if not run.outcome.ok), None)
    cell = dict(runs[0].cell)
    memory, method = _memory([run for run in all_runs if run.outcome.ok and run.role not in APART])
    trained = next((run.training for run in runs if run.training), None)
    return Row(
        engine=_label(cell),
        version=str(cell.get("version", "")),
        cell=cell,
        outcome=bad or runs[0].outcome,
        step=step if bad is None else None,
        process_seconds=times if bad is None else (),
        samples_per_second=int(str(cell["batch"])) / step.value if step and bad is None else None,
        first_step=_middle([run.phases.get("first_step") for run in good]),
        start=_middle([run.phases["import"] + run.phases["build"] for run in good if "build" in run.phases]),
        memory=memory,
        memory_method=method,
        accuracy=trained.accuracy if trained else None,
        error=trained.mse if trained else None,
        baselines=_baselines(trained),
        unit=(trained.unit, trained.unit_size) if trained and trained.unit_size else ("", 1.0),
        equivalence=next((run.equivalence for run in runs if run.equivalence), None),
        stable=all(run.laps.stable for run in good if run.laps),
        laps=tails([seconds for run in good if run.laps for seconds in run.laps.seconds]) if good else None,
        severe=_severe(good),
        resampled=_resampled(times),
        device=_middle([process_value(run.laps.device) if run.laps and run.laps.device else None for run in good]),
        input=_middle([process_value(run.laps.input) if run.laps and run.laps.input else None for run in good]),
        includes=next((run.includes for run in good if run.includes), ""),
        limit=percent(good, step.value, known) if step and bad is None else None,
        energy=spent(run for run in all_runs if run.role == "energy"),
        flagged=sum(bool(run.flags) for run in good),
    )


def _baselines(trained: Training | None) -> dict[str, float]:
    if trained is None or trained.mse is None:
        return {}
    return {name: errors["mse"] for name, errors in trained.baselines.items() if "mse" in errors}


def _severe(runs: Sequence[Record]) -> float:
    counts = [outliers(run.laps.seconds) for run in runs if run.laps]
    laps = sum(found.count for found in counts)
    return sum(found.severe for found in counts) / laps if laps else 0.0


def _resampled(times: Sequence[float]) -> bool | None:
    found = crosscheck(times)
    return None if found is None else found.agree


def _label(cell: dict[str, object]) -> str:
    """Keras' two loops are told apart by name where they are not the default."""
    engine = str(cell["engine"])
    return f"{engine} (fit)" if cell.get("loop") == "fit" else engine


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return process_value(known) if known else None


def _memory(runs: Sequence[Record]) -> tuple[int | None, str]:
    for name, method in MEMORY:
        values = [run.memory[name] for run in runs if name in run.memory]
        if values:
            return max(values), method
    return None, ""


def _ranked(rows: list[Row], floor: float) -> tuple[Row, ...]:
    """Each is compared with the fastest; the table's claims share one error among them."""
    measured = sorted((row for row in rows if row.step), key=lambda row: row.step.value if row.step else 0.0)
    others = sorted((row for row in rows if not row.step), key=lambda row: row.engine)
    if not measured:
        return tuple(others)
    first, *rest = measured
    found = holm({at: (row.process_seconds, first.process_seconds) for at, row in enumerate(rest)}, floor)
    compared = [replace(row, verdict=found[at]) for at, row in enumerate(rest)]
    return (*_with_products([replace(first, fastest=True), *compared]), *others)


def _with_products(rows: Sequence[Row]) -> list[Row]:
    found = products({row.engine: row.energy for row in rows if row.energy})
    return [replace(row, edp=found.get(row.engine)) for row in rows]
