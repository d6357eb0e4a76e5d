"""A chain of steps: read from text and checked before anything is loaded, then run from the raw samples on."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from timetrial.data.samples import Array, Samples
from timetrial.data.steps.base import STEPS, Step, StepError
from timetrial.spec.network import Network
from timetrial.spec.shapes import Shape
from timetrial.zoo.entry import OptionError


@dataclass(frozen=True)
class Chain:
    """Steps in their order. An empty chain leaves the samples as they are read."""

    steps: tuple[Step, ...] = ()

    @property
    def random(self) -> bool:
        return any(step.random for step in self.steps)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(map(str, self.steps))

    def shape(self, before: Shape) -> Shape:
        """Of one sample after all steps, from that of a raw one."""
        for step in self.steps:
            before = step.shape(before)
        return before

    def completed(self, network: Network) -> Chain:
        whole = Chain(tuple(step.completed(network) for step in self.steps))
        for step in whole.steps:
            for missing in (o.name for o in step.options() if getattr(step, o.name) is None):
                raise step.refuse(f"needs `{missing}`: write '{step.name}?{missing}=…'")
        return whole

    def run(self, samples: Samples, seed: int, cut: Callable[[Samples], Samples] = lambda samples: samples) -> Samples:
        """`cut` takes some of the samples, after the steps that decide which there are, before those that learn."""
        arranging = [step.first for step in self.steps].count(True)
        for number, step in enumerate(self.steps):
            if number == arranging:
                samples = cut(samples)
            _check(step, samples)
            samples = step.run(samples, np.random.default_rng((seed, number)))
        samples = cut(samples) if arranging == len(self.steps) else samples
        return _as_numbers(samples) if self.steps else samples


def read_chain(texts: Sequence[str]) -> Chain:
    steps = tuple(map(read_step, texts))
    for before, after in pairwise(steps):
        if after.first and not before.first:
            raise StepError(f"step '{after.name}' decides which samples there are; write it before '{before.name}'")
    return Chain(steps)


def read_step(text: str) -> Step:
    """`gcn`, `zca?epsilon=1e-5`, `resize?height=48&width=48`."""
    name, _, query = text.partition("?")
    if name not in STEPS:
        raise StepError(f"there is no step '{name}'; {_advice(name)}")
    cls = STEPS[name]
    known = {option.name: option for option in cls.options()}
    given = {}
    for part in filter(None, query.split("&")):
        word, equals, value = part.partition("=")
        if not equals:
            raise StepError(f"step '{text}': write options as 'name?option=value&option=value', not '{part}'")
        if word not in known:
            has = ", ".join(map(str, known.values())) or "none"
            raise StepError(f"step '{name}' has no option '{word}'; its options: {has}")
        if word in given:
            raise StepError(f"step '{text}': option '{word}' is there twice")
        try:
            given[word] = known[word].read(value)
        except OptionError as error:
            raise StepError(f"step '{text}': {error}") from None
    return cls(**given)


def _advice(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), STEPS, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(sorted(STEPS))


def _check(step: Step, samples: Samples) -> None:
    """What no step could make sense of is refused here, so that no step has to look."""
    if not len(samples.x_train):
        raise step.refuse("has no training samples to learn from")
    if samples.x_train.ndim < 2 and not step.loose:
        raise step.refuse("needs samples that are arrays of one shape, not texts, streams or sequences; see 'words'")
    step.shape(tuple(samples.x_train.shape[1:]))
    for x, words in ((samples.x_train, "training"), (samples.x_test, "test")):
        if not step.missing and x.dtype.kind == "f" and not _finite(x):
            raise step.refuse(f"is given {words} samples with missing or infinite values; write 'impute' before it")


def _finite(x: Array) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is finite only where all its terms are
        return bool(np.isfinite(np.sum(x, dtype=np.float64)))


def _as_numbers(samples: Samples) -> Samples:
    """What is still bytes after the last step keeps its values: only `scale` divides by 255."""
    if samples.x_train.dtype != np.uint8:
        return samples
    x_train, x_test = (np.asarray(x, np.float32) for x in (samples.x_train, samples.x_test))
    return replace(samples, x_train=x_train, x_test=x_test)
