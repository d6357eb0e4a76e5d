"""Settings that draw the timed region: what goes together, the words of each, and what the studies' programs had."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from tests.unit.test_study import mistake, trials
from timetrial.engines.registry import ENGINES
from timetrial.meters.hardware import Machine, inventory
from timetrial.runner.profiles import lap_plan
from timetrial.runner.surroundings import cores_given, surroundings
from timetrial.runner.work import settings_of
from timetrial.spec.placement import Placement
from timetrial.spec.presets import PRESETS, program
from timetrial.spec.recipe import Recipe
from timetrial.spec.region import includes
from timetrial.spec.study import parse_study
from timetrial.spec.trial import Settings, Trial
from timetrial_worker import adapters
from timetrial_worker.adapters.base import Adapter

EPOCH = {"lap": "epoch"}
ID_OF_BEFORE = "c3917de6683bd50b"  # of quick/mlp on torch


# --- the settings -------------------------------------------------------------------------------------------------------


def test_a_setting_that_is_not_used_changes_no_id() -> None:
    """Ids as they were before there were these settings."""
    (plain,) = trials(engines=["torch"])
    assert trials(engines=["torch"], settings=Settings().model_dump())[0].id == plain.id
    others = [{"threads": "as-shipped"}, EPOCH, {"feed": "batch"}, {"feed": "loader"}, {"feed": "loader", "workers": 2},
              {**EPOCH, "evaluate": "inside"}, {**EPOCH, "feed": "batch", "shuffle": "inside"}]  # fmt: skip
    ids = {trials(engines=["torch"], settings=settings)[0].id for settings in others}
    assert len(ids | {plain.id}) == len(others) + 1


def test_an_id_of_before_is_still_the_same() -> None:
    assert trials(models=["quick/mlp"], engines=["torch"])[0].id == ID_OF_BEFORE


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"shuffle": "inside"}, "add lap: epoch"),
        ({"evaluate": "inside"}, "add lap: epoch"),
        ({**EPOCH, "shuffle": "inside"}, "use feed: batch or feed: loader"),
        ({"workers": 4}, "add feed: loader"),
        ({"prefetch": 4, "feed": "batch"}, "add feed: loader"),
        ({"feed": "stream"}, "'resident', 'batch', 'loader' or 'queue'"),
        ({"feed": "queue", **EPOCH}, "leave out lap and loop"),
        ({"feed": "loader", "workers": -1}, "workers"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_remedy(settings: dict[str, Any], remedy: str) -> None:
    asked = {"study": "s", "models": ["quick/mlp"], "engines": ["torch"], "settings": settings}
    found = mistake(asked)
    assert found.startswith(("here: settings", "here: 'settings")) and remedy in found


def test_a_fit_may_shuffle_inside_whatever_the_feed() -> None:
    assert Settings.model_validate({**EPOCH, "loop": "fit", "shuffle": "inside"}).feed == "resident"


def test_a_prediction_has_no_epochs() -> None:
    asked = {"study": "s", "models": ["quick/mlp"], "engines": ["torch"], "tasks": ["train", "infer"]}
    assert "leave the task infer out" in mistake({**asked, "settings": EPOCH})


def test_warm_up_of_epochs_looks_at_fewer_of_them() -> None:
    (epoch,) = trials(engines=["torch"], settings=EPOCH)
    study = parse_study({"study": "s", "models": ["m"], "engines": ["e"]}, "here")
    plan = lap_plan(study, epoch)
    assert (plan["window"], plan["laps"]) == (2, 10)


# --- threads as shipped -------------------------------------------------------------------------------------------------


def machine(cores: int) -> Machine:
    found = inventory(nvidia_smi="/nowhere")
    return replace(found, cpu=replace(found.cpu, allowed=tuple(range(cores)), topology=None))


def test_as_shipped_sets_no_threads_and_pins_to_no_fewer_cores() -> None:
    limited, shipped = (trials(engines=["torch"], settings={"threads": word})[0] for word in ("limited", "as-shipped"))
    one, free = (surroundings(Placement(), trial.settings, {}, {}) for trial in (limited, shipped))
    assert set(one) - set(free) == {
        "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
    }  # fmt: skip
    assert (settings_of(limited)["threads"], settings_of(shipped)["threads"]) == (1, None)
    four = machine(4)
    assert len(cores_given(limited, four)) == 1
    assert cores_given(shipped, four) == (0, 1, 2, 3)


# --- the words ----------------------------------------------------------------------------------------------------------


def region(recipe: dict[str, Any] | None = None, task: str = "train", **settings: Any) -> str:
    (trial,) = trials(engines=["torch"], tasks=[task], settings=settings, recipe=recipe or {})
    return includes(trial)


def test_the_words_of_the_defaults_are_as_they_were() -> None:
    step = "batches already on the device: forward, loss, backward, update, wait for the device"
    assert region() == step
    fit = "one fit call over host arrays: batching, copy, forward, loss, backward, update, callbacks"
    assert region(loop="fit") == fit
    assert region(task="infer") == (
        "batches already on the device: forward with the last activation, wait for the device"
    )
    assert region(task="infer", loop="fit") == (
        "one predict call over host arrays: batching, copy, forward, collecting of the outputs"
    )


def test_the_words_say_what_stands_inside_and_in_what_order() -> None:
    assert region(feed="batch") == (
        "each batch from the host to the device: forward, loss, backward, update, wait for the device"
    )
    assert "own loader (2 workers, 3 batches ahead)" in region(feed="loader", workers=2, prefetch=3)
    assert "own loader (1 worker, 2 batches ahead)" in region(feed="loader", loop="fit")
    assert "own loader (no worker" in region(feed="loader", workers=0)
    full = region({"last_batch": "keep"}, **EPOCH, feed="batch", shuffle="inside", evaluate="inside")
    assert full == (
        "a whole epoch, its last partial batch kept, shuffled, its batches gathered; each batch from the host to the "
        "device: forward, loss, backward, update, wait for the device; then the test set predicted and scored"
    )
    assert region({"shuffle": False}, **EPOCH).startswith(
        "a whole epoch, its last partial batch dropped, not shuffled;"
    )
    assert "shuffled before the clock" in region(**EPOCH)


def test_every_combination_has_words_of_its_own() -> None:
    found: list[str] = []
    for loop, feed, shuffle, evaluate in product(
        ("step", "fit"), ("resident", "batch", "loader"), ("outside", "inside"), ("outside", "inside")
    ):
        settings = {"loop": loop, "feed": feed, "shuffle": shuffle, "evaluate": evaluate, **EPOCH}
        try:
            Settings.model_validate(settings)
        except ValueError:
            continue
        found.append(region(**settings))
    # A fit reads host arrays whether they are called resident or fed: the same work, and the same words.
    assert len(found) == 22 and len(set(found)) == 18


# --- presets ------------------------------------------------------------------------------------------------------------


def published(model: str, engines: list[str], **keys: Any) -> dict[str, Trial]:
    found = trials(models=[model], engines=engines, networks=[], preset="as-published", **keys)
    return {trial.engine: trial for trial in found}


def test_a_preset_becomes_settings_of_each_engine() -> None:
    found = published("libraries/cnn-1x2", ["theano", "tensorflow1", "keras2-theano"])
    theano, flow, keras = (found[name] for name in ("theano", "tensorflow1", "keras2-theano"))
    for trial in found.values():
        assert (trial.settings.threads, trial.settings.lap, trial.preset) == ("as-shipped", "epoch", "libraries")
    assert (theano.settings.feed, theano.recipe.shuffle, theano.settings.evaluate) == ("resident", False, "inside")
    assert theano.recipe.last_batch == flow.recipe.last_batch == "drop"
    assert (flow.settings.feed, flow.settings.shuffle, flow.settings.evaluate) == ("batch", "inside", "outside")
    assert (keras.settings.loop, keras.settings.shuffle, keras.settings.evaluate) == ("fit", "inside", "inside")
    assert (keras.recipe.last_batch, keras.recipe.labels) == ("keep", "one_hot")
    assert len({includes(trial) for trial in found.values()}) == 3
    assert theano.coordinates["preset"] == "libraries"  # the record says it


def test_the_profiled_study_s_own_framework_takes_its_own_step() -> None:
    found = published("profiling/cnn", ["tensorflow1", "tensorflow"], tasks=["infer"])
    old, new = found["tensorflow1"], found["tensorflow"]
    assert (old.settings.feed, old.settings.compile) == ("queue", "as-written")
    assert (new.settings.feed, new.settings.compile) == ("loader", "default")
    assert published("profiling/cnn", ["tensorflow1"], tasks=["train"])["tensorflow1"].settings.feed == "loader"


def test_what_a_study_file_says_goes_before_its_preset() -> None:
    keys = {"settings": {"threads": "limited"}, "recipe": {"last_batch": "drop"}}
    (keras,) = published("libraries/cnn-1x2", ["keras-jax"], **keys).values()
    assert (keras.settings.threads, keras.recipe.last_batch, keras.settings.loop) == ("limited", "drop", "fit")
    (varied,) = published("libraries/cnn-1x2", ["keras-jax"], vary={"settings.evaluate": ["outside"]}).values()
    assert varied.settings.evaluate == "outside"


def test_a_prediction_takes_of_a_preset_what_is_not_of_epochs() -> None:
    (flow,) = published("libraries/cnn-1x2", ["tensorflow"], tasks=["infer"]).values()
    assert (flow.settings.lap, flow.settings.feed, flow.settings.threads) == ("steps", "batch", "as-shipped")


@pytest.mark.parametrize(
    ("model", "engine", "said"),
    [
        ("quick/mlp", "torch", "leave out preset"),
        ("libraries/cnn-1x2", "torch", "no program for torch, only for theano, tensorflow*, keras*"),
    ],
)
def test_a_preset_that_no_study_had_is_refused(model: str, engine: str, said: str) -> None:
    found = mistake({"study": "s", "models": [model], "engines": [engine], "preset": "as-published"})
    assert found.startswith(f"preset: model '{model}'") and said in found


@pytest.mark.parametrize("study", PRESETS)
def test_every_engine_that_a_preset_gives_a_loader_has_one(study: str) -> None:
    checked = 0
    for engine in (engine for engine in ENGINES.values() if engine.ranked):
        try:
            settings = program(study, engine.name).settings
        except ValueError:
            continue
        if settings.get("feed") == "loader":
            assert type(adapters.load(engine.adapter, {})).loader is not Adapter.loader, engine.name
            checked += 1
    assert checked == {"parallel": 1, "profiling": 2}.get(study, 0)


@pytest.mark.parametrize("study", PRESETS)
def test_every_program_is_one_that_can_be_asked_for(study: str) -> None:
    for each in PRESETS[study].values():
        assert Settings.model_validate(dict(each.settings)).threads == "as-shipped"
        assert set(each.recipe) <= set(Recipe.model_fields)


def test_without_a_preset_all_engines_do_equal_work() -> None:
    found = trials(engines=["torch", "jax"], models=["libraries/cnn-1x2"], networks=[])
    assert len({trial.settings for trial in found}) == 1 and {trial.preset for trial in found} == {""}
