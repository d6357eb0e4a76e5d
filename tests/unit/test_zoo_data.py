"""Every model of the zoo names its data, and the steps that lead from those data to its input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from timetrial.cli.loading import built_in_studies, open_study, trials_of
from timetrial.data import registry
from timetrial.data.registry import Dataset, find
from timetrial.data.steps.chosen import chain_for
from timetrial.spec.study import parse_study
from timetrial.spec.trial import Trial
from timetrial.zoo import entries
from timetrial.zoo import find as find_model
from timetrial.zoo import names as model_names

# As published, before anything is done to them: an import may make pictures smaller, and texts have no shape.
RAW: dict[str, tuple[int, ...]] = {
    "mnist": (28, 28), "fashion-mnist-6000": (28, 28), "cifar10": (32, 32, 3), "svhn": (32, 32, 3), "norb": (108, 108, 2),
    "imdb": (), "tiny-text": (), "hmdir": (), "shuttle": (9,), "fish-masks": (445, 590, 3), "imagenet": (375, 500, 3),
}  # fmt: skip
GRIDS = ("solar-synthetic", "hope-melpitz", "oahu")  # read in the form that the network takes


@pytest.fixture(autouse=True)
def _an_empty_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "home"))


def leads(dataset: Dataset, name: str) -> None:
    """To the network's input, with everything that was published written out."""
    model = find_model(name)
    chain = chain_for(dataset, model.network, model.preprocessing)
    assert chain is not None, f"{name} names no steps"
    assert chain.completed(model.network) == chain


@pytest.mark.parametrize("name", model_names())
def test_every_model_names_a_dataset_that_there_is(name: str) -> None:
    assert find(find_model(name).dataset).name in registry.names()


@pytest.mark.parametrize("name", [name for name in model_names() if find_model(name).dataset not in GRIDS])
def test_every_models_chain_leads_from_the_raw_shape_to_its_input(name: str) -> None:
    dataset = find_model(name).dataset
    leads(replace(find(dataset), input_shape=RAW[dataset]), name)
    leads(find(dataset), name)  # as `get` or `import` keeps it


def test_grids_of_sensors_need_no_steps() -> None:
    solar = [find_model(name) for name in model_names() if name.startswith("solar/")]
    assert {(model.dataset, model.preprocessing) for model in solar} == {("solar-synthetic", ())}
    for model in solar:
        assert chain_for(find(model.dataset), model.network, model.preprocessing) is None


def of_all(**keys: object) -> list[Trial]:
    study = {"study": "s", "models": model_names(), "engines": "torch", "data": "default", **keys}
    return trials_of(parse_study(study, "here"))


def test_a_study_finds_the_data_and_steps_of_every_model() -> None:
    trials = of_all(preprocessing="published")
    assert {trial.dataset for trial in trials} == {*RAW, "solar-synthetic"}
    for trial in trials:
        model = find_model(trial.model)
        assert (trial.dataset, trial.preprocessing) == (model.dataset, model.preprocessing)


def test_every_dataset_of_the_zoo_has_a_stand_in() -> None:
    for name in (*RAW, *GRIDS):
        stand_in = find(f"synthetic:{name}")
        assert stand_in.synthetic
        assert stand_in.input_shape in (None, find(name).input_shape)


def test_chains_follow_the_options_of_their_model() -> None:
    assert find_model("modern/gru?vocabulary=99&steps=7").preprocessing == ("words?vocabulary=99&length=7",)
    assert find_model("backends/hmdir-lstm?steps=5").preprocessing[0] == "group?steps=5"
    assert find_model("backends/mp-relu?kernel=1").preprocessing == ("resize?height=48&width=48", "enlarge?factor=2")
    assert find_model("backends/fnn-3-colours").network.input.shape == (32, 32, 3)
    assert {entry.dataset for entry in entries() if entry.study != "solar"} == RAW.keys()


@pytest.mark.parametrize("name", [name for name in built_in_studies() if name.startswith("accuracy-")])
def test_the_studies_that_prove_the_data_train_one_model_on_its_own_data_and_test_it(name: str) -> None:
    study = open_study(name)
    (trial,) = trials_of(study)
    assert (study.study, study.accuracy, study.repeat, study.anchor) == (name, True, 1, False)
    assert (trial.dataset, trial.samples) == (find_model(trial.model).dataset, None)
    assert trial.recipe.epochs > 1
