"""A trial: one fully determined combination of workload, engine, placement and settings. Its id is a hash of it all."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from timetrial.spec.network import Network
from timetrial.spec.placement import AnyPlacement
from timetrial.spec.recipe import Recipe
from timetrial.spec.shapes import Natural

Task = Literal["train", "infer"]


def _amount(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    share = re.fullmatch(r"(\d{1,2}(?:\.\d+)?|100)%", value) if isinstance(value, str) else None
    if not whole and (share is None or float(share[1]) == 0):
        raise ValueError(f"give a number above 0, or a share of the training samples such as 33%, not {value!r}")
    return value


# How many of the training samples: a number, or a share of them.
Amount = Annotated[int | str, BeforeValidator(_amount)]


class Settings(BaseModel):
    """What an engine may be told, equal for all unless a study varies it. Each is read back and recorded."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    loop: Literal["step", "fit"] = "step"
    compile: str = "default"
    allocator: Literal["tuned", "as-shipped"] = "tuned"
    tf32: bool = False
    deterministic: bool = False
    flush: bool | None = None  # numbers below the normal range taken for zero; None: as the engine comes


class Trial(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    model: str
    network: Network
    recipe: Recipe
    dataset: str
    task: Task
    engine: str  # with its version where one was asked for: torch@2.9.1
    placement: AnyPlacement
    settings: Settings = Settings()
    seed: Natural = 1
    samples: Amount | None = None
    preprocessing: tuple[str, ...] | None = None  # steps; None is the dataset's own
    variant: str = ""  # in words, what a study varies of the recipe; the id holds the recipe itself

    @cached_property
    def id(self) -> str:
        parts = (
            _text(self.network),
            _text(self.recipe),
            self.dataset,
            self.task,
            self.engine,
            str(self.placement),
            _text(self.settings),
            str(self.seed),
            str(self.samples),
            *(() if self.preprocessing is None else (" | ".join(self.preprocessing),)),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    @property
    def coordinates(self) -> dict[str, Any]:
        """What a person names the trial by; exclusions match against these."""
        return {
            "model": self.model,
            "engine": self.engine,
            "placement": str(self.placement),
            "task": self.task,
            "dataset": self.dataset,
            "preprocessing": ", ".join(self.preprocessing or ()),
            "batch": self.recipe.batch,
            "precision": self.recipe.precision,
            "variant": self.variant,
            "seed": self.seed,
            **self.settings.model_dump(),
        }


@lru_cache(maxsize=4096)
def _text(part: BaseModel) -> str:
    # A setting that is left as the engine has it is no part of the id: one that is new changes none of the old ids.
    return json.dumps(part.model_dump(mode="json", exclude_none=isinstance(part, Settings)), sort_keys=True)
