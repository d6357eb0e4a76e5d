"""The search: successive halving over the proposals, a ladder of what was left, and a proof of the combination in fresh
runs.

A start with the defaults alone tells what a run costs. Then every proposal gets few processes, and those that are not
decided and look faster get twice as many, and so on. What was kept is put together one on top of the other, the best
first; what brings nothing there is left out again, and what alone was no gain gets its chance on top. The combination
is measured anew beside the defaults, because the best of many looks better than it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from timetrial.records.record import Outcome
from timetrial.spec.trial import Task, Trial
from timetrial.stats.floor import Floor
from timetrial.stats.verdicts import verdict
from timetrial.tuning.bench import FIRST, JOIN, PROOF, SEARCH, Bench
from timetrial.tuning.judging import POINTS, Candidate, Finding, Seen, floors, judge
from timetrial.tuning.measured import Measured
from timetrial.tuning.proposals import Proposal, changed

RUNGS = (2, 4, 8)  # processes of a proposal that is still open
PROOFS = (4, 8)  # of the combination
STEPS = 3  # processes of each step of the ladder
TRIES = 3  # ladders, where a step breaks
TRIED = 0.4  # of the budget: what the first round may take, so that there are further ones
SEARCHED, JOINED = 0.55, 0.75  # when halving ends, and when the ladder does
LEAST_PROOFS = 2  # of the gate, of a few seconds each
GATE_SECONDS = 5.0


class TooShort(ValueError):
    """The budget does not reach for a single proposal."""

    def __init__(self, budget: float, needed: float) -> None:
        super().__init__(
            f"a budget of {_words(budget)} is too short: one proposal and its proof alone take about {_words(needed)}; "
            f"give it with --budget {math.ceil(needed / 60)}m, more for more proposals"
        )


class NoDefault(RuntimeError):
    """The framework's defaults themselves cannot be measured: there is nothing to hold a change against."""


@dataclass(frozen=True)
class Question:
    """`bases` are the framework's defaults for each task; `proposals` those that are to be tried, in order."""

    bases: Mapping[Task, Trial]
    proposals: tuple[Proposal, ...]
    budget: float
    points: float = POINTS


@dataclass(frozen=True)
class Tuned:
    """`proved`: of each task the combination that was measured anew, if there was anything to combine."""

    bases: Mapping[Task, Trial]
    defaults: Mapping[Task, Measured]
    floors: Mapping[Task, Floor]
    findings: tuple[Finding, ...]
    proved: Mapping[Task, Finding]
    proof_defaults: Mapping[Task, Measured]
    seconds: float

    @property
    def ready(self) -> dict[Task, Trial]:
        """What to run with from now on; a task without a proved gain stays with its defaults."""
        found = ((task, self.proved.get(task)) for task in self.bases)
        return {task: one.candidate.trial for task, one in found if one and one.word == "kept"}


