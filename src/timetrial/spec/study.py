"""The study file: a question, its axes, what to leave out, how often and in what order to run.

study: widths
models: [libraries/mlp-2x25, "backends/cnn-softmax?filters=2"]
engines: [torch, jax]
vary: {recipe.batch: [32, 64]}
repeat: 5
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

from annotated_types import Ge, Gt, Interval, Len
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from timetrial.spec.network import Network
from timetrial.spec.placement import AnyPlacement, Placement, written_out
from timetrial.spec.presets import OF_EPOCHS, program
from timetrial.spec.recipe import Recipe
from timetrial.spec.shapes import Positive
from timetrial.spec.trial import Amount, Settings, Task, Trial

DEFAULT = "default"  # as `data`: each model's own dataset
PUBLISHED = "published"  # among steps: those that each model was published with
RESERVED = "machines"  # beside the studies in a folder of records lie the inventories of machines


def _quantity(units: Mapping[str, int]) -> BeforeValidator:
    """A number, or text with one of the units."""

    def read(value: Any) -> Any:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(\w*)", value.strip()) if isinstance(value, str) else None
        return float(match[1]) * units[match[2]] if match and match[2] in units else value

    return BeforeValidator(read)


# `90`, `20m`, `1.5h`; `500M`, `8G`.
_TIMES = _quantity({"": 1, "s": 1, "m": 60, "min": 60, "h": 3600})
Seconds = Annotated[float, Gt(0), _TIMES]
Pause = Annotated[float, Ge(0), _TIMES]
Bytes = Annotated[
    float, Gt(0), _quantity({"": 1, **{p + b: 2**n for p, n in (("K", 10), ("M", 20), ("G", 30)) for b in ("", "B")}})
]
Seed = Annotated[int, Interval(ge=0, lt=2**32)]  # what every engine's random generator takes
Profile = Literal["quick", "normal", "publish"]
Names = Annotated[tuple[str, ...], Len(min_length=1)]


M = TypeVar("M", bound=BaseModel)


class StudyError(ValueError):
    """The study file cannot be used. Says the place in it and the remedy."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(_Model):
    timeout: Seconds = 600.0  # of one run
    memory: Bytes | None = None  # of one run; unless given, nine tenths of what the machine has free


class PowerModel(_Model):
    """Watts of the processors: at rest, and for each busy core beyond that."""

    idle: Annotated[float, Gt(0)]
    core: Annotated[float, Gt(0)]


class EnergyFrom(_Model):
    """Where energy comes from when it is not the machine's own counters; its figures are marked with it."""

    replay: str = ""  # a CSV file with the columns time, domain, joules
    model: PowerModel | None = None

    @model_validator(mode="after")
    def _one_at_most(self) -> EnergyFrom:
        if self.replay and self.model:
            raise ValueError("energy: replay a file or use a model, not both")
        return self


Measure = Literal["time", "memory", "energy", "limits", "profile"]


class Study(_Model):
    study: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    title: str = ""
    models: Names = ()
    networks: tuple[Network, ...] = ()  # written out in the study itself; used like models, by their names
    engines: Names
    placements: Annotated[tuple[AnyPlacement, ...], Len(min_length=1), BeforeValidator(written_out)] = (Placement(),)
    tasks: Annotated[tuple[Task, ...], Len(min_length=1)] = ("train",)
    data: str = "synthetic"
    preprocessing: tuple[str, ...] | None = None  # steps; the dataset's own unless given
    samples: Amount | None = None
    recipe: dict[str, Any] = {}  # replaces parts of each model's own recipe
    settings: Settings = Settings()
    preset: Literal["as-published"] | None = None  # what each engine's program had in the study that a model is of
    vary: dict[str, Annotated[tuple[Any, ...], Len(min_length=1)]] = {}
    exclude: tuple[dict[str, Any], ...] = ()
    repeat: Positive | None = None  # processes per cell, exactly; the profile decides unless given
    stopping: Literal["adaptive", "fixed"] = "adaptive"  # leave off early what is known well enough, or not
    budget: Seconds | None = None  # of the whole study; the cheapest answers first where it is too short for all
    cooldown: Pause = 0.0  # before each run but the first, so that the machine has cooled down
    anchor: bool = True  # one cell under a second name, so that the study knows its own noise
    measure: tuple[Measure, ...] = ()  # the profile's unless given; each in runs of its own
    energy: EnergyFrom = EnergyFrom()
    accuracy: bool | Literal["each-epoch"] = False  # train all epochs once per cell, and test: after all, or after each
    profile: Profile = "normal"
    seed: Seed = 1
    limits: Limits = Limits()

    @model_validator(mode="before")
    @classmethod
    def _one_for_a_list(cls, value: Any) -> Any:
        """`engines: torch` is `engines: [torch]`, and so with the other lists."""
        if not isinstance(value, Mapping):
            return value
        lists = ("models", "engines", "placements", "tasks", "exclude", "measure", "preprocessing")
        return {k: [v] if k in lists and isinstance(v, (str, Mapping)) else v for k, v in value.items()}

    @model_validator(mode="after")
    def _has_something_to_run(self) -> Study:
        if not self.models and not self.networks:
            raise ValueError("name at least one model under `models`, or write one under `networks`")
        if self.study == RESERVED:
            raise ValueError(f"'{RESERVED}' is a folder of the records; give the study another name")
        for path in self.vary:
            if not re.fullmatch(r"(recipe|settings|model)(\.\w+)+", path):
                raise ValueError(f"vary: '{path}' should start with recipe., settings. or model.")
        return self

    @model_validator(mode="after")
    def _networks_can_be_told_apart(self) -> Study:
        names = [network.name for network in self.networks]
        for network in self.networks:
            if names.count(network.name) > 1:
                raise ValueError(f"networks: two are named '{network.name}'; names must differ")
            if not network.layers:
                raise ValueError(f"networks: '{network.name}' has no layers; write at least one")
        return self


