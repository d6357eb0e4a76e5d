"""An hour of radar readings above a rain gauge: grouped into sequences, brought to physical scales, filled up.

A raw record is the number of its sequence and 22 attributes; many are missing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from timetrial.data.samples import Array, Samples
from timetrial.data.steps.base import Random, Step, by_parts, option, step
from timetrial.spec.network import Network
from timetrial.spec.shapes import Shape

MEASURED = ("Ref", "RefComposite", "RhoHV", "Zdr", "Kdp")
PLACES = ("", "_5x5_10th", "_5x5_50th", "_5x5_90th")
ATTRIBUTES = ("minutes_past", "radardist_km", *(name + place for name in MEASURED for place in PLACES))


def columns(*names: str) -> list[int]:
    """Where the four attributes of each measured quantity stand."""
    return [ATTRIBUTES.index(name + place) for name in names for place in PLACES]


@step("group")
class Group(Step):
    """Sequences of one length, from such of different lengths or from records with the sequence's number before them.

    One that is too short is filled up with missing readings, one that is too long loses its last. Of records, those
    with the same number are a sequence, in the order they come; its target is the first one's.
    """

    first = True
    missing = True
    loose = True
    steps: int = option(int, "readings of a sequence", least=1)

    def completed(self, network: Network) -> Step:
        return self if self.steps is not None else replace(self, steps=network.input.shape[0])

    def shape(self, before: Shape) -> Shape:
        if not before:
            return self.steps, len(ATTRIBUTES)
        self.need_rank(before, (1,), "sequences, or records (the number of a sequence, then attributes)")
        if before[0] < 2:
            raise self.refuse("needs attributes beside the number of the sequence")
        return self.steps, before[0] - 1

    def run(self, samples: Samples, random: Random) -> Samples:
        grouped = self._filled if samples.x_train.ndim == 1 else self._grouped
        x_train, y_train = grouped(samples.x_train, samples.y_train)
        x_test, y_test = grouped(samples.x_test, samples.y_test)
        return replace(samples, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)

    def _filled(self, x: Array, y: Array) -> tuple[Array, Array]:
        if len({tuple(sequence.shape[1:]) for sequence in x}) > 1 or any(sequence.ndim != 2 for sequence in x):
            raise self.refuse("needs sequences that all have the same attributes")
        width = x[0].shape[1] if len(x) else len(ATTRIBUTES)
        out = np.full((len(x), self.steps, width), np.nan, np.float32)
        for row, sequence in zip(out, x, strict=True):
            row[: len(sequence)] = sequence[: self.steps]
        return out, y

    def _grouped(self, x: Array, y: Array) -> tuple[Array, Array]:
        _, begins, which = np.unique(x[:, 0], return_index=True, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=len(begins)))
        sequences = np.empty(len(begins), object)
        for place, rows in zip(range(len(begins)), np.split(x[order, 1:], ends[:-1]), strict=False):
            sequences[place] = rows
        appearance = np.argsort(begins)
        filled, _ = self._filled(sequences[appearance], y)
        return filled.reshape(len(begins), *self.shape(x.shape[1:])), y[begins[appearance]]


class _OfSequences(Step):
    missing = True

    def shape(self, before: Shape) -> Shape:
        if len(before) != 2 or before[-1] != len(ATTRIBUTES):
            wants = f"sequences of {len(ATTRIBUTES)} radar attributes; write 'group' before it"
            raise self.refuse(f"needs {wants}, but is given {'x'.join(map(str, before))}")
        return before


@step("marshall-palmer")
class MarshallPalmer(_OfSequences):
    """Rain rate in mm/h from a reflectivity in dBZ: (10^(dBZ / 10) / 200)^(1 / 1.6)."""

    of: str = option(
        str, "the reflectivity", "RefComposite", choices=("RefComposite", "Ref", "both")
    )  # the published table gives dBZ as the unit of RefComposite only

    def applied(self, x: Array) -> Array:
        where = columns("Ref", "RefComposite") if self.of == "both" else columns(self.of)
        out = x.copy()
        out[..., where] = (10 ** (x[..., where] / 10) / 200) ** (1 / 1.6)
        return out


@step("linearise")
class Linearise(_OfSequences):
    """A ratio from decibels: 10^(dB / 10), of the four attributes Zdr."""

    def applied(self, x: Array) -> Array:
        out, where = x.copy(), columns("Zdr")
        out[..., where] = 10 ** (x[..., where] / 10)
        return out


@step("length-and-mean")
class LengthAndMean(_OfSequences):
    """Two attributes more in each record: how many its sequence has, and the mean of its attributes that are there."""

    def shape(self, before: Shape) -> Shape:
        return before[0], super().shape(before)[1] + 2

    def applied(self, x: Array) -> Array:
        return by_parts(x, self.shape(x.shape[1:]), _described)


def _described(x: Array) -> Array:
    known = ~np.isnan(x)
    count = known.sum(2, keepdims=True)
    mean = np.where(known, x, 0).sum(2, keepdims=True, dtype=np.float64) / np.maximum(count, 1)
    read = count > 0
    lengths = np.broadcast_to(read.sum(1, keepdims=True), read.shape)
    return np.concatenate([x, np.where(read, lengths, np.nan), np.where(read, mean, np.nan)], axis=2)
