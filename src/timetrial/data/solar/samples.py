"""What a network and its recipe get of a solar dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timetrial.data.samples import DataError, Samples, Wanted
from timetrial.data.solar import entries, synthetic
from timetrial.data.solar.compose import Part, Parts, compose, describe
from timetrial.data.solar.grid import Grid
from timetrial.data.solar.settings import COMPOSING, LEFT_OUT, PAINTING, Settings, parse, scene, settings
from timetrial.spec.shapes import Shape
from timetrial.spec.shapes import describe as written

if TYPE_CHECKING:
    from timetrial.data.registry import Dataset


def samples_of(dataset: Dataset, wanted: Wanted) -> Samples:
    shape = wanted.network.input.shape
    form = _form(shape)
    grid, chosen = opened(dataset, shape)
    return _samples(grid, chosen, compose(grid, chosen, form))


def opened(dataset: Dataset, shape: Shape) -> tuple[Grid, Settings]:
    """The grid, and what its name asks for; a synthetic one has as many sensors as a network of this input takes."""
    if not dataset.synthetic:
        return entries.open_grid(dataset.name), settings(parse(dataset.name, COMPOSING))
    values = parse(dataset.name, (*COMPOSING, *PAINTING))
    chosen = settings(values)
    return synthetic.make(scene(values, _sensors(chosen, shape))), chosen


def _form(shape: Shape) -> tuple[int, int] | None:
    """A network over one number a sensor takes rows, one over a plane takes maps."""
    if len(shape) == 1:
        return None
    if len(shape) == 2 or (len(shape) == 3 and shape[2] == 1):
        return shape[0], shape[1]
    raise DataError(
        f"solar datasets have rows of sensors or maps with one channel, but the network takes {written(shape)}; "
        "give it an input of [50] or [50, 50, 1]"
    )


def _sensors(chosen: Settings, shape: Shape) -> int:
    """As many as the network sees, and the target where that is left out."""
    if len(shape) > 1 or chosen.features:
        return synthetic.Scene.sensors
    return shape[0] + (chosen.rule == LEFT_OUT)


def _samples(grid: Grid, chosen: Settings, parts: Parts) -> Samples:
    scored: Part = parts.validation if chosen.score == "validation" else parts.test
    return Samples(
        parts.train.x,
        parts.train.y.reshape(-1, 1),  # published flat; every engine's loss wants the shape of the output
        scored.x,
        scored.y.reshape(-1, 1),
        guesses={name: guess.reshape(-1, 1) for name, guess in scored.guesses.items()},
        unit=("W/m²", parts.scale.unit),
        facts=describe(grid, parts, chosen),
    )
