"""Texts, streams of characters, radar readings and new divisions, each worked out by hand or by a loop."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timetrial.data.samples import Array, Samples
from timetrial.data.steps import StepError, read_chain
from timetrial.data.steps.radar import ATTRIBUTES, columns
from timetrial.data.steps.text import words_of


def texts(*lines: str) -> Array:
    return np.array(lines, object)


def run(
    steps: str | list[str],
    train: Array,
    test: Array,
    y: Array | None = None,
    y_test: Array | None = None,
    seed: int = 0,
) -> Samples:
    y = np.arange(len(train)) % 2 if y is None else y
    y_test = np.arange(len(test)) % 2 if y_test is None else y_test
    return read_chain([steps] if isinstance(steps, str) else steps).run(Samples(train, y, test, y_test), seed)


# --- words ------------------------------------------------------------------------------------------------------------

# the 4, a 3, cat 2 and sat 2; then dog, it's and on, once each: 10 different words with those only in the test.
TRAIN = texts("The cat sat on the<br />cat", "A dog: a dog? No, THE a!", "the sat it's")


def test_words_are_ranked_by_how_often_they_are_used() -> None:
    counts = Counter(word for line in TRAIN for word in words_of(line))
    assert counts == {"the": 4, "a": 3, "cat": 2, "sat": 2, "dog": 2, "on": 1, "no": 1, "it's": 1}
    found = run("words?vocabulary=7&length=6&pad=after&keep=first", TRAIN, texts("the bird and a cat", ""))
    ranks = {"the": 1, "a": 2, "cat": 3, "dog": 4, "sat": 5, "it's": 6}  # equally frequent ones by the alphabet
    assert found.x_train.tolist() == [
        [ranks["the"], ranks["cat"], ranks["sat"], 0, ranks["the"], ranks["cat"]],
        [ranks["a"], ranks["dog"], ranks["a"], ranks["dog"], 0, ranks["the"]],
        [ranks["the"], ranks["sat"], ranks["it's"], 0, 0, 0],
    ]
    assert found.x_test.tolist() == [[1, 0, 0, 2, 3, 0], [0] * 6]
    assert found.x_train.dtype == np.int32


def test_long_texts_keep_their_end_and_short_ones_are_filled_before() -> None:
    found = run("words?vocabulary=3&length=4", TRAIN, texts("a the"))
    assert found.x_train.tolist() == [[0, 0, 1, 0], [0, 0, 1, 2], [0, 1, 0, 0]]
    assert found.x_test.tolist() == [[0, 0, 2, 1]]


def test_words_that_only_the_test_has_are_unknown() -> None:
    alone = run("words?vocabulary=100&length=3", texts("a b", "a"), texts("zebra zebra zebra"))
    assert alone.x_test.tolist() == [[0, 0, 0]]
    assert alone.x_train.max() == 2


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.integers(2, 9), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_any_text_gives_tokens_below_the_vocabulary(lines: list[str], vocabulary: int, length: int) -> None:
    found = run(f"words?vocabulary={vocabulary}&length={length}", texts(*lines), texts(*lines))
    assert found.x_train.shape == (len(lines), length)
    assert found.x_train.min() >= 0
    assert found.x_train.max() < vocabulary
    assert np.array_equal(found.x_train, found.x_test)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(StepError, match="step 'words' needs texts"):
        run("words?vocabulary=5&length=5", np.zeros((3, 4)), np.zeros((1, 4)))
    sequences = np.empty(2, object)
    sequences[:] = [np.zeros(2), np.zeros(3)]
    with pytest.raises(StepError, match="step 'words' needs texts"):
        run("words?vocabulary=5&length=5", sequences, sequences)
    with pytest.raises(StepError, match="not texts, streams or sequences"):
        run("gcn", TRAIN, TRAIN)


def test_the_target_of_a_character_is_the_one_after_it() -> None:
    stream = np.frombuffer(b"abracadabra!", np.uint8)
    found = run(
        "next-character?vocabulary=4&length=5", stream, np.frombuffer(b"bad", np.uint8), np.zeros(0), np.zeros(0)
    )
    a, b, r = 1, 2, 3  # 5, 2 and 2 times; of equals the one with the smaller byte
    assert found.x_train.tolist() == [[a, b, r, a, 0], [a, 0, a, b, r]]
    assert found.y_train.tolist() == [[b, r, a, 0, a], [0, a, b, r, a]]
    assert (found.x_test.shape, found.y_test.shape) == ((0, 5), (0, 5))
    pieces = np.frombuffer(b"abracadabr", np.uint8).reshape(2, 5).astype(np.int32)
    after = np.frombuffer(b"bracadabra", np.uint8).reshape(2, 5).astype(np.int32)
    ranked = run("next-character?vocabulary=4&length=5", pieces, pieces[:1], after, after[:1])
    assert np.array_equal(ranked.x_train, found.x_train)
    assert np.array_equal(ranked.y_train, found.y_train)
    with pytest.raises(StepError, match="or pieces of 4, but is given 5"):
        run("next-character?vocabulary=4&length=4", pieces, pieces, after, after)
    with pytest.raises(StepError, match="needs bytes"):
        run("next-character?vocabulary=4&length=5", pieces + 200, pieces, after, after)
    with pytest.raises(StepError, match="needs more than 12 characters, but is given 12"):
        run("next-character?vocabulary=4&length=12", stream, stream, np.zeros(0), np.zeros(0))


# --- radar ------------------------------------------------------------------------------------------------------------

NAN = math.nan


def records(*rows: tuple[float, float]) -> Array:
    """The number of the sequence, and a value that every attribute has."""
    return np.array([[number, *[value] * 22] for number, value in rows])


def test_records_with_one_number_are_a_sequence() -> None:
    x = records((7, 1), (7, 2), (3, 5), (9, 6), (9, 7), (9, 8))
    y = np.array([[0.1], [0.1], [0.3], [0.9], [0.9], [0.9]])
    found = run("group?steps=2", x, records((1, 4)), y, np.array([[2.5]]))
    assert found.x_train.shape == (3, 2, 22)
    assert np.array_equal(found.x_train[..., 0], [[1, 2], [5, NAN], [6, 7]], equal_nan=True)
    assert found.y_train.ravel().tolist() == [0.1, 0.3, 0.9]
    assert np.array_equal(found.x_test[..., 5], [[4, NAN]], equal_nan=True)
    assert found.y_test.tolist() == [[2.5]]


def test_records_of_a_sequence_need_not_follow_each_other() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 30, 200)
    x = np.concatenate([numbers[:, None], rng.random((200, 22))], axis=1).astype(np.float32)
    found = run("group?steps=50", x, x[:0], numbers.astype(float), np.zeros(0))
    for number, sequence, target in zip(dict.fromkeys(numbers.tolist()), found.x_train, found.y_train, strict=True):
        own = x[numbers == number, 1:]
        assert np.array_equal(sequence[: len(own)], own)
        assert np.isnan(sequence[len(own) :]).all()
        assert target == number


def test_sequences_of_different_lengths_become_one_length() -> None:
    sequences = np.empty(3, object)
    for place, length in enumerate((1, 4, 2)):
        sequences[place] = np.full((length, 22), length, np.float32)
    found = run("group?steps=3", sequences, sequences[:1])
    assert found.x_train.shape == (3, 3, 22)
    assert np.isnan(found.x_train[:, :, 0]).sum(1).tolist() == [2, 0, 1]
    assert found.y_train.tolist() == [0, 1, 0]
    sequences[1] = np.zeros((2, 5))
    with pytest.raises(StepError, match="all have the same attributes"):
        run("group?steps=3", sequences, sequences[:1])


def test_marshall_palmer_is_its_closed_formula() -> None:
    """Z = 200 R^1.6: 1 mm/h is 23 dBZ, and turning back gives the reflectivity again."""
    x = np.random.default_rng(1).uniform(-10, 60, (4, 3, 22))
    x[0, 0] = NAN
    for of, changed in (
        ("RefComposite", columns("RefComposite")),
        ("Ref", columns("Ref")),
        ("both", columns("Ref", "RefComposite")),
    ):
        found = run(f"marshall-palmer?of={of}", x, x[:1]).x_train
        assert np.allclose(10 * np.log10(200 * found[..., changed] ** 1.6), x[..., changed], equal_nan=True)
        others = [column for column in range(22) if column not in changed]
        assert np.array_equal(found[..., others], x[..., others], equal_nan=True)
    one = np.full((1, 1, 22), 10 * math.log10(200))
    assert np.allclose(run("marshall-palmer", one, one).x_train[..., columns("RefComposite")], 1)


def test_decibels_become_ratios() -> None:
    x = np.full((2, 2, 22), 3.0)
    found = run("linearise", x, x).x_train
    zdr = [ATTRIBUTES.index(name) for name in ("Zdr", "Zdr_5x5_10th", "Zdr_5x5_50th", "Zdr_5x5_90th")]
    assert np.allclose(found[..., zdr], 10**0.3)
    assert np.array_equal(np.delete(found, zdr, axis=-1), np.delete(x, zdr, axis=-1))


def test_length_and_mean_against_a_loop() -> None:
    rng = np.random.default_rng(2)
    x = rng.random((20, 6, 22))
    x[rng.random(x.shape) < 0.4] = NAN
    x[..., 0] = 5  # minutes_past is always there
    for sequence, length in zip(x, rng.integers(1, 7, 20), strict=True):
        sequence[length:] = NAN
    found = run("length-and-mean", x, x[:2]).x_train
    assert found.shape == (20, 6, 24)
    for before, after in zip(x, found, strict=True):
        there = [row for row in before if not all(math.isnan(v) for v in row)]
        for place, row in enumerate(before):
            known = [value for value in row if not math.isnan(value)]
            expected = [len(there), sum(known) / len(known)] if known else [NAN, NAN]
            assert np.allclose(after[place, 22:], expected, equal_nan=True, atol=1e-6)
            assert np.allclose(after[place, :22], row, equal_nan=True)


def test_the_published_chain_of_radar_readings_has_no_gaps() -> None:
    chain = ["group?steps=4", "marshall-palmer", "linearise", "length-and-mean", "impute"]
    x = records((1, 3), (1, NAN), (2, 4))
    x[1, 1] = 9
    found = run(chain, x, x[:0], np.array([1.0, 1.0, 2.0]), np.zeros(0))
    assert read_chain(chain).shape((23,)) == read_chain(chain).shape(()) == (4, 24)
    assert found.x_train.shape == (2, 4, 24)
    assert np.isfinite(found.x_train).all()
    assert found.x_train[0, :, 22].tolist() == [2, 2, 0, 0]
    assert not found.x_train[1, 1:].any()
    with pytest.raises(StepError, match="sequences of 22 radar attributes; write 'group' before it, but is given 4x5"):
        read_chain(["linearise"]).shape((4, 5))


# --- dividing anew ----------------------------------------------------------------------------------------------------


def test_split_gives_the_published_numbers() -> None:
    y = np.repeat(np.arange(9), 1000)
    x = np.arange(9000)[:, None]
    found = run("split?train=0.85&validation=0.02", x[:8000], x[8000:], y[:8000], y[8000:])
    assert (len(found.x_train), len(found.x_test)) == (7650, 1170)
    assert np.bincount(found.y_train).tolist() == [850] * 9
    assert np.bincount(found.y_test).tolist() == [130] * 9
    assert not set(found.x_train.ravel()) & set(found.x_test.ravel())
    assert np.array_equal(y[found.x_train.ravel().astype(int)], found.y_train)
    assert len(np.unique(found.y_train[:50])) > 4  # in random order


@given(counts=st.lists(st.integers(3, 40), min_size=1, max_size=5), train=st.floats(0.05, 0.9), seed=st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_every_class_is_in_every_part(counts: list[int], train: float, seed: int) -> None:
    y = np.repeat(np.arange(len(counts)), counts)
    found = run(
        f"split?train={train:.6f}&validation=0.02", np.arange(len(y))[:, None], np.zeros((0, 1)), y, y[:0], seed
    )
    assert set(found.y_train) == set(found.y_test) == set(y)
    left = len(y) - len(found.y_train) - len(found.y_test)
    assert left >= len(counts)  # the validation's


def test_split_draws_from_the_seed_and_refuses_what_cannot_be() -> None:
    x, y = np.arange(60)[:, None], np.arange(60) % 3
    first, again, other = (run("split", x, x[:0], y, y[:0], seed) for seed in (1, 1, 2))
    assert np.array_equal(first.x_train, again.x_train)
    assert not np.array_equal(first.x_train, other.x_train)
    with pytest.raises(StepError, match="class 2 into every part: it has 1 samples"):
        run("split", x[:7], x[:0], np.array([0, 0, 0, 1, 1, 1, 2]), y[:0])
    with pytest.raises(StepError, match="both need some"):
        run("split?train=0.9&validation=0.1", x, x[:0], y, y[:0])
    with pytest.raises(StepError, match="needs classes"):
        run("split", x, x[:0], y / 2, y[:0] / 2)
