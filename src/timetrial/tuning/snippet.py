"""A ready study: what was proved, to copy into a file of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from timetrial import zoo
from timetrial.spec.recipe import Recipe
from timetrial.spec.trial import Settings, Task, Trial

CHANGED = ("batch", "precision")  # of a recipe; epochs and samples of the short training are no part of the answer


def ready(trials: Mapping[Task, Trial], name: str = "tuned") -> list[str]:
    """A study in YAML for each way to run; tasks that run alike share one."""
    found: dict[str, tuple[dict[str, Any], list[Task]]] = {}
    for task, trial in trials.items():
        content = _content(trial)
        found.setdefault(repr(content), (content, []))[1].append(task)
    names = [name] if len(found) == 1 else [f"{name}-{'-'.join(tasks)}" for _, tasks in found.values()]
    return [
        _text({"study": title, **content, "tasks": tasks})
        for title, (content, tasks) in zip(names, found.values(), strict=True)
    ]


def _content(trial: Trial) -> dict[str, Any]:
    own, network = _own(trial)
    return {
        **network,
        "engines": [trial.engine],
        "placements": [str(trial.placement)],
        "data": trial.dataset,
        **({} if trial.preprocessing is None else {"preprocessing": list(trial.preprocessing)}),
        **_part("recipe", _differences(trial.recipe, own, CHANGED)),
        **_part("settings", _differences(trial.settings, Settings(), Settings.model_fields)),
    }


def _own(trial: Trial) -> tuple[Recipe, dict[str, Any]]:
    """The recipe that the model has by itself, and how a study names it: the zoo's by name, another one written out."""
    try:
        model = zoo.find(trial.model)
    except ValueError:
        written = trial.network.model_dump(mode="json", exclude_defaults=True)
        return Recipe(), {"networks": [{**written, "name": trial.network.name}]}
    return model.recipe, {"models": [trial.model]}


def _differences(part: Any, usual: Any, names: Iterable[str]) -> dict[str, Any]:
    pairs = ((name, getattr(part, name)) for name in names)
    return {name: value for name, value in pairs if value != getattr(usual, name)}


def _part(name: str, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values} if values else {}


def _text(content: dict[str, Any]) -> str:
    import yaml

    text: str = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110)
    return text
