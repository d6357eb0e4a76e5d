"""What tuning brings, and how close it comes to trying everything.

python benchmarks/tune.py [--quick] [--records FOLDER] [--only proof|grid] [--budget SECONDS]

(a) torch, one thread, on the profiling study's CNN and on a CNN of 32 and 64 filters, training and inference: the
proved speed-up over the framework's defaults. Aims: 2x for training, 4x for inference, outputs within the gate's
tolerance. (b) The same switches once more as a whole grid: every combination, as many processes each as a step of
tuning's ladder. Aims: tuning's pick takes at most 1.05 times the best of the grid, in a quarter of its time. Pick and
best are then measured once more side by side, because the best of many looks better than it is.

What was measured is kept under --records (default: benchmark-tune), and the same command goes on from there. The time
of a part is that of all its starts, proofs included; the grid makes its own. Start it on a calm machine: it takes about
two hours, with --quick a few minutes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from timetrial.cli.loading import trials_of
from timetrial.meters.hardware import inventory
from timetrial.report import tuning
from timetrial.spec.study import parse_study
from timetrial.spec.trial import Task, Trial
from timetrial.stats.intervals import interval
from timetrial.stats.verdicts import verdict
from timetrial.tuning.bench import Campaigns, stage_name
from timetrial.tuning.measured import Measured
from timetrial.tuning.proposals import Proposal, changed, replaced
from timetrial.tuning.rules import propose
from timetrial.tuning.search import STEPS, Question, Search, Tuned
from timetrial.tuning.situation import Situation

SMALL_CNN = {
    "name": "conv32-conv64",
    "input": {"shape": [28, 28, 1]},
    "layers": [
        {"conv2d": {"filters": 32, "kernel": 3, "activation": "relu"}},
        {"conv2d": {"filters": 64, "kernel": 3, "activation": "relu"}},
        {"max_pool": {"window": 2}},
        "flatten",
        {"dense": {"units": 10, "activation": "softmax"}},
    ],
}
NETWORKS: tuple[dict[str, Any], ...] = ({"models": ["profiling/cnn"]}, {"networks": [SMALL_CNN]})
QUICK: tuple[dict[str, Any], ...] = ({"models": ["quick/cnn"]},)
ADAM = {"optimiser": {"kind": "adam"}}
TASKS = (["train", "infer"], ["infer"])  # of a whole run, and of a quick one
AIMS = {"train": 2.0, "infer": 4.0}
WITHIN, SHARE = 1.05, 0.25
BUDGET = 1200.0  # of tuning; it ends before, where nothing is open
LONG, UNLIMITED = 3600.0, 24 * 3600.0  # a budget whose share no run needs, and one for what has none


def bases(network: dict[str, Any], quick: bool) -> dict[Task, Trial]:
    """The framework's defaults, exactly as it comes, at batch 128 on one thread."""
    own = {
        "recipe": {"batch": 128, "epochs": 2, **(ADAM if "networks" in network else {})},
        "tasks": TASKS[quick],
    }
    settings = {"allocator": "as-shipped"}
    study = parse_study({"study": "tune", **network, **own, "engines": ["torch"], "settings": settings}, "benchmark")
    return {trial.task: replaced(trial, samples=1024 if quick else 4000) for trial in trials_of(study)}


def switches(found: dict[Task, Trial], quick: bool) -> tuple[Proposal, ...]:
    """What the catalogue proposes for this machine; in a quick run only two of them."""
    proposals, _ = propose(Situation(found, inventory(), fixed=frozenset({"recipe.batch"})))
    tried = [one for one in proposals if one.tried and one.joins]
    return tuple(one for one in tried if not quick or one.rule in ("layout", "precision"))


