"""A campaign that looks at its results while it goes on: twins, early stops, budgets, repeats, pruning."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults import bench
from tests.unit import made_records as made
from timetrial.cli.loading import trials_of
from timetrial.meters.canary import Canary, Reading, Song
from timetrial.records.choice import counted, floor_of, newest
from timetrial.records.digest import Digest, briefs, digests
from timetrial.records.record import Laps, Limit, Outcome, Record
from timetrial.records.store import Store
from timetrial.report.notes import remarks, shortcomings
from timetrial.report.summary import summarise
from timetrial.runner import campaign as campaigns
from timetrial.runner import executor as executors
from timetrial.runner import profiles, session
from timetrial.runner.campaign import Campaign
from timetrial.runner.executor import Executor
from timetrial.runner.forecast import Forecast
from timetrial.runner.process import Finished
from timetrial.runner.steps import Step


class Played:
    """In place of the executor's processes: each cell takes the times it is given, and each run some clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **seconds: Sequence[float]) -> None:
        self.now, self.cost = 0.0, dict.fromkeys(seconds, 10.0)
        self._times: dict[tuple[str, str], Iterator[float]] = {}
        self._seconds = seconds
        self.outcomes: dict[str, Outcome] = {}
        self.steps: list[Step] = []
        monkeypatch.setattr(Executor, "carry_out", lambda executor, *rest: self._carry_out(executor, *rest))

    def _carry_out(self, executor: Executor, step: Step, going: Any, floor: float, listen: Any) -> Record:
        engine = step.trial.engine
        self.steps.append(step)
        self.now += self.cost[engine]
        record = executor._record(step, going, Finished(self.outcomes.get(engine, Outcome(kind="ok"))))
        if not record.outcome.ok:
            return record
        times = self._times.setdefault((engine, step.role), iter(self._seconds[engine] * 10))
        laps = Laps(seconds=(next(times),) * 10, steps=1, warmup=(1.0,), stable=True)
        return record.model_copy(
            update={"laps": laps, "phases": {"steady": 5.0}, "wall_seconds": self.cost[engine], **self.flags(step)}
        )

    def flags(self, step: Step) -> dict[str, Any]:
        return {}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)


def play(played: Played, folder: Path, *engines: str, **changes: Any) -> Campaign:
    asked = bench.study(*engines, **{"repeat": None, "profile": "normal", "measure": ["time"], **changes})
    return Campaign(asked, trials_of(asked), folder, clock=lambda: played.now)


NARROW, WIDE = (1.0, 1.001, 0.999, 1.0), (1.0, 1.1, 0.9, 1.02, 0.97)


def test_what_is_decided_early_is_left_off_and_the_rest_goes_on(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW, slowlaps=[9 * value for value in WIDE])
    records = list(play(played, tmp_path, "honest", "slowlaps").go())
    counts = Counter(record.cell["engine"] for record in records)
    assert counts == {"honest": 3, "slowlaps": 7}  # the two runs that one has saved go to the other
    (group,) = summarise(records)
    assert [row.engine for row in group.rows] == ["honest", "slowlaps"]


def test_a_number_that_is_asked_for_is_kept_to(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW, slowlaps=[9 * value for value in NARROW])
    records = list(play(played, tmp_path, "honest", "slowlaps", repeat=6).go())
    assert Counter(record.cell["engine"] for record in records) == {"honest": 6, "slowlaps": 6}


