"""From a grid to samples: what a network sees at one instant, and one sensor's irradiance a horizon later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.data.samples import Array, DataError
from timetrial.data.solar import maps, scale, sun, usable
from timetrial.data.solar.grid import SECOND, Floats, Grid, Times, when
from timetrial.data.solar.settings import ALL, LEFT_OUT, Settings
from timetrial.data.solar.usable import Indices

MOST_BYTES = 256 * 2**20  # of maps, where nothing else is asked for
OPEN_SKY = 20.0  # W/m² of a clear sky, below which an index would mean nothing


@dataclass(frozen=True)
class Part:
    """`seen` and `predicted` are times; labels and guesses are in the network's unit, flat: one number a sample."""

    x: Array
    y: NDArray[np.float32]
    seen: Times
    predicted: Times
    targets: NDArray[np.int64]  # columns of the grid
    guesses: dict[str, NDArray[np.float32]]  # what needs no network: persistence, smart persistence

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Parts:
    train: Part
    validation: Part
    test: Part
    scale: scale.Scale
    inputs: tuple[str, ...]  # sensors that are seen, where all samples see the same
    targets: tuple[str, ...]
    every: int


@dataclass(frozen=True)
class Composer:
    """Knows the grid and which of its sensors are seen for which target. `form`: rows and columns of a map, or None."""

    grid: Grid
    values: NDArray[np.float32]
    settings: Settings
    form: tuple[int, int] | None
    targets: tuple[int, ...]
    inputs: dict[int, Indices]  # by target

    def part(self, fitted: scale.Scale, seen: Indices, future: Indices) -> Part:
        """Every instant for every target, instants in order."""
        count = len(self.targets)
        x = np.stack([self._inputs(fitted, seen, target) for target in self.targets], axis=1)
        rows, ahead = np.repeat(seen, count), np.repeat(future, count)
        columns = np.tile(np.array(self.targets, np.int64), len(seen))
        return Part(
            x=x.reshape(len(rows), *x.shape[2:]),
            y=fitted.apply(self.values[ahead, columns]),
            seen=self.grid.times[rows],
            predicted=self.grid.times[ahead],
            targets=columns,
            guesses={name: fitted.apply(g) for name, g in self._guesses(rows, ahead, columns).items()},
        )

    def _inputs(self, fitted: scale.Scale, seen: Indices, target: int) -> NDArray[np.float32]:
        columns = self.inputs[target]
        rows = fitted.apply(self.values[np.ix_(seen, columns)])
        if self.form is None:
            return rows
        matrix = maps.weights(self.grid.metres[columns], *self.form, self.settings.maps, self.grid.source)
        return (rows @ matrix.T).reshape(len(rows), *self.form, 1)

    def _guesses(self, rows: Indices, ahead: Indices, columns: Indices) -> dict[str, Floats]:
        """Persistence: as now. Smart persistence: as cloudy as now, under the sun of then."""
        now = self.values[rows, columns].astype(np.float64)
        if not np.isfinite(self.grid.latitude).any():
            return {"persistence": now}
        clear = sun.clear_sky(sun.elevation(self.grid.times, *self.grid.place))
        bright = clear[rows] >= OPEN_SKY
        rise = np.divide(clear[ahead], clear[rows], out=np.ones(len(rows)), where=bright)
        return {"persistence": now, "smart persistence": now * rise}


def compose(grid: Grid, settings: Settings, form: tuple[int, int] | None = None) -> Parts:
    composer = _composer(grid, settings, form)
    bright = usable.daylight(grid, composer.values, settings) & _whole(composer)
    if not bright.any():
        raise DataError(f"{grid.source}: no instant by day has a value of every sensor; write missing=interpolate")
    every = settings.every or 1
    seen, future = usable.pairs(grid, bright, settings, every)
    if form and not settings.every:
        every = _affordable(len(seen) * len(composer.targets), form)
        seen, future = usable.pairs(grid, bright, settings, every)
    cuts = _split(grid, seen, future, settings)
    fitted = scale.fit(composer.values[np.ix_(cuts[0][0], _used(composer))], settings.scale, grid.source)
    cuts[0] = _drawn(*cuts[0], settings)
    train, validation, test = (composer.part(fitted, *cut) for cut in cuts)
    same = composer.inputs[composer.targets[0]] if len(composer.targets) == 1 or settings.rule == ALL else ()
    names = grid.sensors
    targets = tuple(names[i] for i in composer.targets)
    return Parts(train, validation, test, fitted, tuple(names[i] for i in same), targets, every)


