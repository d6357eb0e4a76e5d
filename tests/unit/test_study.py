"""The study language: what a file may say, what its mistakes are called, which trials come out, and in what order."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from timetrial.cli.loading import ZooResolver, built_in_studies, open_study, trials_of
from timetrial.records.record import describe_cell
from timetrial.spec.placement import Placement
from timetrial.spec.recipe import Adam, Recipe, Sgd
from timetrial.spec.study import Resolved, Study, StudyError, expand, load_study, parse_study
from timetrial.spec.trial import Settings, Trial

TINY = {"name": "tiny", "input": {"shape": [4]}, "layers": [{"dense": {"units": 3, "activation": "softmax"}}]}
LEAST = {"study": "s", "networks": [TINY], "engines": ["torch"]}


def study(**keys: Any) -> Study:
    return parse_study({**LEAST, **keys}, "here")


def trials(**keys: Any) -> list[Trial]:
    return expand(study(**keys), ZooResolver())


def mistake(content: Any) -> str:
    with pytest.raises(StudyError) as caught:
        expand(parse_study(content, "here"), ZooResolver())
    return str(caught.value)


# --- what may be said -------------------------------------------------------------------------------------------------


def test_the_least_study_has_the_documented_defaults() -> None:
    (trial,) = trials()
    assert (trial.model, trial.engine, str(trial.placement), trial.task) == ("tiny", "torch", "cpu", "train")
    assert (trial.dataset, trial.seed, trial.samples, trial.settings) == ("synthetic", 1, None, Settings())
    assert trial.recipe == Recipe()
    least = study()
    assert (least.profile, least.repeat, least.accuracy) == ("normal", None, False)
    assert (least.limits.timeout, least.limits.memory) == (600.0, None)


def test_one_may_stand_for_a_list() -> None:
    written = study(engines="torch", models="quick/mlp", placements="cpu:2", tasks="infer", exclude={"engine": "jax"})
    assert written == study(
        engines=["torch"], models=["quick/mlp"], placements=["cpu:2"], tasks=["infer"], exclude=[{"engine": "jax"}]
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [(90, 90), (0.5, 0.5), ("90", 90), ("90s", 90), ("20m", 1200), ("2 min", 120), ("1.5h", 5400)]
)
def test_times_have_units(text: Any, seconds: float) -> None:
    assert study(limits={"timeout": text}).limits.timeout == seconds


@pytest.mark.parametrize(
    ("text", "size"), [(4096, 4096), ("4K", 2**12), ("500M", 500 * 2**20), ("1.5G", 1.5 * 2**30), ("8GB", 2**33)]
)
def test_sizes_have_units(text: Any, size: float) -> None:
    assert study(limits={"memory": text}).limits.memory == size


@pytest.mark.parametrize(
    "limits",
    [{"timeout": "8G"}, {"memory": "20m"}, {"memory": "1h"}, {"timeout": 0}, {"timeout": "-5s"}, {"memory": "lots"}],
)
def test_a_size_is_no_time_and_a_time_no_size(limits: dict[str, Any]) -> None:
    words = mistake({**LEAST, "limits": limits})
    assert words.startswith(f"here: 'limits.{next(iter(limits))}'")


def test_recipes_are_changed_in_part_or_whole() -> None:
    (trial,) = trials(models=["quick/mlp"], networks=[], recipe={"optimiser.rate": 0.5, "batch": 7})
    assert trial.recipe.optimiser == Adam(rate=0.5)
    assert trial.recipe.batch == 7
    (trial,) = trials(models=["quick/mlp"], networks=[], recipe={"optimiser": {"rate": 0.5}})
    assert trial.recipe.optimiser == Adam(rate=0.5)
    (trial,) = trials(models=["quick/mlp"], networks=[], recipe={"optimiser": {"kind": "sgd", "momentum": 0.9}})
    assert trial.recipe.optimiser == Sgd(momentum=0.9)  # nothing of Adam's is left


def test_vary_is_the_product_of_its_axes() -> None:
    found = trials(
        vary={
            "recipe.batch": [8, 16],
            "recipe.optimiser.rate": [0.1, 0.2, 0.3],
            "settings.compile": ["default", "none"],
        }
    )
    seen = {(t.recipe.batch, t.recipe.optimiser.rate, t.settings.compile) for t in found}
    assert len(found) == len(seen) == 12


def test_vary_reaches_the_options_of_a_model_and_its_name_says_so() -> None:
    found = trials(networks=[], models=["backends/cnn-softmax?filters=2"], vary={"model.layers": [1, 2]})
    assert [t.model for t in found] == [
        "backends/cnn-softmax?filters=2&layers=1",
        "backends/cnn-softmax?filters=2&layers=2",
    ]
    assert found[0].network != found[1].network


def test_a_models_own_number_of_samples_is_taken_unless_the_study_says_another() -> None:
    assert trials(networks=[], models=["quick/mlp"])[0].samples == 5000
    assert trials(networks=[], models=["quick/mlp"], samples=64)[0].samples == 64


@pytest.mark.parametrize("name", built_in_studies())
def test_built_in_studies_expand(name: str) -> None:
    asked = open_study(name)
    found = trials_of(asked)
    assert asked.study == name
    assert {t.engine for t in found} == set(asked.engines)


# --- exclusions -------------------------------------------------------------------------------------------------------

AXES: dict[str, Any] = {
    "engines": ["torch", "jax", "keras-torch", "keras-jax"],
    "placements": ["cpu", "cpu:2", "cuda:0"],
    "tasks": ["train", "infer"],
    "vary": {"recipe.batch": [8, 16], "settings.tf32": [False, True]},
}


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ({"engine": "jax"}, 72),
        ({"engine": "keras-*"}, 48),
        ({"engine": ["torch", "keras-?ax"]}, 48),
        ({"engine": "jax", "placement": "cuda:*"}, 88),
        ({"batch": 8}, 48),
        ({"tf32": True, "placement": ["cpu", "cpu:*"]}, 64),
        ({"model": "other"}, 96),
        ({"task": "infer", "batch": [16], "engine": "*"}, 72),
    ],
)
def test_a_rule_excludes_where_all_its_keys_match(rule: dict[str, Any], left: int) -> None:
    assert len(trials(**AXES)) == 96
    assert len(trials(**AXES, exclude=[rule])) == left


@pytest.mark.parametrize("rule", [{"device": "cpu"}, {"engine": "nobody", "device": "cpu"}])
def test_a_rule_with_an_unknown_key_is_refused_even_where_it_would_match_nothing(rule: dict[str, Any]) -> None:
    words = mistake({**LEAST, "exclude": [rule]})
    assert words.startswith("exclude: there is no 'device'; use model, engine, placement")


def test_nothing_left_is_a_mistake() -> None:
    assert mistake({**LEAST, "exclude": [{"engine": "*"}]}) == "study 's': nothing is left to run after its exclusions"


class Fixed:
    """A resolver of one network under all names; without the zoo, for many examples."""

    network = study().networks[0]

    def resolve(self, name: str, options: Mapping[str, Any]) -> Resolved:
        return Resolved(self.network.model_copy(update={"name": name}), Recipe())


ENGINES = ["torch", "jax", "tensorflow", "keras-jax", "torch@2.9.1"]
PLACEMENTS = ["cpu", "cpu:2", "cpu:4", "cuda:0"]
words = st.sampled_from(["torch", "jax", "keras-*", "*", "?pu", "cpu", "cuda:*", "train", 8, 16, "m?", True, "default"])
rules = st.dictionaries(
    st.sampled_from(["model", "engine", "placement", "task", "batch", "tf32", "compile", "dataset"]),
    words | st.lists(words, min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)
axes = st.fixed_dictionaries(
    {
        "models": st.lists(st.sampled_from(["m1", "m2", "m3"]), min_size=1, max_size=4),
        "engines": st.lists(st.sampled_from(ENGINES), min_size=1, max_size=5),
        "placements": st.lists(st.sampled_from(PLACEMENTS), min_size=1, max_size=4),
        "tasks": st.lists(st.sampled_from(["train", "infer"]), min_size=1, max_size=2),
        "vary": st.dictionaries(
            st.sampled_from(["recipe.batch", "recipe.epochs"]),
            st.lists(st.sampled_from([1, 2, 8, 16]), min_size=1, max_size=3),
        ),
    }
)


def every(keys: dict[str, Any], exclude: list[Any]) -> list[Trial]:
    try:
        return expand(parse_study({"study": "s", **keys, "exclude": exclude}, "here"), Fixed())
    except StudyError as error:
        if "nothing is left" not in str(error):
            raise
        return []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(axes, st.lists(rules, max_size=3), rules)
def test_expansion_never_repeats_and_exclusions_never_add(
    keys: dict[str, Any], some: list[Any], another: dict[str, Any]
) -> None:
    all_of_them = every(keys, [])
    ids = [trial.id for trial in all_of_them]
    axis_sizes = [len(set(keys[axis])) for axis in ("models", "engines", "placements", "tasks")]
    axis_sizes += [len(set(values)) for values in keys["vary"].values()]
    expected = 1
    for size in axis_sizes:
        expected *= size
    assert len(set(ids)) == len(ids) == expected
    fewer, fewest = every(keys, some), every(keys, [*some, another])
    in_order = iter(ids)
    assert all(trial.id in in_order for trial in fewer)  # a part of it, in the same order
    assert {trial.id for trial in fewest} <= {trial.id for trial in fewer}
    apart = {trial.id for trial in every(keys, [another])}
    assert {trial.id for trial in fewest} == {trial.id for trial in fewer} & apart


# --- trials -----------------------------------------------------------------------------------------------------------


def test_a_trials_id_hashes_all_that_determines_it() -> None:
    (trial,) = trials()
    others = [
        trial.model_copy(update=update)
        for update in (
            {"engine": "jax"}, {"engine": "torch@2.9.1"}, {"placement": Placement(threads=2)}, {"task": "infer"},
            {"seed": 2}, {"samples": 10}, {"dataset": "other"}, {"settings": Settings(tf32=True)},
            {"recipe": Recipe(batch=7)}, {"recipe": Recipe(optimiser=Sgd(momentum=0.5))},
            {"network": trial.network.model_copy(update={"name": "other"})},
        )
    ]  # fmt: skip
    ids = {Trial.model_validate(other.model_dump()).id for other in others}
    assert len(ids | {trial.id}) == len(others) + 1
    assert len(trial.id) == 16


def test_a_trials_id_outlives_the_process_that_made_it() -> None:
    """A record of today is found again by tomorrow's study: this id may change only on purpose."""
    (trial,) = trials()
    again = Trial.model_validate_json(trial.model_dump_json())
    assert again == trial
    assert again.id == trial.id == "afca49b0d8b63c64"


