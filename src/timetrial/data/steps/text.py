"""Text as whole numbers: words by how often they are used, and streams of characters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from timetrial.data.samples import Array, Samples
from timetrial.data.steps.base import Apply, Random, Step, option, step
from timetrial.spec.network import Network
from timetrial.spec.shapes import Shape, describe

_TAG = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def words_of(text: str) -> list[str]:
    """Runs of letters and digits in small letters, apostrophes within; tags are left out."""
    return _WORD.findall(_TAG.sub(" ", text).lower())


class _Tokens(Step):
    """Vocabulary and length are the network's unless they are written."""

    loose = True
    vocabulary: int
    length: int

    def completed(self, network: Network) -> Step:
        known = {"vocabulary": network.input.tokens, "length": network.input.shape[0]}
        return replace(self, **{key: value for key, value in known.items() if getattr(self, key) is None})


@step("words")
class Words(_Tokens):
    """Each word is its rank among the training texts' words, from 1 for the most frequent; all others are 0."""

    vocabulary: int = option(int, "different tokens, among them the 0", least=2)
    length: int = option(int, "tokens of a text", least=1)
    pad: str = option(str, "where zeros fill up a text that is too short", "before", choices=("before", "after"))
    keep: str = option(str, "the words that stay of a text that is too long", "last", choices=("last", "first"))

    def shape(self, before: Shape) -> Shape:
        self.need_rank(before, (0,), "texts")
        return (self.length,)

    def fitted(self, train: Array) -> Apply:
        if not isinstance(train[0], str):
            raise self.refuse(f"needs texts, but is given {train.dtype}")
        counts = Counter(word for text in train for word in words_of(text))
        ordered = sorted(counts, key=lambda word: (-counts[word], word))[: self.vocabulary - 1]
        ranks = {word: rank for rank, word in enumerate(ordered, 1)}
        return lambda texts: self._encoded(texts, ranks)

    def _encoded(self, texts: Array, ranks: Mapping[str, int]) -> Array:
        out = np.zeros((len(texts), self.length), np.int32)
        for row, text in zip(out, texts, strict=True):
            tokens = [ranks.get(word, 0) for word in words_of(text)]
            tokens = tokens[-self.length :] if self.keep == "last" else tokens[: self.length]
            if tokens:
                start = self.length - len(tokens) if self.pad == "before" else 0
                row[start : start + len(tokens)] = tokens
        return out


@step("next-character")
class NextCharacter(_Tokens):
    """A stream of characters in pieces: the target of each is the one after it. Characters are ranked as words are.

    Bytes that are in pieces already, with their targets, are only ranked.
    """

    first = True
    vocabulary: int = option(int, "different tokens, among them the 0 of all others", least=2)
    length: int = option(int, "characters of a piece", least=1)

    def shape(self, before: Shape) -> Shape:
        if before not in ((), (self.length,)):
            raise self.refuse(
                f"needs a stream of characters or pieces of {self.length}, but is given {describe(before)}"
            )
        return (self.length,)

    def run(self, samples: Samples, random: Random) -> Samples:
        train, test = samples.x_train, samples.x_test
        if train.dtype.kind not in "ui" or train.max() > 255:
            raise self.refuse(f"needs bytes, but is given {train.dtype}")
        ranks = self._ranks(train)
        if train.ndim == 2:
            x_train, y_train, x_test, y_test = (ranks[a] for a in (train, samples.y_train, test, samples.y_test))
        else:
            (x_train, y_train), (x_test, y_test) = (self._pieces(ranks[stream]) for stream in (train, test))
        if not len(x_train):
            raise self.refuse(f"needs more than {self.length} characters, but is given {len(train)}")
        return replace(samples, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)

    def _ranks(self, train: Array) -> Array:
        counts = np.bincount(train.reshape(-1), minlength=256)
        ordered = np.argsort(-counts, kind="stable")[: min(self.vocabulary - 1, np.count_nonzero(counts))]
        ranks = np.zeros(256, np.int32)
        ranks[ordered] = np.arange(1, len(ordered) + 1)
        return ranks

    def _pieces(self, stream: Array) -> tuple[Array, Array]:
        count = max(0, (len(stream) - 1) // self.length)
        whole = count * self.length
        shape = (count, self.length)
        return stream[:whole].reshape(shape), stream[1 : whole + 1].reshape(shape)