def ask(
    grid: Grid,
    settings: Settings,
    fitted: scale.Scale,
    now: int,
    ahead: Sequence[int] = (1,),
    form: tuple[int, int] | None = None,
) -> Part:
    """The samples of one question: the values at `now` + each of `ahead` seconds, of every target of the settings.

    A network knows one horizon. For what is `ahead` of now it is therefore shown the grid of that time less the
    horizon, which must have been measured: no question reaches further ahead than the horizon.
    """
    composer = _composer(grid, settings, form)
    if too_far := [seconds for seconds in ahead if not 0 < seconds <= settings.horizon]:
        raise DataError(f"{too_far[0]} s ahead is not within the horizon of {settings.horizon} s")
    times = now + (np.array(ahead, np.int64) - settings.horizon) * SECOND
    rows = np.searchsorted(grid.times, times)
    for time, row in zip(times, rows, strict=True):
        if row == len(grid.times) or grid.times[row] != time:
            raise DataError(f"{grid.source}: has no measurement at {when(time)}, which this question is answered from")
    if np.isnan(composer.values[np.ix_(rows, _used(composer))]).any():
        raise DataError(f"{grid.source}: a value is missing at {when(times[0])} or after")
    return _unknown(composer.part(fitted, rows, rows), settings)


def _unknown(part: Part, settings: Settings) -> Part:
    """What is asked for lies in the future: there is no label yet."""
    nothing = np.full(len(part), np.nan, np.float32)
    return Part(part.x, nothing, part.seen, part.seen + settings.horizon * SECOND, part.targets, {})


def _composer(grid: Grid, settings: Settings, form: tuple[int, int] | None) -> Composer:
    targets = _targets(grid, settings.target)
    return Composer(grid, usable.mended(grid, settings), settings, form, targets, _seen(grid, settings, targets))


def _targets(grid: Grid, named: str) -> tuple[int, ...]:
    if not named:
        return (grid.central(),)
    if named == "all":
        return tuple(range(len(grid.sensors)))
    return tuple(dict.fromkeys(grid.column(name) for name in named.split("+")))


def _seen(grid: Grid, settings: Settings, targets: tuple[int, ...]) -> dict[int, Indices]:
    """Drawn once, from one order of all sensors: two targets see the same as far as they can."""
    order = np.random.default_rng([settings.seed, 0]).permutation(len(grid.sensors))
    found = {}
    for target in targets:
        allowed = order if settings.rule == ALL else order[order != target]
        wanted = settings.features or len(allowed)
        if wanted > len(allowed) or not wanted:
            rule = "" if settings.rule == ALL else f" with rule={LEFT_OUT}"
            raise DataError(
                f"{grid.source}: {max(wanted, 1)} features were asked for, but {len(allowed)} of its "
                f"{len(grid.sensors)} sensors can be seen{rule}"
            )
        found[target] = np.sort(allowed[:wanted])
    return found


def _used(composer: Composer) -> Indices:
    return np.unique(np.concatenate([*composer.inputs.values(), np.array(composer.targets)]))


def _whole(composer: Composer) -> NDArray[np.bool_]:
    missing: NDArray[np.bool_] = np.isnan(composer.values[:, _used(composer)])
    return np.logical_not(missing.any(axis=1))


def _affordable(samples: int, form: tuple[int, int]) -> int:
    return max(1, int(np.ceil(samples * 4 * form[0] * form[1] / MOST_BYTES)))


def _split(grid: Grid, seen: Indices, future: Indices, settings: Settings) -> list[tuple[Indices, Indices]]:
    """By time. What an earlier part predicts lies before anything that a later part sees."""
    count = len(seen)
    ends = [round(count * settings.train), round(count * (settings.train + settings.validation)), count]
    cuts, start = [], 0
    for name, end in zip(("training", "validation", "test"), ends, strict=True):
        part = slice(start, end)
        until = seen[end] if end < count else len(grid.times)
        kept = np.flatnonzero(future[part] < until)
        if not kept.size and (name != "validation" or settings.validation):
            raise DataError(
                f"{grid.source}: {count:,} samples with a gap of {settings.horizon} s between the parts leave none for "
                f"the {name}; use more data, a shorter horizon= or a smaller every="
            )
        cuts.append((seen[part][kept], future[part][kept]))
        start = end
    return cuts


def _drawn(seen: Indices, future: Indices, settings: Settings) -> tuple[Indices, Indices]:
    if not settings.take:
        return seen, future
    if settings.take > len(seen):
        raise DataError(f"take={settings.take} asks for more than the {len(seen):,} training samples that there are")
    chosen = np.sort(np.random.default_rng([settings.seed, 1]).choice(len(seen), settings.take, replace=False))
    return seen[chosen], future[chosen]


def describe(grid: Grid, parts: Parts, settings: Settings) -> dict[str, Any]:
    """What a record says about these samples."""
    spans = {"train": parts.train, "validation": parts.validation, "test": parts.test}
    return {
        "grid": {"source": grid.name, "sensors": len(grid.sensors), "instants": len(grid.times), **grid.station},
        "spans": {name: [when(p.seen[0]), when(p.predicted[-1]), len(p)] for name, p in spans.items() if len(p)},
        "scored": settings.score,
        "horizon_seconds": settings.horizon,
        "every_seconds": parts.every,
        "rule": settings.rule,
        "targets": list(parts.targets) if len(parts.targets) <= 10 else len(parts.targets),
        "scale": {"kind": settings.scale, "offset": parts.scale.offset, "unit": parts.scale.unit, "name": "W/m²"},
    }
