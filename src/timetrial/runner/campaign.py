"""Runs a study: randomised blocks, one process a run, a record for every outcome, resumable at any moment."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

from timetrial.meters.hardware import Machine, fingerprint, inventory
from timetrial.records.choice import counted, floor_of
from timetrial.records.record import APART, TIMED, Outcome, Record
from timetrial.records.store import Store
from timetrial.runner import design
from timetrial.runner.design import Design, Member
from timetrial.runner.executor import Executor
from timetrial.runner.forecast import Forecast, work
from timetrial.runner.profiles import ENERGY_BLOCKS, is_adaptive, measures, processes, repeats, target
from timetrial.runner.pruning import skipped, smaller_that_failed
from timetrial.runner.session import Session
from timetrial.runner.steps import Listener, Notice, Step, step
from timetrial.runner.work import adapter_digest
from timetrial.spec.study import Study
from timetrial.spec.trial import Trial
from timetrial.stats.intervals import process_value

Clock = Callable[[], float]
Sleep = Callable[[float], None]


class Campaign:
    """One study on this machine. `go` runs what is left and yields each record as it is written."""

    def __init__(
        self,
        study: Study,
        trials: Sequence[Trial],
        folder: Path,
        fresh: bool = False,
        clock: Clock = time.monotonic,
        sleep: Sleep = time.sleep,
        anchors: Collection[str] = (),
    ) -> None:
        """`anchors`: trials that are each measured under a second name; one of middling size unless given."""
        self.study, self.folder = study, folder.absolute()  # a run works in a folder of its own
        self.store = Store(self.folder)
        self.machine: Machine = inventory()
        self.fingerprint = fingerprint(self.machine)
        self.design = Design(processes(study), target(study), adaptive=is_adaptive(study))
        self.forecast = Forecast(study)
        self.done: dict[str, Record] = {}
        self.left_out: set[str] = set()  # trials for which the budget was too short
        self._taken = 0
        self._clock, self._started, self._sleep = clock, clock(), sleep
        self._executor = Executor(study, self.folder, self.machine, self.fingerprint)
        self._trials = {trial.id: trial for trial in trials}
        self._cells = [Member(trial.id, _group(trial)) for trial in trials]
        self._failed: dict[str, Outcome] = {}
        for record in [] if fresh else self.store.records(study.study):
            if record.trial in self._trials and self._counts(record):
                self._note(record)
        self._anchors = anchors
        self._warm = False

    def go(self, listen: Listener = lambda notice: None) -> Iterator[Record]:
        self.store.keep_machine(self.fingerprint, asdict(self.machine))
        with Session(self.store, self.study.study, self.fingerprint, cooldown=self.study.cooldown) as session:
            if "limits" in measures(self.study) and self.todo:
                session.limits = self._executor.limits()
            session.energy = self.without_energy or None
            for asked in self.steps():
                yield from self._until_steady(asked, session, listen)

    # --- what is run, and in what order

    def steps(self) -> Iterator[Step]:
        """What is left, one after the other; the later ones depend on the results of those before."""
        for number in count():
            members = design.block(number, self._members(), self._results(number), self.design, self.floor)
            if not members:
                return
            asked = [one for one in self._block(members, number) if one.run not in self.done]
            before = self._taken
            yield from self._affordable(asked, number)
            if asked and self._taken == before:
                return  # there is no time for any of them

    @property
    def all_steps(self) -> list[Step]:
        """All blocks complete: what is run where nothing is decided early."""
        return [one for number in range(self.design.usual) for one in self._block(self._members(), number)]

    @property
    def todo(self) -> list[Step]:
        return [one for one in self.all_steps if one.run not in self.done]

    @property
    def cells(self) -> int:
        return len(self._cells)

    def expected_seconds(self) -> float:
        """Of all that is left, as far as can be told by now."""
        return sum(map(self._seconds, self.todo))

    @property
    def floor(self) -> float:
        """The smallest difference that this study can see."""
        return floor_of(self.done.values()).value

    def _block(self, members: Sequence[Member], number: int) -> list[Step]:
        """In the order of the block. What is not time is measured in runs of its own, among the others."""
        cells = [cell for cell in members if cell.role == "cell"]
        if number == min(1, self.design.usual - 1) and "memory" in measures(self.study):
            members = [*members, *(replace(cell, role="memory") for cell in cells)]
        if number == min(1, self.design.usual - 1) and "profile" in measures(self.study):
            members = [*members, *(replace(cell, role="profile") for cell in cells)]
        if number < ENERGY_BLOCKS and self._has_energy:
            members = [*members, *(replace(cell, role="energy") for cell in cells)]
        ordered = design.order(members, self.study.seed, number)
        return [step(self.study, self._trials[member.trial], number, member.role) for member in ordered]

    @property
    def _has_energy(self) -> bool:
        return "energy" in measures(self.study) and bool(self._executor.energy.sources.found)

    @property
    def without_energy(self) -> str:
        """Why energy is not measured though it was asked for; no runs are spent on it then."""
        return self._executor.energy.sources.words if "energy" in measures(self.study) else ""

    def _members(self) -> list[Member]:
        """Every cell that has not failed, and one of them a second time."""
        cells = [cell for cell in self._cells if cell.trial not in self._failed]
        chosen = [cell for cell in cells if cell.trial in self._anchors]
        if self.study.anchor and not self._anchors:
            chosen = [cell for cell in [self._anchor(cells)] if cell]
        return [*cells, *(replace(cell, role="twin") for cell in chosen)]

    def _anchor(self, cells: Sequence[Member]) -> Member | None:
        """A cell of middling size whose engine is there; the one that was chosen first stays it."""
        there = [cell for cell in cells if self._executor.locate(self._trials[cell.trial].engine).interpreter]
        chosen = {record.trial for record in self.done.values() if record.role == "twin"}
        kept = next((cell for cell in there if cell.trial in chosen), None)
        by_size = sorted(there, key=lambda cell: (work(self._trials[cell.trial]), cell.trial))
        return kept or (by_size[len(by_size) // 2] if by_size else None)

    def _results(self, number: int) -> dict[Member, list[float]]:
        """Of the processes of the blocks before this one."""
        found: dict[Member, list[float]] = {}
        groups = {cell.trial: cell.group for cell in self._cells}
        for record in counted(self.done.values()):
            if record.outcome.ok and record.laps and record.block < number:
                member = Member(record.trial, groups[record.trial], record.role)
                found.setdefault(member, []).append(process_value(record.laps.seconds))
        return found

    def _affordable(self, block: Sequence[Step], number: int) -> Iterator[Step]:
        """In the order of the block where there is time for all of it; else what tells most for its time first."""
        if self._left() < sum(map(self._seconds, block)):
            widths = {member.trial: design.width(values) for member, values in self._results(number).items()}
            block = sorted(block, key=lambda one: self._price(one, widths))
        for one in block:
            if one.trial.id in self._failed:
                continue
            if self._seconds(one) > self._left():
                self.left_out.add(one.trial.id)
            else:
                self._taken += 1
                yield one

    def _price(self, one: Step, widths: Mapping[str, float]) -> tuple[float, float]:
        """Seconds for what there is to know: nothing is known yet of a cell without an interval."""
        seconds = self._seconds(one)
        return seconds / widths.get(one.trial.id, math.inf), seconds

    def _seconds(self, one: Step) -> float:
        more = self._executor.energy.more_seconds if one.role == "energy" else 0.0
        return self.forecast.seconds(one.trial) + more

    def _left(self) -> float:
        budget = self.study.budget
        return math.inf if budget is None else budget - (self._clock() - self._started)

    # --- one step

    def _until_steady(self, asked: Step, session: Session, listen: Listener) -> Iterator[Record]:
        """Once, and again where the machine itself was not steady meanwhile."""
        for again in range(1 + repeats(self.study)):
            asked = asked.again() if again else asked
            self._cool_down()
            listen(Notice("begin", asked))
            record = self._pruned(asked, session) or self._executor.carry_out(asked, session, self.floor, listen)
            self.store.write(record)
            self._note(record)
            listen(Notice("end", asked, record))
            yield record
            if not record.flags:
                return

    def _cool_down(self) -> None:
        """Asleep, so that nothing else keeps the machine warm."""
        if self._warm and self.study.cooldown:
            self._sleep(self.study.cooldown)

    def _pruned(self, asked: Step, session: Session) -> Record | None:
        failed = ((self._trials[trial], outcome) for trial, outcome in self._failed.items())
        smaller = smaller_that_failed(asked.trial, failed)
        return self._executor.refused(asked, skipped(*smaller), session) if smaller else None

    def _note(self, record: Record) -> None:
        self.done[record.run] = record
        self._warm = record.wall_seconds is not None
        if record.outcome.ok and record.role not in APART:  # those last as long as they need
            self.forecast.learn(self._trials[record.trial], record)
        elif not record.outcome.ok and record.role in TIMED:
            self._failed[record.trial] = record.outcome

    def _counts(self, record: Record) -> bool:
        """A finished record is not run again, but one whose engine was missing is worth another look, and so is what
        was stopped at a limit that has been raised."""
        if record.outcome.kind in ("missing", "skipped") or self._executor.may_go_further(record.outcome):
            return False
        located = self._executor.locate(self._trials[record.trial].engine)
        same_code = record.hashes.get("adapter") == adapter_digest(located.engine.adapter)
        # An engine may tell fewer versions than are known of its environment, or more.
        same_versions = all(record.versions.get(name, have) == have for name, have in located.versions.items())
        return same_code and same_versions and record.machine == self.fingerprint


def _group(trial: Trial) -> str:
    """Cells that differ in the engine and its loop alone are compared with each other."""
    return repr([value for name, value in trial.coordinates.items() if name not in ("engine", "loop")])