def test_a_cell_is_flat_and_plain() -> None:
    (trial,) = trials(recipe={"batch": 5})
    cell = describe_cell(trial)
    assert json.loads(json.dumps(cell)) == cell
    assert cell["parameters"] == cell["parameters_all"] == 4 * 3 + 3
    assert (cell["batch"], cell["placement"], cell["loop"], cell["network"]) == (5, "cpu", "step", "tiny")
    assert cell["multiply_adds"] == 12


# --- placements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "device", "threads"),
    [("cpu", "cpu", 1), ("cpu:1", "cpu", 1), ("cpu:16", "cpu", 16), ("cuda:3", "cuda:3", 1)],
)
def test_placements_are_read_and_written(text: str, device: str, threads: int) -> None:
    placement = Placement.parse(text)
    assert (placement.device, placement.threads) == (device, threads)
    assert Placement.parse(str(placement)) == placement
    assert Placement.parse(placement) is placement


@pytest.mark.parametrize(
    "text",
    ["", "CPU", "cpu:0", "cpu:-1", "cpu:1.5", "cpu:x", "cuda", "cuda:", "cuda:-1", "gpu:0", "cpu:01", 3, None, "cpu\n"],
)
def test_what_is_no_placement_is_said_with_the_remedy(text: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a placement; write cpu, cpu:THREADS, cpu:FIRST-LAST or cuda:INDEX"):
        Placement.parse(text)


# --- mistakes, in words -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"study": "no spaces please"}, "here: 'study'"),
        ({"study": ""}, "here: 'study'"),
        ({"study": "../up"}, "here: 'study'"),
        ({"study": "machines"}, "here: 'machines' is a folder of the records; give the study another name"),
        ({"engins": ["torch"]}, "here: 'engins' is not a key here; did you mean 'engines'?"),
        ({"xyzzy": 1}, "here: 'xyzzy' is not a key here; known: study, title, models"),
        ({1: 2}, "here: '1'"),
        ({"engines": []}, "here: 'engines' should not be empty"),
        ({"engines": 5}, "here: 'engines' should be a list"),
        ({"engines": [["torch"]]}, "here: 'engines.0'"),
        ({"tasks": ["learn"]}, "here: 'tasks.0': input should be 'train' or 'infer', not 'learn'"),
        ({"placements": ["gpu"]}, "here: placements.0: 'gpu' is not a placement; write cpu, cpu:THREADS, cpu:FIRST-LAST or cuda:INDEX"),
        ({"repeat": 0}, "here: 'repeat': input should be greater than 0, not 0"),
        ({"repeat": 1.5}, "here: 'repeat'"),
        ({"samples": -1}, "here: samples: give a number above 0"),
        ({"seed": -1}, "here: 'seed'"),
        ({"seed": 2**32}, "here: 'seed'"),
        ({"profile": "fast"}, "here: 'profile': input should be 'quick', 'normal' or 'publish', not 'fast'"),
        ({"settings": {"loop": "for"}}, "here: 'settings.loop': input should be 'step' or 'fit', not 'for'"),
        ({"settings": {"loops": "fit"}}, "here: 'settings.loops' is not a key here"),
        ({"limits": 5}, "here: 'limits'"),
        ({"networks": []}, "here: name at least one model under `models`, or write one under `networks`"),
        ({"vary": {"batch": [1, 2]}}, "here: vary: 'batch' should start with recipe., settings. or model."),
        ({"vary": {"recipe.batch": []}}, "here: 'vary.recipe.batch' should not be empty"),
        ({"vary": {"recipe.batch": 32}}, "here: 'vary.recipe.batch' should be a list"),
        ({"vary": {"recipe.batch": [-4]}}, "recipe: 'batch': input should be greater than 0, not -4"),
        ({"vary": {"recipe.bach": [4]}}, "recipe: 'bach' is not a key here; did you mean 'batch'?"),
        ({"vary": {"recipe.batch.size": [4]}}, "recipe: 'batch' has no parts, so there is no 'batch.size'"),
        ({"vary": {"recipe.momentum_schedule.first": [0.5]}}, "recipe: 'momentum_schedule' has no parts"),
        ({"vary": {"settings.tf32": ["perhaps"]}}, "settings: 'tf32'"),
        ({"recipe": {"batch": "many"}}, "recipe: 'batch'"),
        ({"recipe": {"optimiser": {"kind": "sgdd"}}}, "recipe: 'optimiser'"),
        ({"recipe": {"optimiser.momentum": 1.5}}, "recipe: 'optimiser.sgd.momentum'"),
        ({"vary": {"model.filters": [1, 2]}}, "model 'tiny' is written out in the study and has no options"),
        ({"networks": [TINY, TINY]}, "here: networks: two are named 'tiny'; names must differ"),
        ({"models": ["quick/cn"]}, "model 'quick/cn': there is no model 'quick/cn'; did you mean 'quick/cnn'"),
        ({"models": ["quick/cnn?filters=2"]}, "model 'quick/cnn?filters=2': 'quick/cnn' has no option 'filters'"),
        (
            {"networks": [{**TINY, "input": {"shape": [4, 4, 1]}, "layers": [{"conv2d": {"filters": 2, "kernel": 5}}]}]},
            "here: networks.0: layer 'conv2d_1': a window of 5 does not fit into a height of 4; use a smaller window",
        ),
        ({"networks": [{**TINY, "layers": [{"dens": {"units": 2}}]}]}, "here: networks.0.layers.0: "),
        ({"networks": [{**TINY, "layers": [{"dense": {"units": -2}}]}]}, "here: 'networks.0.layers.0.units': input should be greater than 0, not -2"),
        ({"networks": [{**TINY, "layers": []}]}, "here: networks: 'tiny' has no layers; write at least one"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_remedy(change: dict[Any, Any], said: str) -> None:
    words = mistake({**LEAST, **change})
    assert words.startswith(said)
    assert "\n" not in words
    assert "pydantic" not in words


def test_several_mistakes_are_all_said_a_line_each() -> None:
    lines = mistake({"study": "s", "engins": ["torch"], "repeat": 0}).splitlines()
    assert len(lines) == 3
    assert {line.split("'")[1] for line in lines} == {"engines", "engins", "repeat"}


def test_a_missing_key_is_said() -> None:
    assert "here: 'engines' is missing; add it" in mistake({"study": "s", "networks": [TINY]})


@pytest.mark.parametrize("content", [None, 5, "text", [1, 2], True])
def test_what_is_no_study_at_all(content: Any) -> None:
    assert mistake(content) == "here: a study is a list of `key: value` lines; see `timetrial run --help`"


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ": a study is a list of `key: value` lines"),
        (b"\xff\xfe\x00\x01", ": is not a text file in UTF-8"),
        (b"\x00\x01\x02", ": not valid YAML"),
        (b"study: [unclosed\nengines", ", line 2, column 8: not valid YAML: "),
        (b"study: s\n\tengines: x\n", ", line 2, column 1: not valid YAML: "),
        (b"study: !!python/object/apply:os.system [ls]\n", ", line 1, column 8: not valid YAML: "),
        (b"study: 2020-13-45\n", ": not valid YAML: month must be in 1..12"),
        (b"[" * 20000, ": not valid YAML: nested too deeply"),
        (b"study: one\nstudy: two\nengines: [torch]\n", ", line 2, column 1: not valid YAML: 'study' is there twice"),
        (b"study: 2020-01-02\nengines: torch\n", ": 'study'"),
    ],
)
def test_a_file_that_is_no_study_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert str(caught.value).startswith(f"{path}{said}")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"cannot be read \(Is a directory\)"):
        load_study(tmp_path)
    with pytest.raises(StudyError, match=r"no\.yaml: cannot be read \(No such file or directory\)"):
        load_study(tmp_path / "no.yaml")


def test_a_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump({**LEAST, **AXES}))
    assert load_study(path) == study(**AXES)


fuzz = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["cpu", "torch", "s"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(list(Study.model_fields)), fuzz, max_size=4))
def test_whatever_a_study_says_it_is_read_or_refused_in_words(change: dict[str, Any]) -> None:
    """Nothing else may come out of it."""
    with contextlib.suppress(StudyError):
        expand(parse_study({**LEAST, **change}, "here"), ZooResolver())


# --- numbers of threads -----------------------------------------------------------------------------------------------


def test_a_range_of_threads_is_an_axis() -> None:
    found = [str(placement) for placement in study(placements=["cpu:1-3", "cuda:0"]).placements]
    assert found == ["cpu", "cpu:2", "cpu:3", "cuda:0"]


def test_a_range_that_counts_down_is_explained() -> None:
    with pytest.raises(StudyError, match=r"'cpu:4-2' counts down; write cpu:2-4"):
        study(placements="cpu:4-2")
