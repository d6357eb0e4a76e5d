"""What is proposed for which engine, network, machine and evidence; the ready study; and what the command refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.unit import made_profiles
from tests.unit.made_tuning import Told, base, bases, machine
from timetrial.cli.loading import trials_of
from timetrial.cli.main import app
from timetrial.cli.tune import _data
from timetrial.data import registry
from timetrial.records.record import Outcome
from timetrial.records.store import Store
from timetrial.spec.network import Network
from timetrial.spec.placement import Placement
from timetrial.spec.study import parse_study
from timetrial.spec.trial import Settings
from timetrial.tuning import rules
from timetrial.tuning.proposals import changed, replaced
from timetrial.tuning.rules import CATALOGUE, propose
from timetrial.tuning.situation import Situation
from timetrial.tuning.snippet import ready

FLAT = Network.model_validate({"name": "flat", "input": {"shape": [8]}, "layers": [{"dense": {"units": 4}}, "softmax"]})


def names(known: Situation) -> list[str]:
    return [one.name for one in propose(known)[0]]


def reasons(known: Situation) -> dict[str, str]:
    return dict(propose(known)[1])


def situation(engine: str = "torch", *flags: str, **changes: Any) -> Situation:
    own = {
        name: changes.pop(name) for name in ("fixed", "placements", "rivals", "variants", "profiles") if name in changes
    }
    libc = changes.pop("libc", "glibc 2.36")
    return Situation(bases(engine=engine, **changes), machine(*(flags or ("avx512_bf16",)), libc=libc), **own)


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (situation(fixed=frozenset({"recipe.batch"})),
         ["bfloat16", "channels last", "tuned allocator", "compile: compiled", "fused optimiser", "foreach optimiser"]),
        (situation(network=FLAT), ["bfloat16", "tuned allocator", "compile: compiled", "fused optimiser", "foreach optimiser", "batch 32", "batch 64"]),
        (situation("jax"), ["bfloat16", "without YNN convolutions", "without YNN", "tuned allocator", "batch 32", "batch 64"]),
        (situation("keras-torch"), ["bfloat16", "channels first", "tuned allocator", "compile: inductor", "batch 32", "batch 64"]),
        (situation("keras-tensorflow", "avx2"), ["tuned allocator", "compile: xla", "compile: graph", "batch 32", "batch 64"]),
        (situation("theano", libc=""), ["batch 32", "batch 64"]),
        (situation("sklearn", rivals=("sklearn", "torch"), libc=""), ["batch 32", "batch 64", "torch"]),
        (situation("torch", "avx2", placement="cpu:2", placements=(Placement(),), libc="", recipe={"batch": 8, "optimiser": {"kind": "rmsprop"}}),
         ["channels last", "compile: compiled", "1 thread", "passive wait", "active wait", "foreach optimiser", "batch 16", "batch 32"]),
        (situation("torch", "avx2", placement="cuda:0"), ["bfloat16", "channels last", "compile: compiled", "fused optimiser", "foreach optimiser", "batch 32", "batch 64"]),
        (situation("tensorflow", "avx2", settings={"feed": "batch"}), ["compile: xla", "feed loader", "batch 32", "batch 64"]),
        (situation("torch", "avx2", network=FLAT, settings={"feed": "loader", "compile": "compiled", "update": "fused"}),
         ["prefetch 4", "workers 2, prefetch 4", "batch 32", "batch 64"]),
    ],
    ids=lambda value: value.engine if isinstance(value, Situation) else "",
)  # fmt: skip
def test_what_is_proposed_follows_from_what_is_known(known: Situation, wanted: list[str]) -> None:
    assert names(known) == wanted
    assert {one.rule for one in propose(known)[0]} | set(reasons(known)) == {rule.id for rule in CATALOGUE}
    assert all(reasons(known).values())


def test_every_proposal_makes_another_trial_that_can_be_named() -> None:
    known = situation("torch", placements=(Placement(threads=2),), rivals=("jax",))
    made = [changed(known.bases[task], one) for one in propose(known)[0] for task in one.tasks]
    assert len({trial.id for trial in made} | {trial.id for trial in known.bases.values()}) == len(made) + 2
    assert all(one.why and one.tasks for one in propose(known)[0])
    inexact = {one.rule for one in propose(known)[0] if not one.exact}
    assert inexact == {"precision", "batch"}


def test_a_profile_that_proves_something_leaves_out_what_cannot_help() -> None:
    """Its optimiser takes 6 % of a step and products about nine tenths; with a lighter one, nothing is to be had."""
    known = situation(profiles={"train": made_profiles.profile()})
    assert {"fused optimiser", "bfloat16"} <= set(names(known))
    assert known.share("class", "conv", "matmul") == pytest.approx(0.9, abs=0.06)
    light = situation(profiles={"train": made_profiles.profile()})
    patched = pytest.MonkeyPatch()
    patched.setattr(rules, "LEAST_OPTIMISER", 0.2)
    patched.setattr(rules, "LEAST_PRODUCTS", 0.99)
    try:
        assert not {"fused optimiser", "bfloat16"} & set(names(light))
        assert reasons(light)["update"].startswith("the optimiser takes only 6.")
        assert reasons(light)["precision"].startswith("products take only 9")
    finally:
        patched.undo()


def test_a_profile_that_proves_nothing_is_not_used_and_said_to_be_so() -> None:
    found = made_profiles.profile()
    poor = replace(found, header=replace(found.header, coverage=0.5))
    known = situation(profiles={"train": poor})
    assert known.share("class", "conv") is None
    assert known.unusable == ("the profile of train is not used: operations cover 50% of the steps, 90% are wanted",)


def test_smaller_networks_come_with_their_predicted_gain_and_are_tried_on_request() -> None:
    (trial,) = trials_of(parse_study({"study": "x", "models": ["profiling/cnn"], "engines": ["torch"]}, "x"))
    for asked in (False, True):
        found = [
            one for one in propose(Situation({"train": trial}, machine(), variants=asked))[0] if one.rule == "variant"
        ]
        assert [one.tried for one in found] == [asked] * len(found)
        gains = {one.name: one.predicted for one in found}
        assert gains["profiling/cnn?stride=2"] == pytest.approx(11.3, abs=0.1)
        assert all(gain and gain > 1 for gain in gains.values())
        assert changed(trial, found[0]).network != trial.network and not found[0].joins


# --- the ready study ----------------------------------------------------------------------------------------------------

CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "layout": st.sampled_from(["channels_last", "channels_first"]), "update": st.sampled_from(["fused", "foreach"]),
        "wait": st.sampled_from(["active", "passive"]), "allocator": st.just("as-shipped"),
        "compile": st.sampled_from(["compiled", "xla", "graph"]), "xla_flags": st.text("-=_: #'\"abc{}[],&*!", max_size=20),
    },
)  # fmt: skip


@given(
    CHOICES, CHOICES, st.sampled_from(["cpu", "cpu:4", "cuda:0"]), st.sampled_from([16, 64]),
    st.sampled_from(["float32", "bfloat16"]), st.booleans(),
)  # fmt: skip
def test_the_ready_study_says_what_was_proved(
    train: dict[str, str], infer: dict[str, str], placement: str, batch: int, precision: str, own: bool
) -> None:
    model = {} if own else {"model": "quick/mlp"}
    if not own:
        from timetrial import zoo

        found = zoo.find("quick/mlp")
        model |= {
            "network": found.network,
            "recipe": {**found.recipe.model_dump(), "batch": batch, "precision": precision},
        }
    else:
        model |= {"recipe": {"batch": batch, "precision": precision}}
    wanted = {
        task: base(task, **model, placement=placement, settings=settings) for task, settings in (("train", train), ("infer", infer))
    }  # fmt: skip
    texts = ready(wanted)
    assert len(texts) == 1 + (Settings(**train) != Settings(**infer))
    again = {trial.task: trial for text in texts for trial in trials_of(parse_study(yaml.safe_load(text), "snippet"))}
    assert set(again) == set(wanted)
    for task, trial in wanted.items():
        assert (again[task].settings, again[task].placement, again[task].engine) == (
            trial.settings,
            trial.placement,
            "torch",
        )
        assert (again[task].recipe.batch, again[task].recipe.precision) == (batch, precision)
        assert again[task].network == trial.network


def test_the_ready_study_has_the_steps_of_its_data() -> None:
    steps = ("raw", "crop?size=24")
    (text,) = ready({"train": replaced(base(), preprocessing=steps)})
    assert parse_study(yaml.safe_load(text), "snippet").preprocessing == steps
    (plain,) = ready({"train": base()})
    assert "preprocessing" not in plain


# --- the command ----------------------------------------------------------------------------------------------------------


def command(*words: str) -> Any:
    return CliRunner().invoke(app, ["tune", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "quick/nothing", "-e", "torch"), "there is no model 'quick/nothing'"),
        (("-m", "quick/mlp", "-e", "torhc"), "torhc"),
        (("-m", "quick/mlp", "-e", "torch@0.0.1"), "timetrial engines add torch@0.0.1"),
        (("-m", "quick/mlp", "-e", "reference", "--engines", "jax@0.0.1"), "timetrial engines add jax@0.0.1"),
        (("-m", "quick/mlp", "-e", "reference", "--task", "guess"), "tasks"),
        (("-m", "quick/mlp", "-e", "reference", "--placement", "moon"), "'moon' is not a placement"),
        (("-m", "quick/mlp", "-e", "reference", "--budget", "soon"), "budget"),
        (("-m", "quick/mlp", "-e", "reference", "--evidence", "none"), "study 'none' in records has no profile"),
    ],
)  # fmt: skip
def test_a_bad_request_says_what_is_wrong(words: tuple[str, ...], said: str) -> None:
    done = command(*words)
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_nothing_to_propose_is_said_with_all_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.meters.hardware.inventory", lambda: machine(libc="musl"))
    done = command("-m", "quick/mlp", "-e", "reference", "--batch", "8", "-p", "cpu")
    assert done.exit_code == 2
    assert "there is nothing to propose: precision: reference has no bfloat16; layout:" in done.output


def test_a_dry_run_says_what_would_be_tried_and_runs_nothing(tmp_path: Path) -> None:
    words = (
        "-m",
        "profiling/cnn",
        "-e",
        "reference",
        "--records",
        str(tmp_path / "none"),
        "-p",
        "cpu,cpu:2",
        "--dry-run",
    )
    done = command(*words, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert [one["name"] for one in found["proposals"]][:2] == ["tuned allocator", "2 threads"]
    assert "11.3x fewer operations" in command(*words).output
    assert not (tmp_path / "none").exists()


def test_proposals_that_all_cannot_run_are_shown_with_why_and_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(trial: Any) -> Outcome | None:
        plain = trial.settings == Settings(allocator="as-shipped")
        return None if plain else Outcome(kind="unsupported", reason="not in this engine")

    monkeypatch.setattr("timetrial.tuning.bench.Campaigns", lambda *words: Told(lambda trial: 1.0, ends=ends))
    words = ("-m", "quick/mlp", "-e", "reference", "--batch", "8", "-p", "cpu", "--task", "train")
    done = command(*words)
    assert done.exit_code == 1, done.output
    assert "rejected, unsupported: not in this engine" in done.output
    assert "none of the proposals could be measured" in done.output
    assert "Training: nothing was kept; the defaults stay." in done.output
    found = json.loads(command(*words, "--json").stdout)
    assert [one["verdict"] for one in found["changes"]] == ["rejected"]
    assert found["studies"] == []


def test_the_answer_ends_with_a_study_to_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    faster = lambda trial: 0.5 if trial.settings.allocator == "tuned" else 1.0  # noqa: E731
    monkeypatch.setattr("timetrial.tuning.bench.Campaigns", lambda *words: Told(faster))
    words = ("-m", "quick/mlp", "-e", "reference", "--batch", "8", "-p", "cpu", "--budget", "1h")
    done = command(*words)
    assert done.exit_code == 0, done.output
    text = done.stdout[done.stdout.index("study: tuned") :]
    study = parse_study(yaml.safe_load(text), "copied")
    assert (study.settings.allocator, study.tasks, study.recipe) == ("tuned", ("train", "infer"), {"batch": 8})
    assert json.loads(command(*words, "--json").stdout)["studies"] == [text.rstrip() + "\n"]


def test_profiles_on_record_are_read_as_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products take nearly all of the made step: with a bound above that, they are no reason for bfloat16."""
    cell = {"model": "quick/mlp", "engine": "torch", "task": "train"}
    Store(tmp_path).write(made_profiles.record(study="seen", cell=cell))
    monkeypatch.setattr("timetrial.profiling.profile.load", lambda folder, record: made_profiles.profile())
    monkeypatch.setattr(rules, "LEAST_PRODUCTS", 0.99)
    monkeypatch.setattr("timetrial.meters.hardware.inventory", lambda: machine("avx512_bf16"))
    monkeypatch.setattr("timetrial.cli.tune._installed", lambda *names: None)
    words = ("-m", "quick/mlp", "-e", "torch", "-p", "cpu", "--dry-run", "--records", str(tmp_path))
    assert "precision: bfloat16" in command(*words).output
    done = command(*words, "--evidence", "seen")
    assert "not proposed, precision: products take only 9" in done.output, done.output


def test_a_models_own_data_come_in_the_form_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network of the profiling study takes crops of its dataset's pictures."""
    monkeypatch.setattr(registry, "is_here", lambda dataset: True)
    found = _data("profiling/cnn", "own")
    assert found == {"data": "cifar10", "preprocessing": ["published"]}
    asked = parse_study({"study": "s", "models": ["profiling/cnn"], "engines": ["torch"], **found}, "here")
    assert trials_of(asked)[0].preprocessing
    monkeypatch.setattr(registry, "is_here", lambda dataset: False)
    assert _data("profiling/cnn", "own") == {"data": "synthetic"}
    assert _data("profiling/cnn", "mnist") == {"data": "mnist"}
