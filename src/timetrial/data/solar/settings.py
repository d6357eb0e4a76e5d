"""The options of a solar dataset, read from its name as a model's are: `solar-synthetic?horizon=30&target=3`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from timetrial.data.samples import DataError
from timetrial.data.solar.synthetic import Scene
from timetrial.zoo.entry import Option, OptionError, Value

ALL, LEFT_OUT = "all", "leave-target-out"


@dataclass(frozen=True)
class Settings:
    """From a grid to samples. Whatever is fitted is fitted on the training part."""

    horizon: int = 10
    target: str = ""
    rule: str = ALL
    features: int = 0
    every: int = 0
    take: int = 0
    seed: int = 1
    elevation: float = 5.0
    least: float = 0.0
    missing: str = "drop"
    gap: int = 5
    scale: str = "minmax"
    train: float = 0.7
    validation: float = 0.1
    score: str = "test"
    maps: str = "linear"

    def __post_init__(self) -> None:
        if not (0 < self.train < 1 and self.validation >= 0 and self.train + self.validation < 1):
            raise DataError(
                f"train={self.train:g} and validation={self.validation:g} leave nothing for the test; "
                "the shares of the three parts add up to 1"
            )
        if self.score == "validation" and not self.validation:
            raise DataError("score=validation wants a validation part; set validation to more than 0")


_MEANING = {
    "horizon": "seconds from what a network sees to what it predicts",
    "target": "the sensor to predict; several with + between them, or all; empty: the one nearest to the middle",
    "rule": "which sensors a network sees",
    "features": "so many of these sensors, drawn by the seed; 0: all of them",
    "every": "seconds between two samples; 0: one, or for maps as many as keep them within 256 MiB",
    "take": "so many of the training samples, drawn by the seed; 0: all of them",
    "seed": "of what is drawn, and of a synthetic grid's weather",
    "elevation": "the least height of the sun in degrees; -90: also at night",
    "least": "the least mean irradiance of all sensors in W/m²",
    "missing": "what is done about missing values: drop the instant, interpolate in time, or refuse the file",
    "gap": "the longest gap in seconds that is interpolated",
    "scale": "how irradiance becomes what a network sees, fitted on the training part",
    "train": "share of the samples, from the first on",
    "validation": "share of the samples after those of the training; the rest is the test",
    "score": "the part that a trained network is tested on",
    "maps": "how a map is made between the sensors; beyond them each place has what the nearest sensor has",
}
_CHOICES: dict[str, tuple[Value, ...]] = {
    "rule": (ALL, LEFT_OUT),
    "missing": ("drop", "interpolate", "refuse"),
    "scale": ("minmax", "standard", "none"),
    "score": ("test", "validation"),
    "maps": ("nearest", "linear", "rbf"),
}
_LEAST = {"horizon": 1, "features": 0, "every": 0, "take": 0, "seed": 0, "elevation": -90, "gap": 1}
_SCENE = {
    "sensors": "how many sensors there are; 0: as many as the network takes, 50 for maps",
    "days": "how many days",
    "start": "the first day",
    "latitude": "of the place",
    "longitude": "of the place",
    "extent": "metres from side to side of the square that the sensors stand on",
    "wind": "metres a second",
    "cover": "share of the sky in clouds",
}


def _options(kind: type[Settings] | type[Scene], meaning: dict[str, str]) -> tuple[Option, ...]:
    defaults: dict[str, Any] = {f.name: f.default for f in fields(kind) if f.name in meaning}
    return tuple(
        Option(name, type(value), meaning[name], value, choices=_CHOICES.get(name, ()), least=_LEAST.get(name))
        for name, value in defaults.items()
    )


COMPOSING = _options(Settings, _MEANING)
PAINTING = tuple(replace(o, default=0, least=0) if o.name == "sensors" else o for o in _options(Scene, _SCENE))


def parse(name: str, options: Sequence[Option]) -> dict[str, Any]:
    """The options written in a dataset's name after `?`, those not written at their defaults."""
    known = {option.name: option for option in options}
    found = {option.name: option.default for option in options}
    for part in filter(None, name.partition("?")[2].split("&")):
        key, equals, text = part.partition("=")
        if not equals or key not in known:
            problem = f"has no option '{key}'" if equals else f"has '{part}', which is no option=value"
            raise DataError(f"dataset '{name}' {problem}; its options are {', '.join(known)}")
        try:
            found[key] = known[key].read(text)
        except OptionError as error:
            raise DataError(f"dataset '{name}': {error}") from None
    return found


def title(base: str, options: Sequence[Option], values: dict[str, Any]) -> str:
    """The one way to write these options: in their order, defaults left out."""
    written = [f"{o.name}={_text(values[o.name])}" for o in options if values[o.name] != o.default]
    return f"{base}?{'&'.join(written)}" if written else base


def settings(values: dict[str, Any]) -> Settings:
    return Settings(**{f.name: values[f.name] for f in fields(Settings)})


def scene(values: dict[str, Any], sensors: int = Scene.sensors) -> Scene:
    """`sensors` counts where the name does not say how many."""
    given = {f.name: values[f.name] for f in fields(Scene) if f.name in values}
    return Scene(**{**given, "sensors": given["sensors"] or sensors})


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
