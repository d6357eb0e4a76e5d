"""Steps that decide which samples there are, and which of them are for the test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from timetrial.data.samples import Array, Samples
from timetrial.data.steps.base import Random, Step, option, step


@step("split")
class Split(Step):
    """All samples divided anew, each class alike: for training, for validation (left out), the rest for the test."""

    first = True
    random = True
    missing = True
    loose = True
    train: float = option(float, "share for training", default=0.85, least=0)
    validation: float = option(float, "share for validation", default=0.02, least=0)

    def run(self, samples: Samples, random: Random) -> Samples:
        test = 1 - self.train - self.validation
        if not self.train or test <= 1e-9:
            raise self.refuse(f"leaves {self.train:g} for training and {max(test, 0):g} for the test; both need some")
        x, y = samples.x_train, samples.y_train
        if len(samples.x_test):
            x, y = np.concatenate([x, samples.x_test]), np.concatenate([y, samples.y_test])
        if y.ndim != 1 or y.dtype.kind not in "iu":
            raise self.refuse("divides each class alike, so it needs classes, but is given numbers as targets")
        train, _, held = self._parts(y, (self.train, self.validation, test), random)
        return replace(samples, x_train=x[train], y_train=y[train], x_test=x[held], y_test=y[held])

    def _parts(self, y: Array, shares: tuple[float, float, float], random: Random) -> list[Array]:
        """Which samples each part has, in random order. Every part with a share has at least one of each class."""
        chosen: list[list[Array]] = [[], [], []]
        for label in np.unique(y):
            own = random.permutation(np.flatnonzero(y == label))
            if len(own) < sum(share > 0 for share in shares):
                raise self.refuse(f"cannot put class {label} into every part: it has {len(own)} samples")
            for part, some in zip(chosen, np.split(own, np.cumsum(_counts(len(own), shares))[:-1]), strict=True):
                part.append(some)
        return [random.permutation(np.concatenate(part)) for part in chosen]


def _counts(total: int, shares: tuple[float, float, float]) -> list[int]:
    """Whole numbers nearest to the shares that add up to all; none is zero whose share is not."""
    counts = [max(int(total * share + 1e-9), int(share > 0)) for share in shares]
    rests = np.argsort([count - total * share for count, share in zip(counts, shares, strict=True)], kind="stable")
    for number in rests[: max(0, total - sum(counts))]:
        counts[number] += 1
    counts[int(np.argmax(counts))] += total - sum(counts)
    return counts
