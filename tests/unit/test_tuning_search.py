"""Tuning with a bench that measures nothing: what is kept, tied, rejected, combined and proved, and in what time."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tests.unit.made_tuning import COMPILED, FOREACH, FUSED, HALF, LAST, Told, bases, has, proposal
from timetrial.records.record import Outcome
from timetrial.report import tuning
from timetrial.spec.trial import Task, Trial
from timetrial.tuning.proposals import Proposal
from timetrial.tuning.search import NoDefault, Question, Search, TooShort, Tuned

WRONG = Outcome(kind="wrong", reason="differs from the reference first in the update of dense/kernel: off by 1")
HOUR = 3600.0


def tune(
    told: Told, *proposals: Proposal, tasks: tuple[Task, ...] = ("train",), budget: float = HOUR, **more: Any
) -> Tuned:
    return Search(Question(bases(*tasks), proposals, budget, **more), told).go()


def words(tuned: Tuned) -> dict[tuple[str, str], str]:
    return {(one.candidate.name, one.candidate.task): one.word for one in tuned.findings}


def product(trial: Trial, **factors: float) -> float:
    known = {"last": LAST, "half": HALF, "fused": FUSED, "foreach": FOREACH, "compiled": COMPILED}
    found = 1.0
    for name, factor in factors.items():
        found *= factor if has(trial, known[name]) else 1.0
    return found


def test_what_helps_is_kept_what_does_not_is_not_and_the_combination_is_proved() -> None:
    told = Told(lambda trial: product(trial, half=0.5, last=0.8, fused=1.0, compiled=1.3))
    tuned = tune(told, HALF, LAST, FUSED, COMPILED)
    assert words(tuned) == {
        ("half", "train"): "kept", ("last", "train"): "kept", ("fused", "train"): "tied", ("compiled", "train"): "rejected",
    }  # fmt: skip
    slower = next(one for one in tuned.findings if one.candidate.name == "compiled")
    assert slower.because == "slower: 1.30x the time"
    proved = tuned.proved["train"]
    assert (proved.candidate.name, proved.word) == ("half + last", "kept")
    assert proved.verdict and proved.verdict.speedup.value == pytest.approx(2.5, rel=0.02)
    assert has(tuned.ready["train"], HALF, LAST) and not has(tuned.ready["train"], FUSED)
    assert proved.difference == 2.7e-3


def test_a_change_may_help_one_task_and_hurt_the_other() -> None:
    told = Told(lambda trial: product(trial, compiled=1.2 if trial.task == "train" else 0.5))
    tuned = tune(told, COMPILED, tasks=("train", "infer"))
    assert words(tuned) == {("compiled", "train"): "rejected", ("compiled", "infer"): "kept"}
    assert set(tuned.ready) == {"infer"}
    said = list(tuning.answers(tuned))
    assert said[0] == "Training: nothing was kept; the defaults stay."
    assert said[1].startswith("Inference: compiled: 2.0") and said[1].endswith("proved, output difference 3.0e-07.")


def test_what_brings_nothing_alone_gets_its_chance_on_top() -> None:
    """As channels last under bfloat16: the one alone is no gain for training, both together are."""
    told = Told(lambda trial: 0.4 if has(trial, HALF, LAST) else product(trial, half=0.5))
    tuned = tune(told, LAST, HALF)
    assert words(tuned)["last", "train"] == "tied"
    assert tuned.proved["train"].candidate.name == "half + last"


def test_what_is_good_alone_and_bad_together_is_left_out() -> None:
    told = Told(
        lambda trial: product(trial, half=0.5, compiled=0.6, last=0.9) * (7 / 3 if has(trial, HALF, COMPILED) else 1)
    )
    tuned = tune(told, COMPILED, HALF, LAST)
    assert set(words(tuned).values()) == {"kept"}
    assert tuned.proved["train"].candidate.name == "half + last"


def test_a_step_that_breaks_on_top_of_another_is_left_out() -> None:
    broken = Outcome(kind="oom", reason="out of memory")
    told = Told(
        lambda trial: product(trial, half=0.5, compiled=0.6, last=0.9),
        ends=lambda trial: broken if has(trial, HALF, COMPILED) else None,
    )
    tuned = tune(told, COMPILED, HALF, LAST)
    assert tuned.proved["train"].candidate.name == "half + last"
    assert tuned.proved["train"].word == "kept"


def test_two_values_of_one_setting_are_never_joined() -> None:
    told = Told(lambda trial: product(trial, fused=0.7, foreach=0.6))
    tuned = tune(told, FUSED, FOREACH)
    assert set(words(tuned).values()) == {"kept"}
    assert tuned.proved["train"].candidate.name == "foreach"


def test_a_change_that_makes_results_wrong_is_rejected_and_shown() -> None:
    told = Told(
        lambda trial: product(trial, fused=0.1, half=0.5), ends=lambda trial: WRONG if has(trial, FUSED) else None
    )
    tuned = tune(told, FUSED, HALF)
    assert words(tuned)["fused", "train"] == "rejected"
    assert tuned.proved["train"].candidate.name == "half"
    assert "rejected, wrong: differs from the reference first in the update of dense/kernel" in shown(tuned)


@pytest.mark.parametrize(("points", "word"), [(2.0, "rejected"), (4.0, "kept")])
def test_a_change_that_learns_worse_is_rejected(points: float, word: str) -> None:
    told = Told(lambda trial: product(trial, half=0.5), learns=lambda trial: 0.77 if has(trial, HALF) else 0.8)
    tuned = tune(told, HALF, LAST, points=points)
    assert words(tuned)["half", "train"] == word
    assert ("train" in tuned.ready) is (word == "kept")
    if word == "rejected":
        assert "rejected, accuracy falls by 3.0 points, 2 are allowed" in shown(tuned)


def test_noise_is_not_taken_for_a_gain() -> None:
    """Ten changes that do nothing, on a machine that scatters by a tenth: none is kept."""
    for seed in range(5):
        told = Told(lambda trial: 1.0, noise=0.1)
        told.random.seed(seed)
        nothing = [proposal(f"flags {n}", settings__xla_flags=f"--{n}") for n in range(10)]
        tuned = tune(told, *nothing)
        assert tuned.ready == {}
        assert "kept" not in words(tuned).values()


def test_an_open_question_says_how_many_runs_would_close_it() -> None:
    told = Told(lambda trial: product(trial, half=0.97), noise=0.05)
    tuned = tune(told, HALF)
    (row,) = tuned.findings
    assert row.word == "undecided"
    assert row.verdict and f"undecided, {row.verdict.more} more runs would decide" in shown(tuned)


def test_what_is_open_and_looks_faster_is_decided_by_fresh_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.tuning.search.RUNGS", (2,))
    told = Told(lambda trial: product(trial, half=0.6), noise=0.05)
    tuned = tune(told, HALF)
    assert words(tuned)["half", "train"] == "undecided"
    assert (tuned.proved["train"].candidate.name, tuned.proved["train"].word) == ("half", "kept")


def test_another_engine_is_measured_and_never_mixed_with_settings_of_this_one() -> None:
    other = proposal("jax", engine="jax", joins=False)
    told = Told(lambda trial: 0.3 if trial.engine == "jax" else product(trial, half=0.5))
    tuned = tune(told, HALF, other)
    assert tuned.proved["train"].candidate.name == "jax"
    assert not any(trial.engine == "jax" and has(trial, HALF) for _, trial, _ in told.made)


# --- time ---------------------------------------------------------------------------------------------------------------


def test_the_worse_half_gets_no_further_runs() -> None:
    flags = [proposal(f"flags {n}", settings__xla_flags=f"--{n}") for n in range(8)]
    told = Told(lambda trial: 0.98 if trial.settings.xla_flags else 1.0, noise=0.02)
    tune(told, *flags)
    runs: dict[str, int] = {}
    for stage, trial, _ in told.made:
        if stage == "search" and trial.settings.xla_flags:
            runs[trial.id] = runs.get(trial.id, 0) + 1
    assert set(runs.values()) <= {2, 4, 8}
    assert sorted(runs.values())[:4] == [2, 2, 2, 2]


def test_the_combination_is_proved_in_runs_of_its_own() -> None:
    told = Told(lambda trial: product(trial, half=0.5, last=0.8))
    tune(told, HALF, LAST)
    stages = [stage for stage, _, _ in told.made]
    assert list(dict.fromkeys(stages)) == ["first", "search", "join1", "proof"]
    assert sum(stage == "proof" for stage in stages) == 4 * 3  # the default, its twin, the combination


def test_the_best_of_many_that_does_not_hold_in_fresh_runs_leaves_the_defaults() -> None:
    told = Told(lambda trial: 1.0)

    def lucky(trial: Trial) -> float:
        return 0.9 if has(trial, HALF) and not any(stage == "proof" for stage, _, _ in told.made) else 1.0

    told.takes = lucky
    tuned = tune(told, HALF)
    assert words(tuned)["half", "train"] == "kept"
    assert tuned.proved["train"].word in ("tied", "undecided") and tuned.ready == {}
    assert "the defaults stay" in next(iter(tuning.answers(tuned)))


def test_the_budget_is_kept_and_what_it_does_not_reach_is_named() -> None:
    flags = [proposal(f"flags {n}", settings__xla_flags=f"--{n}") for n in range(30)]
    told = Told(lambda trial: product(trial, half=0.5))
    tuned = tune(told, HALF, *flags, budget=300)
    assert tuned.seconds <= 300
    left = [one for one in tuned.findings if one.word == "not tried"]
    assert left and all(one.because == "the budget did not reach it" for one in left)
    assert words(tuned)["half", "train"] == "kept"
    assert tuned.proved["train"].word == "kept"


def test_what_the_first_wave_does_not_reach_comes_in_a_later_one_with_defaults_of_its_own() -> None:
    flags = [proposal(f"flags {n}", settings__xla_flags=f"--{n}") for n in range(30)]
    told = Told(lambda trial: 1.5 if trial.settings.xla_flags else product(trial, half=0.5))
    tuned = tune(told, *flags, HALF, budget=700)
    assert words(tuned)["half", "train"] == "kept" and tuned.proved["train"].word == "kept"
    base = tuned.bases["train"].id
    later = [trial.id for stage, trial, _ in told.made if stage == "search2"]
    assert later.count(base) >= 4 and len(set(later)) > 1  # under both names, in each of two blocks
    assert tuned.seconds <= 700


def test_too_small_a_budget_says_what_it_would_need() -> None:
    told = Told(lambda trial: 1.0, run=5.0)
    with pytest.raises(TooShort, match=r"a budget of 30 s is too short: .* about 105 s; give it with --budget 2m"):
        tune(told, HALF, budget=30)


def test_defaults_that_cannot_be_measured_end_it() -> None:
    told = Told(lambda trial: 1.0, ends=lambda trial: Outcome(kind="crash", reason="died of SIGSEGV"))
    with pytest.raises(
        NoDefault, match=r"the defaults of torch could not be measured \(train\): crash: died of SIGSEGV"
    ):
        tune(told, HALF)


def test_what_was_measured_is_found_again() -> None:
    told = Told(lambda trial: product(trial, half=0.5, last=0.8))
    first = tune(told, HALF, LAST)
    made = len(told.made)
    again = tune(told, HALF, LAST, budget=HOUR)
    assert len(told.made) == made
    assert again.findings == first.findings and again.proved == first.proved


# --- what is shown ------------------------------------------------------------------------------------------------------


def shown(tuned: Tuned) -> str:
    out = Console(width=250, record=True, file=io.StringIO())
    out.print(tuning.table(tuned))
    return out.export_text()


def test_the_table_has_all_that_was_asked_for() -> None:
    told = Told(lambda trial: product(trial, half=0.5))
    lines = shown(tune(told, HALF, tasks=("train", "infer"))).splitlines()
    for head in ("change", "training", "inference", "output difference", "memory", "accuracy", "verdict"):
        assert head in lines[0]
    assert "defaults of the framework" in lines[2] and "10 ms" in lines[2] and "80.0 %" in lines[2]
    assert lines[3].startswith("half") and lines[3].count("2.00x [") + lines[3].count("1.99x [") == 2
    assert "2.7e-03" in lines[3] and "300 MiB" in lines[3] and "kept" in lines[3]
