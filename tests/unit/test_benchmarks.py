"""The one command for the figures of the method: which parts it runs, and with what; and the study that is replayed."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.made_tuning import FOREACH, FUSED, HALF, LAST
from timetrial.cli.loading import trials_of
from timetrial.runner.profiles import lap_plan, processes
from timetrial.spec.study import load_study

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def method() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_method", FOLDER / "method.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("given", "ran"),
    [
        ([], ["duel.py", "replay.py", "records.py"]),
        (["--only", "records,duel"], ["duel.py", "records.py"]),
        (["--only", "duel", "--repetitions", "1", "--processes", "3"], ["duel.py --repetitions 1 --processes 3"]),
    ],
)
def test_one_command_runs_the_parts_in_turn(
    method: ModuleType, monkeypatch: pytest.MonkeyPatch, given: list[str], ran: list[str]
) -> None:
    seen: list[str] = []

    def run(words: list[str], check: bool) -> Any:
        assert Path(words[1]).is_file()
        seen.append(" ".join([Path(words[1]).name, *words[2:]]))
        return SimpleNamespace(returncode=int("replay" in words[1]))

    monkeypatch.setattr(subprocess, "run", run)
    assert method.main(given) == ("replay.py" in ran)  # what fails does not hold up the others, and is counted
    assert seen == ran


def test_a_part_that_is_not_there_is_named(method: ModuleType) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="there is no 'harness'; use duel, replay, records"):
        method.parts("harness")


def test_the_study_that_is_replayed_is_short_and_whole() -> None:
    """At most a quarter of an hour, every lap of a `publish` run, nothing left off early."""
    study = load_study(FOLDER / "replay.yaml")
    trials = trials_of(study)
    plan = lap_plan(study, trials[0])
    assert (study.profile, study.stopping, plan["precision"], plan["seconds"]) == ("publish", "fixed", 0.0, 60.0)
    assert len(trials) * processes(study) * plan["seconds"] <= 15 * 60
    assert processes(study) >= 4  # the adaptive design begins with three


def test_the_grid_of_tuning_has_every_combination_once() -> None:
    spec = importlib.util.spec_from_file_location("benchmark_tune", FOLDER / "tune.py")
    assert spec and spec.loader
    tune = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tune)
    found = tune.bases({"networks": [tune.SMALL_CNN]}, False)
    switches = (HALF, LAST, FUSED, FOREACH)
    cells = tune.grid(found["train"], switches)
    assert len({trial.id for trial in cells}) == len(cells) == 2 * 2 * 3
    assert found["train"].id in {trial.id for trial in cells}
    assert found["train"].settings.allocator == "as-shipped" and found["train"].recipe.optimiser.kind == "adam"
    quick = {one.rule for one in tune.switches(found, True)}
    assert quick <= {"layout", "precision"}