class Search:
    """One search. `say` hears in words what goes on."""

    def __init__(self, question: Question, bench: Bench, say: Callable[[str], None] = lambda words: None) -> None:
        self.question, self.bench, self.say = question, bench, say
        self._started = bench.now()
        self._anchors = [trial.id for trial in question.bases.values()]
        self._seen: dict[str, Measured] = {}  # of the wave that is going on
        self._defaults: dict[Task, Measured] = {}
        self._floors: dict[Task, Floor] = {}  # the worst over the waves

    def go(self) -> Tuned:
        bases, found, left = self.question.bases, list[Finding](), self._candidates()
        self._measure(FIRST, [], 1, 1.0)
        for number in count(1):
            wave = self._affordable(left, number)
            if not wave:
                break
            found += self._halve(SEARCH if number == 1 else f"{SEARCH}{number}", wave)
            left = left[len(wave) :]
        found += [Finding(one, "not tried", "the budget did not reach it") for one in left]
        proved, beside = self._prove(self._joined(found))
        compared = tuple(self._compared(one) for one in found)
        spent = self.bench.now() - self._started
        return Tuned(bases, self._defaults, self._floors, compared, proved, beside, spent)

    # --- how much can be tried

    def _candidates(self) -> list[Candidate]:
        bases = self.question.bases
        return [
            Candidate((proposal,), task, changed(bases[task], proposal))
            for proposal in self.question.proposals
            for task in proposal.tasks
            if task in bases and proposal.tried
        ]

    def _affordable(self, left: Sequence[Candidate], number: int) -> list[Candidate]:
        """The next wave: as many, in the order of the catalogue, as the share of the budget reaches for."""
        if number == 1 and left:
            needed = self._least(left[0])
            if needed > self._left():
                raise TooShort(self.question.budget, self.bench.now() - self._started + needed)
        stage, share = (SEARCH, TRIED) if number == 1 else (f"{SEARCH}{number}", SEARCHED)
        taken: list[Candidate] = []
        for one in left:
            if self._expected(stage, [*taken, one], RUNGS[0]) > self._left(share):
                break
            taken.append(one)
        return taken or list(left[: number == 1])

    def _least(self, one: Candidate) -> float:
        runs = self._expected(SEARCH, [one], RUNGS[0]) + self._expected(PROOF, [one], PROOFS[0])
        return runs + LEAST_PROOFS * GATE_SECONDS

    def _expected(self, stage: str, candidates: Sequence[Candidate], processes: int) -> float:
        return self.bench.expected(stage, self._trials(candidates), processes, self._anchors)

    def _left(self, share: float = 1.0) -> float:
        """Seconds until that share of the budget is spent."""
        return share * self.question.budget - (self.bench.now() - self._started)

    # --- halving

    def _halve(self, stage: str, wave: Sequence[Candidate]) -> list[Finding]:
        """What is measured together is judged together, against the defaults of the same blocks."""
        bases, going = self.question.bases, list(wave)
        self._seen = {base.id: self._seen[base.id] for base in bases.values()}
        for number, processes in enumerate(RUNGS):
            if not going or self._left(SEARCHED) <= 0:
                break
            self.say(f"{stage}, round {number + 1}: {_several(len(going), 'proposal')}, {processes} processes each")
            self._measure(stage, going, processes, SEARCHED)
            going = [one.candidate for one in self._survivors(self._judged(going), processes)]
        for task, least in floors(bases, self._seen).items():
            self._floors[task] = max(self._floors.get(task, least), least, key=lambda one: one.value)
            self._defaults.setdefault(task, self._seen[bases[task].id])
        return self._judged(wave)

    def _survivors(self, found: Sequence[Finding], processes: int) -> list[Finding]:
        """Of each task the better half of those that are open and look faster, and what as many runs again decide."""
        kept: list[Finding] = []
        for task in self.question.bases:
            still = [one for one in found if one.candidate.task == task and one.word == "undecided"]
            faster = sorted((one for one in still if one.speedup > 1), key=lambda one: -one.speedup)
            better = faster[: math.ceil(len(faster) / 2)]
            kept += [one for one in still if one in better or (one.verdict and (one.verdict.more or 0) <= processes)]
        return kept

    def _judged(self, candidates: Sequence[Candidate]) -> list[Finding]:
        return judge(candidates, self.question.bases, self._seen, len(RUNGS), self.question.points)

    # --- putting together

    def _joined(self, found: Sequence[Finding]) -> list[Candidate]:
        """What goes into the proof: of each task the combination, and another engine where that was faster."""
        stacks = {task: self._order(task, found) for task in self.question.bases}
        best = self._climb({task: stack for task, stack in stacks.items() if stack})
        others = [one.candidate for one in found if one.word == "kept" and not one.candidate.proposals[0].joins]
        return [*best, *(one for one in others if one.proposals[0].rule != "variant")]

    def _order(self, task: Task, found: Sequence[Finding]) -> list[Finding]:
        """Proved ones first, then those that were not shown to be slower; each thing is changed once."""
        mine = [one for one in found if one.candidate.task == task and one.candidate.proposals[0].joins]
        kept = sorted((one for one in mine if one.word == "kept"), key=lambda one: -one.speedup)
        margin = 1 / (1 + self._floors[task].value)
        others = (one for one in mine if one.word in ("tied", "undecided") and one.speedup >= margin)
        order: list[Finding] = []
        for one in [*kept, *sorted(others, key=lambda one: -one.speedup)]:
            proposal = one.candidate.proposals[0]
            if not proposal.conflicts(tuple(other.candidate.proposals[0] for other in order)):
                order.append(one)
        return order

    def _climb(self, orders: Mapping[Task, list[Finding]]) -> list[Candidate]:
        """All steps of the ladders in one round; where a step breaks, the ladder is set up anew without it."""
        going, best = dict(orders), {task: _stack(order[:1]) for task, order in orders.items()}
        for number in range(TRIES):
            ladders = {task: [_stack(order[: n + 1]) for n in range(len(order))] for task, order in going.items()}
            steps = [self._with_trial(one) for ladder in ladders.values() for one in ladder if len(ladder) > 1]
            if not steps or self._left(JOINED) <= 0:
                break
            self.say(f"combining: {_several(len(steps), 'step')}, {STEPS} processes each")
            seen = self.bench.measure(f"{JOIN}{number + 1}", [one.trial for one in steps], STEPS, self._left(JOINED))
            broken = {}
            for task, order in going.items():
                broken[task] = next((i for i, one in enumerate(ladders[task]) if self._broke(one, seen)), None)
                best[task] = _stack(self._helpful(task, order[: broken[task]], seen))
            going = {task: _without(going[task], at) for task, at in broken.items() if at is not None}
        return [self._with_trial(one) for one in best.values() if self._promises(one, orders)]

    def _promises(self, one: Candidate, orders: Mapping[Task, list[Finding]]) -> bool:
        """A single change must be proved alone, or look faster by more than the noise: fresh runs then decide."""
        alone = next(f for f in orders[one.task] if f.candidate.proposals[0] == one.proposals[0])
        least = self._floors[one.task].value
        open_yet = alone.word == "undecided" and alone.speedup > 1 + least
        return len(one.proposals) > 1 or alone.word == "kept" or open_yet

    def _broke(self, one: Candidate, seen: Seen) -> bool:
        run = seen.get(self._with_trial(one).trial.id)
        return run is not None and not run.outcome.ok and run.outcome.kind != "skipped"

    def _helpful(self, task: Task, order: Sequence[Finding], seen: Seen) -> list[Finding]:
        """Steps on which the ladder got faster: by any amount where the change was proved alone, else for certain or by
        more than the noise."""
        kept, least = list(order[:1]), self._floors[task].value
        for number in range(1, len(order)):
            with_it, without = (seen.get(self._with_trial(_stack(order[:n])).trial.id) for n in (number + 1, number))
            if with_it is None or without is None or not with_it.ok or not without.ok:
                break
            gain = verdict(with_it.seconds, without.seconds, least)
            needed = 1.0 if order[number].word == "kept" else 1 + least
            if gain.word == "faster" or (gain.word != "same" and gain.speedup.value > needed):
                kept.append(order[number])
        return kept

    def _with_trial(self, one: Candidate) -> Candidate:
        return replace(one, trial=changed(self.question.bases[one.task], *one.proposals))

    # --- proof

    def _prove(self, candidates: Sequence[Candidate]) -> tuple[dict[Task, Finding], dict[Task, Measured]]:
        """The best of each task, by fresh runs beside the defaults; more of them while it is open and there is time."""
        found: list[Finding] = []
        bases = {task: base for task, base in self.question.bases.items() if any(c.task == task for c in candidates)}
        if not bases:
            return {}, {}
        seen: Seen = {}
        for number, processes in enumerate(PROOFS):
            if number and (self._left() <= 0 or all(one.word != "undecided" for one in found)):
                break
            self.say(
                f"proof: {_several(len(candidates), 'combination')} beside the defaults, {processes} processes each"
            )
            trials = [*bases.values(), *(one.trial for one in candidates)]
            anchors = [base.id for base in bases.values()]
            seen = self.bench.measure(PROOF, trials, processes, max(self._left(), 1.0), anchors)
            if not all(seen[base.id].ok for base in bases.values()):
                break
            found = judge(candidates, bases, seen, len(PROOFS), self.question.points)
        best: dict[Task, Finding] = {}
        for one in sorted(found, key=lambda one: (one.word == "kept", one.speedup)):
            best[one.candidate.task] = self._compared(one)
        return best, {task: seen[base.id] for task, base in bases.items()}

    # --- measuring

    def _measure(self, stage: str, candidates: Sequence[Candidate], processes: int, share: float) -> None:
        anchors = [] if stage == FIRST else self._anchors
        trials = self._trials(candidates)
        found = self.bench.measure(stage, trials, processes, max(self._left(share), 1.0), anchors)
        self._seen.update({trial: run for trial, run in found.items() if run.outcome.kind != "skipped" or run.seconds})
        for base in self.question.bases.values():
            run = self._seen.get(base.id)
            if run is None or not run.ok:
                raise NoDefault(_why(base, run.outcome if run else None))

    def _trials(self, candidates: Sequence[Candidate]) -> list[Trial]:
        return [*self.question.bases.values(), *(one.trial for one in candidates)]

    def _compared(self, one: Finding) -> Finding:
        base = self.question.bases[one.candidate.task]
        same_function = one.candidate.proposals[0].rule != "variant"
        known = one.measured is not None and one.measured.equivalence is not None and same_function
        return replace(one, difference=self.bench.difference(one.candidate.trial, base)) if known else one


def _stack(order: Sequence[Finding]) -> Candidate:
    """Their changes on top of each other; the trial is made where it is needed."""
    first = order[0].candidate
    return replace(first, proposals=tuple(one.candidate.proposals[0] for one in order))


def _without(order: list[Finding], at: int) -> list[Finding]:
    return order[:at] + order[at + 1 :]


def _why(base: Trial, outcome: Outcome | None) -> str:
    what = f"the defaults of {base.engine} could not be measured ({base.task})"
    if outcome is None:
        return f"{what}: the budget did not reach them; give more with --budget"
    return ": ".join(filter(None, (what, outcome.kind, outcome.reason, outcome.remedy)))


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'s'[: number != 1]}"


def _words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
