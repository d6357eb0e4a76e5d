"""A proposal: a change of settings, recipe, placement, engine or model, as paths and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from timetrial import zoo
from timetrial.spec.placement import Placement
from timetrial.spec.recipe import Recipe
from timetrial.spec.trial import Settings, Task, Trial

Changes = tuple[tuple[str, Any], ...]  # `settings.layout`, `recipe.precision`, `placement`, `engine`, `model`
BOTH: tuple[Task, ...] = ("train", "infer")


@dataclass(frozen=True)
class Proposal:
    """`exact`: the same function but for rounding. `joins`: may be combined with others. `tried`: only shown if not."""

    rule: str
    name: str
    why: str
    changes: Changes
    tasks: tuple[Task, ...] = BOTH
    exact: bool = True
    joins: bool = True
    tried: bool = True
    predicted: float | None = None  # speed-up by the count of operations

    def conflicts(self, others: tuple[Proposal, ...]) -> bool:
        """Whether one of the others already says something else about the same thing."""
        mine = dict(self.changes)
        return any(path in mine for other in others for path, _ in other.changes)


def changed(trial: Trial, *proposals: Proposal) -> Trial:
    """The trial with all of their changes."""
    values = dict(change for proposal in proposals for change in proposal.changes)
    update: dict[str, Any] = {}
    if "engine" in values:
        update["engine"] = values["engine"]
    if "placement" in values:
        update["placement"] = Placement.parse(values["placement"])
    if "model" in values:
        update.update(model=values["model"], network=zoo.find(values["model"]).network)
    if settings := _under(values, "settings"):
        update["settings"] = Settings.model_validate({**trial.settings.model_dump(), **settings})
    if recipe := _under(values, "recipe"):
        update["recipe"] = Recipe.model_validate({**trial.recipe.model_dump(), **recipe})
    return replaced(trial, **update)


def replaced(trial: Trial, **values: Any) -> Trial:
    """Made anew: a copy would keep the id of the trial it was copied from."""
    return Trial(**{**{name: getattr(trial, name) for name in Trial.model_fields}, **values})


def _under(values: Mapping[str, Any], part: str) -> dict[str, Any]:
    return {path.partition(".")[2]: value for path, value in values.items() if path.startswith(part + ".")}
