"""Adaptive stopping, replayed on a recorded study of the fixed `publish` design: the same verdicts, in how much time?

python benchmarks/replay.py [FOLDER_OF_RECORDS STUDY]

Without arguments it records `replay.yaml` first, in `replay-records` where it is run, and goes on where it was stopped.
The study is run with `profile: publish` and `stopping: fixed`, so that every process and every lap is there. The
replay gives the adaptive design the same laps in the same order and lets it leave off where it would have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from timetrial.records.choice import counted
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report.summary import summarise
from timetrial.runner import design, profiles
from timetrial.runner.design import Design, Member
from timetrial.stats.intervals import process_value
from timetrial_worker import laps

STUDY = Path(__file__).with_name("replay.yaml")


@dataclass(frozen=True)
class Replayed:
    """One process as the adaptive design would have run it."""

    record: Record
    seconds: float
    value: float


def shortened(record: Record) -> Replayed:
    """The laps until the median is known, and the time without the others."""
    assert record.laps is not None and record.wall_seconds is not None
    plan = laps.Plan(**{name: getattr(profiles._PLANS["publish"], name) for name in laps.Plan._fields})
    times = [seconds * record.laps.steps for seconds in record.laps.seconds]
    taken = 0
    while taken < plan.laps or not laps._enough(list(record.laps.seconds[:taken]), sum(times[:taken]), plan):
        if taken == len(times):
            break
        taken += 1
    kept = record.laps.model_copy(update={"seconds": record.laps.seconds[:taken]})
    saved = sum(times) - sum(times[:taken])
    return Replayed(record.model_copy(update={"laps": kept}), record.wall_seconds - saved, process_value(kept.seconds))


def replay(records: Sequence[Record]) -> tuple[list[Replayed], float]:
    """Those runs that the adaptive design makes, and the floor that it stands beside."""
    by_cell: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.block):
        by_cell.setdefault(record.trial, []).append(record)
    cells = [Member(trial, "one") for trial in by_cell]
    plan = Design(usual=max(map(len, by_cell.values())), target=profiles._TARGETS["publish"])
    results: dict[Member, list[float]] = {cell: [] for cell in cells}
    made: list[Replayed] = []
    for number in count():
        going = design.block(number, cells, results, plan, 0.01)
        if not going:
            return made, 0.01
        for cell in going:
            there = by_cell[cell.trial]
            if number < len(there):  # what the adaptive design would spend beyond the fixed one is not there
                made.append(shortened(there[number]))
                results[cell].append(made[-1].value)


def record(folder: Path) -> str:
    """The study beside this file; what is recorded already is not run again. Returns its name."""
    from timetrial.cli.loading import trials_of
    from timetrial.runner.campaign import Campaign
    from timetrial.spec.study import load_study

    study = load_study(STUDY)
    campaign = Campaign(study, trials_of(study), folder)
    print(f"recording {study.study} in {folder}: about {campaign.expected_seconds() / 60:.0f} min", flush=True)
    for _ in campaign.go():
        pass
    return study.study


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("replay-records"))
    parser.add_argument("study", nargs="?", help="a study that was recorded so; without it, replay.yaml is")
    asked = parser.parse_args(given)
    study = asked.study or record(asked.folder)
    records = [r for r in counted(Store(asked.folder).records(study)) if r.outcome.ok and r.role == "cell"]
    if not records:
        raise SystemExit(f"{asked.folder}: no finished runs of a study '{study}'")
    made, _ = replay(records)
    fixed = sum(record.wall_seconds or 0.0 for record in records)
    adaptive = sum(one.seconds for one in made)
    print(f"{'':18}{'fixed publish':>34}{'adaptive':>34}")
    groups = zip(summarise(records), summarise([one.record for one in made]), strict=True)
    same = True
    for whole, part in groups:
        ours = {row.engine: row for row in part.rows}
        for row in whole.rows:
            same &= _word(row) == _word(ours[row.engine])
            print(f"{row.engine:18}{_told(row):>34}{_told(ours[row.engine]):>34}")
    print(f"{'processes':18}{len(records):>34}{len(made):>34}")
    print(f"{'time':18}{fixed / 60:>30.1f} min{adaptive / 60:>30.1f} min")
    print(f"\nThe verdicts are {'the same' if same else 'NOT the same'}, in {adaptive / fixed:.2f} of the time.")


def _word(row: object) -> str:
    found = row.verdict  # type: ignore[attr-defined]
    return "fastest" if found is None else found.word


def _told(row: object) -> str:
    from timetrial.report.words import timing

    return f"{timing(row.step)} {_word(row)}"  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
