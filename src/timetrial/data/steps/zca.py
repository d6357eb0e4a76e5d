"""Whitening: uncorrelated values of equal variance that stay as near to the image as they can (ZCA)."""

from __future__ import annotations

import numpy as np

from timetrial.data.samples import Array
from timetrial.data.steps.base import Apply, Step, by_parts, option, parts, step
from timetrial.data.steps.statistics import mean_of
from timetrial.spec.shapes import Shape, elements

MOST = 12_288  # a 64x64 colour image; the work grows with the third power
ROWS = 1024  # products are added in single precision over so many samples


@step("zca")
class Zca(Step):
    """(x - mean) U (S + epsilon)^-1/2 U', where U S U' is the covariance of the training samples."""

    epsilon: float = option(float, "added to each variance, so that rounding is not blown up", default=1e-5, least=0)

    def shape(self, before: Shape) -> Shape:
        if elements(before) > MOST:
            raise self.refuse(f"is given {elements(before):,} values a sample, more than {MOST:,}; make them smaller")
        return before

    def fitted(self, train: Array) -> Apply:
        mean = mean_of(train).reshape(-1).astype(np.float32)
        matrix = whitening(covariance(train, mean), self.epsilon)

        def whitened(x: Array) -> Array:
            return ((x.reshape(len(x), -1) - mean) @ matrix).reshape(x.shape)

        return lambda x: by_parts(x, x.shape[1:], whitened, ROWS)


def covariance(x: Array, mean: Array) -> Array:
    """Products in single precision, which is where the time goes, added up in double."""
    total = np.zeros((mean.size, mean.size))
    for some in parts(x, ROWS):
        centred = np.asarray(x[some], np.float32).reshape(-1, mean.size) - mean
        total += centred.T @ centred
    total /= len(x)
    return total


def whitening(covariance: Array, epsilon: float) -> Array:
    """A direction without variance (of a pixel that is always black, say) is left out, not divided by zero."""
    variances, directions = np.linalg.eigh(covariance)
    variances = np.maximum(variances, 0.0)
    least = variances[-1] * len(variances) * np.finfo(np.float32).eps ** 2
    there = variances + epsilon > least
    factors = np.where(there, 1 / np.sqrt(np.where(there, variances + epsilon, 1.0)), 0.0)
    directions = directions.astype(np.float32)
    matrix: Array = (directions * factors.astype(np.float32)) @ directions.T
    return matrix