def test_a_stopped_study_makes_the_runs_that_it_would_have_made(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: dict[str, Any] = {"honest": NARROW, "slowlaps": [9 * value for value in WIDE]}
    whole = [r.run for r in play(Played(monkeypatch, **times), tmp_path / "a", "honest", "slowlaps").go()]
    played = Played(monkeypatch, **times)
    first = []
    for record in play(played, tmp_path / "b", "honest", "slowlaps").go():
        first.append(record.run)
        if len(first) == 5:
            break
    rest = [record.run for record in play(played, tmp_path / "b", "honest", "slowlaps").go()]
    assert sorted([*first, *rest]) == sorted(whole)


def test_one_cell_is_measured_under_two_names(installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, honest=[1.0, 1.0, 1.03, 1.03], slowlaps=[2.0])
    records = list(play(played, tmp_path, "honest", "slowlaps", anchor=True, repeat=3).go())
    twins = [record for record in records if record.role == "twin"]
    assert len(twins) == 3
    assert len({record.trial for record in twins}) == 1
    assert len({record.run for record in records}) == 9
    (group,) = summarise(records)
    assert [row.step.processes for row in group.rows if row.step] == [3, 3]  # a twin is no cell
    assert group.floor.twins is not None


def test_the_floor_widens_what_counts_as_the_same(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=[1.0])
    records = list(play(played, tmp_path, "honest", anchor=True, repeat=3).go())
    moved = [
        record.model_copy(update={"laps": Laps(seconds=(1.05,) * 10, steps=1, warmup=(), stable=True)})
        if record.role == "twin"
        else record
        for record in records
    ]
    assert floor_of(records).value == 0.01
    assert floor_of(moved).value == pytest.approx(0.05)


def test_a_run_beside_an_unsteady_machine_is_made_again_twice_at_most_and_the_last_counts(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Flagged(Played):
        def flags(self, step: Step) -> dict[str, Any]:
            return {"flags": ("drift",) if step.block == 0 or (step.block == 1 and step.attempt == 0) else ()}

    played = Flagged(monkeypatch, honest=NARROW)
    records = list(play(played, tmp_path, "honest", repeat=3).go())
    assert [(record.block, record.attempt) for record in records] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]
    assert [(record.block, record.attempt) for record in counted(records)] == [(0, 2), (1, 1), (2, 0)]
    (row,) = summarise(records)[0].rows
    assert row.step is not None
    assert (row.step.processes, row.flagged) == (3, 1)
    again = play(played, tmp_path, "honest", repeat=3)
    assert list(again.go()) == []


def test_show_counts_what_run_counts(installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cell, the runs of its newest code and versions: the others are said, and are no part of it."""
    played = Played(monkeypatch, honest=NARROW)
    store = Store(tmp_path)
    for record in play(played, tmp_path, "honest", anchor=True, repeat=4).go():
        store.write(record.model_copy(update={"started": "2026-01-01T00:00:00+00:00"}))
    for module in (campaigns, executors):
        monkeypatch.setattr(module, "adapter_digest", lambda adapter: "newer")
    campaign = play(played, tmp_path, "honest", anchor=True, repeat=2)
    list(campaign.go())
    ran, kept = list(campaign.done.values()), store.records("faults")
    assert (len(ran), len(kept)) == (4, 8)
    assert sorted(record.run for record in counted(kept)) == sorted(record.run for record in ran)
    (row,), (same,) = (summarise(found)[0].rows for found in (kept, ran))
    assert row == same and row.step is not None and row.step.processes == 2
    (brief,) = briefs(item for item in digests(tmp_path) if isinstance(item, Digest))
    assert len(brief.seconds) == 2
    said = "4 runs are left out: made with other code or versions than the newest runs of their cells."
    assert said in remarks(summarise(kept), kept) and said in shortcomings(summarise(kept), kept, ())
    assert not any("left out" in text for text in remarks(summarise(ran), ran))


def test_a_fresh_run_counts_and_not_an_older_attempt_of_it(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (record,) = play(Played(monkeypatch, honest=NARROW), tmp_path, "honest", repeat=1).go()
    older = record.model_copy(
        update={"run": f"{record.run}-again2", "attempt": 2, "started": "2026-01-01T00:00:00+00:00"}
    )
    assert counted([record, older]) == counted([older, record]) == [record]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({}, 2), ({"hashes": {"adapter": "b"}}, 1), ({"versions": {"jax": "2.0", "numpy": "2.0"}}, 1),
        ({"versions": {"jax": "1.0"}}, 2),  # one may tell fewer than another
        ({"versions": {}}, 2), ({"versions": {"jax": "1.0", "numpy": "2.0", "python": "3.11"}}, 2),
        ({"machine": "other", "hashes": {"adapter": "b"}}, 2), ({"study": "other", "hashes": {"adapter": "b"}}, 2),
        ({"trial": "other", "hashes": {"adapter": "b"}}, 2),
    ],
)  # fmt: skip
def test_the_newest_code_and_versions_of_a_cell_count(change: dict[str, Any], left: int) -> None:
    old = made.record("jax", 0, 1e-3, started="2026-01-01T00:00:00+00:00")
    new = made.record("jax", 1, 1e-3, started="2026-01-02T00:00:00+00:00", **change)
    for records in ([old, new], [new, old]):
        assert len(newest(records)) == left and new in newest(records)


def test_quick_does_not_repeat(installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Flagged(Played):
        def flags(self, step: Step) -> dict[str, Any]:
            return {"flags": ("drift",)}

    played = Flagged(monkeypatch, honest=NARROW)
    assert len(list(play(played, tmp_path, "honest", profile="quick").go())) == 3


def test_memory_has_a_run_of_its_own_among_the_others(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW, slowlaps=[9.0])
    records = list(play(played, tmp_path, "honest", "slowlaps", measure=["time", "memory"], repeat=3).go())
    memory = [record for record in records if record.role == "memory"]
    assert Counter(record.cell["engine"] for record in memory) == {"honest": 1, "slowlaps": 1}
    assert {record.block for record in memory} == {1}
    (group,) = summarise(records)
    assert [row.step.processes for row in group.rows if row.step] == [3, 3]


# --- budget -----------------------------------------------------------------------------------------------------------


def test_a_budget_is_kept_and_the_cheapest_come_first(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW)
    costs = {16: 5.0, 64: 8.0, 128: 40.0}
    monkeypatch.setattr(Forecast, "seconds", lambda _, trial: costs[trial.recipe.batch])
    batches = {"vary": {"recipe.batch": [128, 16, 64]}}
    campaign = play(played, tmp_path, "honest", budget=30, recipe={}, repeat=3, **batches)
    records = list(campaign.go())
    assert played.now <= 30
    assert [record.cell["batch"] for record in records] == [16, 64, 16]
    assert len(campaign.left_out) == 3  # one has no run, the others have fewer than planned
    assert campaign.expected_seconds() > 0


def test_what_the_budget_left_out_is_made_the_next_time(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW, slowlaps=[2.0])
    first = list(play(played, tmp_path, "honest", "slowlaps", budget=25, repeat=3).go())
    rest = list(play(played, tmp_path, "honest", "slowlaps", repeat=3).go())
    assert len(first) == 2
    assert len(first) + len(rest) == 6


def test_a_budget_that_is_long_enough_changes_nothing(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: dict[str, Any] = {"honest": NARROW, "slowlaps": [2.0]}
    free = [r.run for r in play(Played(monkeypatch, **times), tmp_path / "a", "honest", "slowlaps", repeat=3).go()]
    played = Played(monkeypatch, **times)
    bound = [r.run for r in play(played, tmp_path / "b", "honest", "slowlaps", repeat=3, budget="1h").go()]
    assert bound == free


# --- what is not tried ------------------------------------------------------------------------------------------------


def test_a_larger_cell_is_skipped_with_a_record_that_says_why(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW)
    played.outcomes["honest"] = Outcome(kind="oom", reason="full")
    batches = {"vary": {"recipe.batch": [16, 32, 64]}}
    records = list(play(played, tmp_path, "honest", recipe={}, seed=3, **batches).go())
    kinds = {record.cell["batch"]: record.outcome.kind for record in records}
    assert len(records) == 3
    smallest_tried = min(step.trial.recipe.batch for step in played.steps)
    assert all(kinds[batch] == ("oom" if batch in tried(played) else "skipped") for batch in kinds)
    assert all(batch in tried(played) for batch in kinds if batch <= smallest_tried)


BATCHES = {"recipe": {}, "vary": {"recipe.batch": [16, 32, 64]}}
TIMEOUT = Outcome(kind="timeout", reason="late", limit=Limit(timeout=20))
MEMORY = Outcome(kind="oom", reason="full", limit=Limit(memory=2**30))
KERNEL = Outcome(kind="oom", reason="killed by the system")


@pytest.mark.parametrize(
    ("outcome", "limits", "again"),
    [
        (TIMEOUT, {"timeout": 20}, False), (TIMEOUT, {"timeout": 19}, False), (TIMEOUT, {"timeout": 21}, True),
        (TIMEOUT, {"timeout": 20, "memory": "64G"}, False),
        (MEMORY, {"memory": "1G"}, False), (MEMORY, {"memory": "2G"}, True), (MEMORY, {"timeout": "9h", "memory": "1G"}, False),
        (MEMORY, {}, True), (MEMORY.model_copy(update={"limit": Limit(memory=0.95 * 2**33)}), {}, False),
        (KERNEL, {"memory": "64G"}, False), (KERNEL, {}, False),
        (Outcome(kind="crash", reason="no reference", limit=Limit(timeout=20)), {"timeout": 30}, True),
    ],
)  # fmt: skip
def test_what_a_limit_stopped_is_tried_again_where_the_limit_is_larger(
    installed: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcome: Outcome,
    limits: dict[str, Any],
    again: bool,
) -> None:
    monkeypatch.setattr(Executor, "_free", lambda executor: 2**33)
    played = Played(monkeypatch, honest=NARROW)
    played.outcomes["honest"] = outcome
    assert len(list(play(played, tmp_path, "honest").go())) == 1
    del played.outcomes["honest"]
    records = list(play(played, tmp_path, "honest", limits=limits).go())
    assert {record.outcome.kind for record in records} == ({"ok"} if again else set())


def test_a_larger_cell_that_was_skipped_is_tried_again_with_the_smaller(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW)
    played.outcomes["honest"] = MEMORY
    first = list(play(played, tmp_path, "honest", seed=3, limits={"memory": "1G"}, **BATCHES).go())
    assert "skipped" in {record.outcome.kind for record in first}
    assert {kept.outcome.remedy for kept in first if kept.outcome.kind == "skipped"} == {
        "raise limits: {memory: …}, and both are tried again"
    }
    del played.outcomes["honest"]
    again = list(play(played, tmp_path, "honest", seed=3, limits={"memory": "2G"}, **BATCHES).go())
    assert {record.cell["batch"] for record in again} == {16, 32, 64}
    assert {record.outcome.kind for record in again} == {"ok"}


def tried(played: Played) -> set[int]:
    return {step.trial.recipe.batch for step in played.steps}


# --- with a real worker and a canary that can be told what to sing --------------------------------------------------------


class Loud(Canary):
    """Sings a slower song around the third run."""

    songs = 0

    def __enter__(self) -> Canary:
        return self

    def sing(self, cores: Sequence[int]) -> Reading:
        Loud.songs += 1
        slow = 1.5 if Loud.songs == session.AT_REST + 2 else 1.0
        return Reading(tuple(Song(core, slow, 1.0) for core in cores))


def test_a_real_run_carries_what_was_seen_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)
    monkeypatch.setattr(session, "Canary", Loud)
    monkeypatch.setattr(Loud, "songs", 0)
    plans = dict.fromkeys(profiles._PLANS, replace(bench.TINY, precision=0.5))
    monkeypatch.setattr(profiles, "_PLANS", plans)
    first, second, memory = bench.run(tmp_path, "honest", profile="normal", measure=["time", "memory"])
    assert first.flags and "after the run" in first.flags[0]
    assert (second.attempt, second.flags) == (1, ()) or second.role == "memory"
    by_role = {record.role: record for record in (first, second, memory)}
    assert by_role["memory"].memory["tree_peak"] > 2**20
    assert "tree_peak" not in first.memory
    assert first.contention["seconds"] > 0
    assert first.session == second.session
    shutil.rmtree(tmp_path)
    assert campaigns.Session is session.Session