class Clocked:
    """Seconds that a part took, over all its starts."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.seconds.json"
        self.before = json.loads(self.path.read_text()) if self.path.exists() else 0.0

    def __enter__(self) -> Clocked:
        self.started = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.seconds))

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started


def campaigns(found: dict[Task, Trial], folder: Path, budget: float) -> Campaigns:
    return Campaigns(
        stage_name(list(found.values())), folder, budget, lambda stage, record: print(".", end="", flush=True)
    )


def tuned(
    found: dict[Task, Trial], proposals: tuple[Proposal, ...], folder: Path, budget: float
) -> tuple[Tuned, float]:
    with Clocked(folder, stage_name(list(found.values()))) as clock:
        answer = Search(Question(found, proposals, budget), campaigns(found, folder, budget), print).go()
    return answer, clock.seconds


def grid(base: Trial, proposals: Sequence[Proposal]) -> list[Trial]:
    """Every combination of the switches of its task, where each thing is changed once."""
    axes: dict[str, list[tuple[Proposal, ...]]] = {}
    for one in proposals:
        if base.task in one.tasks:
            axes.setdefault(one.changes[0][0], [()]).append((one,))
    return [changed(base, *(one for choice in chosen for one in choice)) for chosen in product(*axes.values())]


def whole_grid(
    found: dict[Task, Trial], proposals: tuple[Proposal, ...], folder: Path, processes: int
) -> tuple[dict[Task, Trial], float, int]:
    """The best of each task, the seconds of all, and how many combinations they were."""
    by_task = {task: grid(base, proposals) for task, base in found.items()}
    cells = [trial for trials in by_task.values() for trial in trials]
    with Clocked(folder, f"{stage_name(list(found.values()))}-grid") as clock:
        seen = campaigns(found, folder / "grid", LONG).measure("grid", cells, processes, UNLIMITED)
    best = {
        task: min((one for one in trials if seen[one.id].ok), key=lambda one: middle(seen[one.id]))
        for task, trials in by_task.items()
    }
    return best, clock.seconds, len(cells)


def middle(run: Measured) -> float:
    return interval(run.seconds).value


def against_grid(
    found: dict[Task, Trial], answer: Tuned, spent: float, proposals: tuple[Proposal, ...], folder: Path, processes: int
) -> None:
    best, seconds, cells = whole_grid(found, proposals, folder, processes)
    print(f"\ngrid of {cells} combinations: {seconds:.0f} s; tuning took {spent / seconds:.2f} of it, aim {SHARE}")
    picks = {task: answer.ready.get(task, base) for task, base in found.items()}
    pairs = {trial.id: trial for task in found for trial in (picks[task], best[task])}
    seen = campaigns(found, folder, LONG).measure("picks", list(pairs.values()), 2 * processes, UNLIMITED)
    print()
    for task in found:
        if picks[task].id == best[task].id:
            print(f"{task}: tuning picked the best of the grid")
            continue
        ratio = verdict(seen[best[task].id].seconds, seen[picks[task].id].seconds).speedup
        print(f"{task}: the pick takes {tuning.ratio(ratio)} the time of the grid's best, aim {WITHIN}x at most")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="few switches and processes: only to see that it works")
    options.add_argument("--records", type=Path, default=Path("benchmark-tune"))
    options.add_argument("--only", choices=("proof", "grid"), help="proof: without the grid; grid: the first network")
    options.add_argument("--budget", type=float, default=BUDGET, help="seconds of tuning a network")
    given = options.parse_args()
    processes = 2 if given.quick else STEPS
    for network in QUICK if given.quick else NETWORKS[: 1 if given.only == "grid" else None]:
        found = bases(network, given.quick)
        proposals = switches(found, given.quick)
        answer, spent = tuned(found, proposals, given.records, given.budget)
        print(f"\n{next(iter(found.values())).model}: tuned in {spent:.0f} s")
        for line in tuning.answers(answer):
            print(f"  {line}")
        print("  aims: " + ", ".join(f"{task} {AIMS[task]:g}x" for task in found))
        if given.only != "proof":
            against_grid(found, answer, spent, proposals, given.records, processes)


if __name__ == "__main__":
    main()