def load_study(path: Path) -> Study:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path}: is not a text file in UTF-8") from None
    try:
        content = yaml.load(text, _loader())
    except RecursionError:
        raise StudyError(f"{path}: not valid YAML: nested too deeply") from None
    except ValueError as error:  # of a date, for example, that is none
        raise StudyError(f"{path}: not valid YAML: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise StudyError(f"{path}{place}: not valid YAML: {problem}") from None
    return parse_study(content, str(path))


@cache
def _loader() -> Any:
    """YAML's safe loader, but a key that is there twice is a mistake: one of the two would silently not count."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"'{key.value}' is there twice", key.start_mark
                        )
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

    return Loader


def parse_study(content: Any, place: str) -> Study:
    from pydantic import ValidationError

    from timetrial.spec.errors import explain

    if not isinstance(content, Mapping):
        raise StudyError(f"{place}: a study is a list of `key: value` lines; see `timetrial run --help`")
    try:
        return Study.model_validate(dict(content))
    except ValidationError as error:
        raise StudyError(explain(error, Study, place)) from None


@dataclass(frozen=True)
class Resolved:
    """What a model's name stands for. `samples`: of the training set, where the model says how many; `dataset`: the one
    that it was published with."""

    network: Network
    recipe: Recipe
    samples: int | None = None
    dataset: str = ""
    preprocessing: tuple[str, ...] = ()  # as published


class Resolver(Protocol):
    """Finds a model by its name. The zoo is behind one; the language itself does not know it."""

    def resolve(self, name: str, options: Mapping[str, Any]) -> Resolved: ...


def expand(study: Study, resolver: Resolver) -> list[Trial]:
    """Every trial of the study, exclusions left out, in a fixed order without repeats."""
    own = {network.name: network for network in study.networks}
    trials: dict[str, Trial] = {}
    for model, variation in product((*study.models, *own), _variations(study.vary)):
        found = _workload(model, own, resolver, variation, study.recipe)
        label = _label(model, _under(variation, "model"))
        dataset = _dataset(study, label, found)
        conditions = cache(partial(_conditions, study, model, found.recipe, variation))
        for engine, placement, task in product(study.engines, study.placements, study.tasks):
            settings, recipe, preset = conditions(engine, task)
            trial = Trial(
                model=label, network=found.network, recipe=recipe, dataset=dataset, task=task, engine=engine,
                placement=placement, settings=settings, seed=study.seed, samples=study.samples or found.samples,
                variant=_variant(_under(variation, "recipe")), preset=preset,
                preprocessing=_steps(study.preprocessing, found.preprocessing),
            )  # fmt: skip
            if not any(_matches(trial.coordinates, rule) for rule in study.exclude):
                trials.setdefault(trial.id, trial)
    if not trials:
        raise StudyError(f"study '{study.study}': nothing is left to run after its exclusions")
    return list(trials.values())


def _conditions(
    study: Study, model: str, recipe: Recipe, variation: Mapping[str, Any], engine: str, task: Task
) -> tuple[Settings, Recipe, str]:
    """Settings and recipe of one engine, and the study whose program they follow. What is written in the study file
    goes before what a preset says."""
    varied = _under(variation, "settings")
    if study.preset is None:
        settings = _replaced(study.settings, varied, "settings")
        if settings.lap == "epoch" and task == "infer":
            raise StudyError("settings: lap: epoch is of training; leave the task infer out, or lap: epoch")
        return settings, recipe, ""
    published = model.partition("/")[0]
    try:
        found = program(published, engine, task)
    except ValueError as error:
        raise StudyError(f"preset: model '{model}': {error}") from None
    asked = study.settings.model_dump(include=study.settings.model_fields_set)
    kept = {k: v for k, v in found.settings.items() if task == "train" or k not in OF_EPOCHS}
    own = {k: v for k, v in found.recipe.items() if k not in {*study.recipe, *_under(variation, "recipe")}}
    return _replaced(Settings(), {**kept, **asked, **varied}, "settings"), _replaced(recipe, own, "recipe"), published


def _dataset(study: Study, model: str, found: Resolved) -> str:
    if study.data != DEFAULT:
        return study.data
    if not found.dataset:
        raise StudyError(f"data: '{DEFAULT}' is each model's own dataset, and model '{model}' has none; name one")
    return found.dataset


def _variations(vary: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for values in product(*vary.values()):
        yield dict(zip(vary, values, strict=True))


def _under(variation: Mapping[str, Any], part: str) -> dict[str, Any]:
    return {path.partition(".")[2]: value for path, value in variation.items() if path.startswith(part + ".")}


def _workload(
    model: str,
    own: Mapping[str, Network],
    resolver: Resolver,
    variation: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> Resolved:
    if model in own:
        if options := _under(variation, "model"):
            unknown = f"model.{next(iter(options))}"
            raise StudyError(f"model '{model}' is written out in the study and has no options; leave out {unknown}")
        found = Resolved(own[model], Recipe())
    else:
        try:
            found = resolver.resolve(model, _under(variation, "model"))
        except ValueError as error:
            raise StudyError(f"model '{model}': {error}") from None
    recipe = _replaced(found.recipe, changes, "recipe")
    return replace(found, recipe=_replaced(recipe, _under(variation, "recipe"), "recipe"))


def _replaced(part: M, changes: Mapping[str, Any], name: str) -> M:
    """`part` with some fields changed; a dotted path reaches into a field (`optimiser.rate`)."""
    from pydantic import ValidationError

    from timetrial.spec.errors import explain

    if not changes:
        return part
    values = part.model_dump()
    for path, value in changes.items():
        target = values
        *outer, last = path.split(".")
        for step in outer:
            inner = target.get(step)
            if not isinstance(inner, dict):
                raise StudyError(f"{name}: '{step}' has no parts, so there is no '{path}'; give '{step}' whole")
            target = inner
        replaces = isinstance(value, Mapping) and isinstance(target.get(last), dict)
        same_kind = replaces and value.get("kind", target[last].get("kind")) == target[last].get("kind")
        target[last] = {**target[last], **value} if same_kind else value
    try:
        return type(part).model_validate(values)
    except ValidationError as error:
        raise StudyError(explain(error, type(part), name)) from None


def _steps(asked: tuple[str, ...] | None, published: tuple[str, ...]) -> tuple[str, ...] | None:
    if asked is None:
        return None
    return tuple(step for word in asked for step in (published if word == PUBLISHED else (word,)))


def _label(model: str, options: Mapping[str, Any]) -> str:
    if not options:
        return model
    joint = "&" if "?" in model else "?"
    return model + joint + "&".join(f"{key}={value}" for key, value in options.items())


def _variant(changes: Mapping[str, Any]) -> str:
    """Batch and precision are coordinates of their own; whatever else of the recipe is varied is named here."""
    return ", ".join(f"{path} {value}" for path, value in changes.items() if path not in ("batch", "precision"))


def _matches(coordinates: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    """A rule excludes a trial when all its keys match; values may be lists and may hold * and ?."""
    for key in rule:
        if key not in coordinates:
            raise StudyError(f"exclude: there is no '{key}'; use {', '.join(coordinates)}")
    for key, wanted in rule.items():
        choices = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        if not any(fnmatchcase(str(coordinates[key]), str(choice)) for choice in choices):
            return False
    return True
