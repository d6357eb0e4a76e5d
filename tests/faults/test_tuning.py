"""Tuning the whole way, with engines that are quick under one setting, wrong under another and broken under a third:
through the gate and campaigns, in processes of their own, onto record, into a table and a study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.faults import bench
from tests.unit.made_tuning import FOREACH, FUSED, LAST, proposal
from timetrial.cli.loading import trials_of
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report import tuning
from timetrial.spec.study import parse_study
from timetrial.spec.trial import Task, Trial
from timetrial.tuning.bench import Campaigns, stage_name
from timetrial.tuning.search import Question, Search, Tuned
from timetrial.tuning.snippet import ready

pytestmark = pytest.mark.faults
BUDGET = 120.0
FIRST = proposal("first", settings__layout="channels_first")


def defaults() -> dict[Task, Trial]:
    (trial,) = trials_of(bench.study("tunable", settings={"allocator": "as-shipped"}))
    return {"train": trial}


def tune(folder: Path) -> tuple[Tuned, list[Record]]:
    bases, told = defaults(), list[Record]()
    campaigns = Campaigns(stage_name(list(bases.values())), folder, BUDGET, lambda stage, record: told.append(record))
    return Search(Question(bases, (FUSED, LAST, FOREACH, FIRST), BUDGET), campaigns).go(), told


def words(found: Tuned) -> list[str]:
    """On the second start the runs of later rounds are there from the beginning: what was open may be decided then."""
    return ["no gain" if one.word in ("tied", "undecided") else one.word for one in found.findings]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Tuned, list[Record], list[Record]]]:
    folder = tmp_path_factory.mktemp("tuned")
    with pytest.MonkeyPatch.context() as patch:
        bench.install(patch.setattr)
        tuned, told = tune(folder)
        again, repeated = tune(folder)
        assert words(again) == words(tuned)
        yield folder, tuned, told, repeated


def test_what_is_faster_is_kept_what_is_wrong_or_broken_is_rejected_and_named(
    done: tuple[Path, Tuned, object, object],
) -> None:
    found = {one.candidate.name: one for one in done[1].findings}
    assert found["last"].word == "kept" and found["last"].speedup > 5
    assert found["fused"].word == "rejected"
    assert found["fused"].because.startswith("wrong: differs from the reference first in the update of")
    assert found["foreach"].word == "rejected"
    assert found["foreach"].because == "crash: RuntimeError: there is no such kernel"
    assert found["first"].word in ("tied", "undecided")


def test_only_what_is_right_is_in_the_combination_and_it_is_proved(done: tuple[Path, Tuned, object, object]) -> None:
    proved = done[1].proved["train"]
    assert proved.word == "kept" and "last" in proved.candidate.name
    assert not {"fused", "foreach"} & set(proved.candidate.name.split(" + "))
    assert proved.measured and len(proved.measured.seconds) >= 4
    assert proved.measured.accuracy is not None
    assert "proved, output difference none" in next(iter(tuning.answers(done[1])))


def test_predictions_are_compared_with_those_of_the_defaults(done: tuple[Path, Tuned, object, object]) -> None:
    found = {one.candidate.name: one for one in done[1].findings}
    assert found["last"].difference == 0.0  # the same program under another name
    assert found["fused"].difference == 0.0  # its predictions are right, its training is not


def test_every_run_is_on_record_in_blocks_with_a_twin_of_the_defaults(
    done: tuple[Path, Tuned, list[Record], object],
) -> None:
    folder, tuned, told, _ = done
    kept = {run.run for study in Store(folder).studies() for run in Store(folder).records(study)}
    assert {record.run for record in told} <= kept
    base = tuned.bases["train"].id
    assert all(record.trial == base for record in told if record.role == "twin")
    assert tuned.floors["train"].twins is not None


def test_the_same_command_measures_nothing_twice(done: tuple[Path, Tuned, list[Record], list[Record]]) -> None:
    _, _, told, repeated = done
    wrong = [record for record in repeated if not record.outcome.ok]
    assert repeated == wrong  # what went wrong is no time, and looked at again
    assert len(told) > 10


def test_the_ready_study_is_one(done: tuple[Path, Tuned, object, object]) -> None:
    (text,) = ready(done[1].ready)
    (trial,) = trials_of(parse_study(yaml.safe_load(text), "snippet"))
    wanted = done[1].ready["train"]
    assert trial.settings == wanted.settings and trial.settings.layout == "channels_last"
    assert trial.network == wanted.network and trial.placement == wanted.placement
    assert trial.recipe.batch == wanted.recipe.batch and trial.recipe.precision == wanted.recipe.precision
