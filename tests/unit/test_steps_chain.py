"""Chains: read and checked before anything is loaded, fitted on the training samples only, and part of what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.cli.loading import ZooResolver, trials_of
from timetrial.cli.shared import BadRequest
from timetrial.data import registry
from timetrial.data.prepare import Prepared, prepare
from timetrial.data.registry import Dataset, find
from timetrial.data.samples import Array, DataError, Samples, Wanted
from timetrial.data.steps import STEPS, StepError, read_chain, read_step
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe
from timetrial.spec.study import expand, parse_study

FASHION = "fashion-mnist-6000"
LAST = [{"dense": {"units": 10}}]


def network(shape: list[int], tokens: int | None = None) -> Network:
    first = [{"embedding": {"vocabulary": tokens, "units": 2}}] if tokens else []
    layers: list[Any] = [*first, "flatten", *LAST]
    return Network.model_validate({"name": "small", "input": {"shape": shape, "tokens": tokens}, "layers": layers})


RECIPE = Recipe(batch=8)

# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "whole"), [
    ("gcn", "gcn?subtract=column&channels=apart&floor=1e-08"),
    ("zca?epsilon=1e-2", "zca?epsilon=0.01"),
    ("resize?width=20&height=28", "resize?height=28&width=20"),
    ("crop", "crop?size=24"),
    ("words?length=400&vocabulary=5000", "words?vocabulary=5000&length=400&pad=before&keep=last"),
    ("flatten", "flatten"),
])  # fmt: skip
def test_a_step_is_written_with_all_its_parameters(text: str, whole: str) -> None:
    assert str(read_step(text)) == whole
    assert read_step(whole) == read_step(text)


@pytest.mark.parametrize(("text", "words"), [
    ("gnc", "there is no step 'gnc'; did you mean 'gcn'?"),
    ("ZCA", "did you mean 'zca'?"),
    ("standardize", "did you mean 'standardise'?"),
    ("qqq", "known: brightness, contrast, crop,"),
    ("zca?epsilon", "write options as 'name?option=value&option=value', not 'epsilon'"),
    ("zca?eps=1", "step 'zca' has no option 'eps'; its options: epsilon (a number; default 1e-05)"),
    ("flatten?x=1", "its options: none"),
    ("crop?size=big", "option 'size' wants a whole number, not 'big'"),
    ("crop?size=0", "option 'size' is at least 1, not 0"),
    ("crop?size=3&size=4", "option 'size' is there twice"),
    ("gcn?subtract=row", "option 'subtract' is one of column, sample, nothing, not 'row'"),
])  # fmt: skip
def test_what_is_written_wrongly_is_said_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(StepError) as caught:
        read_chain(["scale", text])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_written_is_the_networks_or_is_asked_for() -> None:
    texts = read_chain(["words"]).completed(network([12], tokens=50))
    assert texts.texts == ("words?vocabulary=50&length=12&pad=before&keep=last",)
    half = read_chain(["words?length=7"]).completed(network([12], tokens=50))
    assert half.texts[0].startswith("words?vocabulary=50&length=7")
    assert read_chain(["group"]).completed(network([9, 24])).texts == ("group?steps=9",)
    with pytest.raises(StepError, match=r"step 'resize' needs `width`: write 'resize\?width=…'"):
        read_chain(["resize?height=3"]).completed(network([4, 4, 1]))
    with pytest.raises(StepError, match="needs `vocabulary`"):
        read_chain(["words"]).completed(network([12]))


def test_steps_that_decide_which_samples_there_are_stand_first() -> None:
    assert read_chain(["split", "grey"]).texts[0].startswith("split")
    with pytest.raises(StepError, match="step 'split' decides which samples there are; write it before 'grey'"):
        read_chain(["grey", "split"])


def test_every_step_is_described_and_no_two_share_a_class() -> None:
    assert len(set(STEPS.values())) == len(STEPS)
    for name, cls in STEPS.items():
        assert cls.name == name
        assert cls.__doc__ and not cls.__doc__.startswith(cls.__name__ + "(")
        assert all(option.meaning for option in cls.options())


def test_a_chain_multiplies_out_shapes_and_refuses_what_cannot_be() -> None:
    assert read_chain(["crop?size=24", "grey", "flatten"]).shape((32, 32, 3)) == (576,)
    for steps, shape, words in (
        (["crop?size=24"], (20, 32, 3), "step 'crop' of 24x24 does not fit into images of 20x32x3"),
        (["grey"], (5, 5, 2), "needs one channel or three"),
        (["flatten", "resize?height=2&width=2"], (4, 4, 1), "needs images (rows, columns, channels), but is given 16"),
        (["hog"], (30, 32, 3), "rows and columns that divide into 4"),
        (["hog"], (32, 32, 1), "write hues=0"),
        (["gist"], (7, 32, 3), "at least 8 rows and columns"),
    ):
        with pytest.raises(StepError) as caught:
            read_chain(steps).shape(shape)
        assert words in str(caught.value)


# --- running ----------------------------------------------------------------------------------------------------------

FITTED = {
    "gcn": (5, 4, 3), "subtract-mean": (5, 4, 3), "standardise": (5, 4, 3), "standardise?over=channel": (5, 4, 3),
    "zca": (3, 4, 2),
}  # fmt: skip


def halves(shape: tuple[int, ...], test: float = 1.0) -> Samples:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    return Samples(rng.random((60, *shape)), labels, test * rng.random((60, *shape)) + test - 1, labels)


@pytest.mark.parametrize("text", FITTED)
def test_steps_learn_from_the_training_samples_only(text: str) -> None:
    """Other test samples change nothing in training; other training samples change what comes of the test."""
    one, other = halves(FITTED[text]), halves(FITTED[text], test=50.0)
    chain = read_chain([text])
    assert np.array_equal(chain.run(one, 1).x_train, chain.run(other, 1).x_train)
    moved = replace(one, x_train=one.x_train[::-1] ** 2)
    assert not np.allclose(chain.run(one, 1).x_test, chain.run(moved, 1).x_test)
    alone = replace(one, x_test=one.x_test[:1])  # nor does one test sample know the others
    assert np.allclose(chain.run(alone, 1).x_test, chain.run(one, 1).x_test[:1], atol=1e-6)


NUMERIC = sorted(
    STEPS.keys()
    - {"words", "next-character", "group", "marshall-palmer", "linearise", "length-and-mean", "split", "impute"}
)
WRITTEN = {
    "resize": "resize?height=4&width=4",
    "drop": "drop?column=0",
    "crop": "crop?size=4",
    "gist": "gist?border=2",
    "hog": "hog?hues=0",
}


def written(name: str) -> tuple[str, tuple[int, ...]]:
    return WRITTEN.get(name, name), (6,) if name == "drop" else (8, 8, 1)


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_values_are_refused(name: str, bad: float) -> None:
    text, shape = written(name)
    samples = halves(shape)
    samples.x_test.ravel()[3] = bad
    with pytest.raises(
        StepError, match=f"step '{name}' is given test samples with missing or infinite values; write 'impute'"
    ):
        read_chain([text]).run(samples, 1)


@pytest.mark.parametrize("name", NUMERIC)
def test_no_samples_at_all_are_refused_and_no_test_is_none(name: str) -> None:
    text, shape = written(name)
    samples, chain = halves(shape), read_chain([text])
    untested = chain.run(replace(samples, x_test=samples.x_test[:0]), 1)
    assert untested.x_test.shape == (0, *chain.shape(shape))
    assert untested.x_train.shape == (60, *chain.shape(shape))
    with pytest.raises(StepError, match=f"step '{name}' has no training samples"):
        chain.run(replace(samples, x_train=samples.x_train[:0]), 1)


@pytest.mark.parametrize("name", NUMERIC)
def test_steps_do_not_change_what_they_are_given(name: str) -> None:
    text, shape = written(name)
    samples = halves(shape)
    before = samples.x_train.copy(), samples.x_test.copy()
    read_chain([text]).run(samples, 1)
    assert np.array_equal(before[0], samples.x_train)
    assert np.array_equal(before[1], samples.x_test)


def test_impute_fills_gaps_and_nothing_else() -> None:
    samples = halves((4,))
    samples.x_train[3, 2] = np.nan
    found = read_chain(["impute?value=-1", "standardise"]).run(samples, 1)
    assert np.isfinite(found.x_train).all()
    plain = read_chain(["impute?value=-1"]).run(samples, 1)
    assert plain.x_train[3, 2] == -1
    assert np.allclose(np.delete(plain.x_train, 3, 0), np.delete(samples.x_train, 3, 0))


# --- prepared ---------------------------------------------------------------------------------------------------------


def load(path: Path) -> Array:
    return np.load(path)


def fashion(
    steps: list[str] | None, shape: list[int], folder: Path, seed: int = 0, samples: int | None = 300
) -> Prepared:
    return prepare(FASHION, network(shape), RECIPE, seed, folder, samples, steps)


def test_prepared_samples_went_through_the_chain(tmp_path: Path) -> None:
    plain = load(fashion(None, [28, 28, 1], tmp_path).x_train)
    gcn = fashion(["gcn?subtract=sample"], [28, 28, 1], tmp_path)
    x = load(gcn.x_train)
    assert np.allclose(x.mean((1, 2, 3)), 0, atol=1e-4)
    assert np.allclose(x.std((1, 2, 3)), 1, atol=1e-4)
    assert gcn.provenance["preprocessing"] == ["gcn?subtract=sample&channels=apart&floor=1e-08"]
    assert gcn.provenance["seed"] is None
    whole = load(fashion(["scale"], [28, 28, 1], tmp_path).x_train)
    assert np.array_equal(whole, plain)
    assert np.array_equal(load(fashion(["raw"], [28, 28], tmp_path).x_train), np.rint(plain[..., 0] * 255))


def test_the_chain_is_part_of_what_is_asked_for_and_of_the_content(tmp_path: Path) -> None:
    kept = [
        fashion(steps, [28, 28, 1], tmp_path).content for steps in (None, ["raw"], ["gcn"], ["gcn?floor=1e-3"], ["gcn"])
    ]
    assert kept[2] == kept[4]
    assert len(set(kept)) == 4
    assert len(list((tmp_path / "requests").iterdir())) == 4


def test_only_chance_depends_on_the_seed(tmp_path: Path) -> None:
    still = {fashion(["gcn"], [28, 28, 1], tmp_path, seed).content for seed in (1, 2)}
    assert len(still) == 1
    one, again, two = (fashion(["crop?size=20", "flip"], [20, 20, 1], tmp_path, seed) for seed in (1, 1, 2))
    assert one.content == again.content != two.content
    assert one.provenance["seed"] == 1
    assert np.array_equal(load(one.x_test), load(two.x_test))
    assert not np.array_equal(load(one.x_train), load(two.x_train))


def test_the_fit_is_on_the_samples_that_are_trained_on(tmp_path: Path) -> None:
    few = fashion(["raw", "subtract-mean"], [28, 28, 1], tmp_path, samples=50)
    assert np.allclose(load(few.x_train).mean(0), 0, atol=1e-3)
    assert len(load(few.x_train)) == 50


def test_a_chain_is_refused_before_its_data_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(dataset: Dataset, wanted: Wanted) -> Samples:
        raise AssertionError("read")

    monkeypatch.setitem(registry._datasets, FASHION, replace(find(FASHION), read=never))
    for steps, words in (
        (["gnc"], "did you mean 'gcn'?"),
        (["crop?size=40"], "does not fit into images of 28x28"),
        (["crop?size=24"], r"are 24x24x1 after crop\?size=24, but network 'small' takes 28x28x1"),
        (["zca?eps=1"], "has no option 'eps'"),
    ):
        with pytest.raises(DataError, match=words):
            fashion(steps, [28, 28, 1], tmp_path)


def test_a_stand_in_in_the_networks_form_takes_no_steps(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is made in the network's own form"):
        prepare("synthetic", network([8, 8, 3]), RECIPE, 0, tmp_path, 40, ["gcn"])
    made = prepare("synthetic:8x8x3:10", network([6, 6, 3]), RECIPE, 0, tmp_path, 40, ["crop?size=6"])
    assert load(made.x_train).shape == (40, 6, 6, 3)


def kind(x: Array, y: Array, shape: tuple[int, ...] | None = None, **fields: Any) -> Dataset:
    samples = Samples(x, y, x, y)
    return replace(
        find("synthetic"), name="made", read=lambda *_: samples, synthetic=False, input_shape=shape, **fields
    )


def test_where_nothing_is_said_texts_and_streams_become_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = np.array(["a b c", "a a"], object)
    monkeypatch.setitem(registry._datasets, "made", kind(texts, np.array([0, 9]), classes=10))
    made = prepare("made", network([4], tokens=3), RECIPE, 0, tmp_path)
    assert load(made.x_train).tolist() == [[0, 1, 2, 0], [0, 0, 1, 1]]
    assert made.provenance["preprocessing"] == ["words?vocabulary=3&length=4&pad=before&keep=last"]
    stream = np.frombuffer(b"aabaabaab", np.uint8)
    monkeypatch.setitem(registry._datasets, "made", kind(stream, np.zeros(0, np.int32)))
    layers: list[Any] = [{"embedding": {"vocabulary": 3, "units": 2}}, {"dense": {"units": 3}}]
    reader = Network.model_validate({"name": "next", "input": {"shape": [4], "tokens": 3}, "layers": layers})
    made = prepare("made", reader, RECIPE, 0, tmp_path)
    assert load(made.x_train).tolist() == [[1, 1, 2, 1], [1, 2, 1, 1]]
    assert load(made.y_train).tolist() == [[1, 2, 1, 1], [2, 1, 1, 2]]


def test_a_dataset_may_have_steps_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(24.0).reshape(8, 3)
    dataset = kind(x, np.arange(8), (3,), classes=10, preprocessing=("drop?column=0",))
    monkeypatch.setitem(registry._datasets, "made", dataset)
    assert load(prepare("made", network([2]), RECIPE, 0, tmp_path).x_train).tolist() == x[:, 1:].tolist()
    made = prepare("made", network([3]), RECIPE, 0, tmp_path, None, ["standardise"])
    assert made.provenance["preprocessing"] == ["standardise?over=value"]


# --- in a study -------------------------------------------------------------------------------------------------------

LEAST: dict[str, Any] = {"study": "s", "engines": ["torch"], "data": "synthetic:28x28:10"}


def chains(**keys: Any) -> list[tuple[str, ...] | None]:
    return [trial.preprocessing for trial in expand(parse_study({**LEAST, **keys}, "here"), ZooResolver())]


def test_a_study_says_its_preprocessing() -> None:
    both = ["backends/cnn-softmax", "backends/dnn-w20"]
    assert chains(models=both) == [None, None]
    assert chains(models=both, preprocessing="published") == [("gcn",), ("width?size=20",)]
    assert chains(models=both, preprocessing=["gcn", "zca"]) == [("gcn", "zca")] * 2
    assert chains(models=both[:1], preprocessing="gcn") == [("gcn",)]
    assert chains(models=both, preprocessing=["published", "scale"]) == [("gcn", "scale"), ("width?size=20", "scale")]


def test_a_study_with_steps_is_checked_before_it_runs() -> None:
    for steps, words in (("gnc", "did you mean 'gcn'"), ("crop?size=9", "takes 28x28x1")):
        with pytest.raises(BadRequest, match=words):
            trials_of(parse_study({**LEAST, "models": "backends/cnn-softmax", "preprocessing": steps}, "here"))
    good = {**LEAST, "models": "backends/dnn-w20", "preprocessing": "published"}
    assert len(trials_of(parse_study(good, "here"))) == 1


def test_trials_of_other_steps_are_other_trials() -> None:
    def one(**keys: Any) -> Any:
        return expand(parse_study({**LEAST, "models": "backends/cnn-softmax", **keys}, "here"), ZooResolver())[0]

    plain, published, same, other = (
        one(),
        one(preprocessing="published"),
        one(preprocessing=["gcn"]),
        one(preprocessing=["gcn", "zca"]),
    )
    assert published.id == same.id
    assert len({plain.id, published.id, other.id}) == 3
    assert (plain.coordinates["preprocessing"], other.coordinates["preprocessing"]) == ("", "gcn, zca")
    assert json.loads(other.model_dump_json())["preprocessing"] == ["gcn", "zca"]
