"""A trial: one fully determined combination of workload, engine, placement and settings. Its id is a hash of it all."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

from annotated_types import Ge
from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

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
    threads: Literal["limited", "as-shipped"] = "limited"  # as-shipped: as many as the engine takes by itself
    wait: Literal["default", "active", "passive"] = "default"  # of OpenMP's threads; passive with a tuned allocator
    layout: Literal["default", "channels_last", "channels_first"] = "default"  # of images, inside the engine
    update: Literal["default", "fused", "foreach"] = "default"  # how the optimiser is carried out
    xla_flags: str = ""  # what XLA is told before it starts
    # What stands inside the clock.
    lap: Literal["steps", "epoch"] = "steps"  # epoch: whole passes over the training data, told by the step
    # On the device before; given at each step; by a pipeline; out of a queue in the graph, and only evaluated.
    feed: Literal["resident", "batch", "loader", "queue"] = "resident"
    workers: Annotated[int, Ge(0)] = 1  # of the loader; 0: none beside the engine itself
    prefetch: Annotated[int, Ge(1)] = 2  # batches that each of them keeps ready
    shuffle: Literal["outside", "inside"] = "outside"  # an epoch's order and the gathering of its batches
    evaluate: Literal["outside", "inside"] = "outside"  # the test set after every epoch

    @model_validator(mode="after")
    def _go_together(self) -> Settings:
        if problem := next(_contradictions(self), None):
            raise ValueError(problem)
        return self


def _contradictions(given: Settings) -> Iterator[str]:
    for name in ("shuffle", "evaluate"):
        if getattr(given, name) == "inside" and given.lap != "epoch":
            yield f"{name}: inside belongs to an epoch, and a lap of steps has none; add lap: epoch"
    if given.shuffle == "inside" and given.feed == "resident" and given.loop != "fit":
        yield (
            "shuffle: inside gathers its batches while the clock runs, and with feed: resident they lie on the device "
            "before it does; use feed: batch or feed: loader"
        )
    if given.feed == "queue" and (given.lap, given.loop) != ("steps", "step"):
        yield "feed: queue is of single steps of an evaluation; leave out lap and loop, or use another feed"
    if given.feed != "loader" and (given.workers, given.prefetch) != (1, 2):
        yield "workers and prefetch are of the loader; add feed: loader"


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
    preset: str = ""  # the study whose program the settings follow; the id holds the settings themselves

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
            "preset": self.preset,
            **self.settings.model_dump(),
        }


_FIRST = frozenset({"loop", "compile", "allocator", "tf32", "deterministic"})  # settings that every id holds


@lru_cache(maxsize=4096)
def _text(part: BaseModel) -> str:
    values = part.model_dump(mode="json")
    if isinstance(part, Settings):  # one that came later is in the id where it is used: it changes none of the old ids
        values = {k: v for k, v in values.items() if k in _FIRST or v != Settings.model_fields[k].default}
    return json.dumps(values, sort_keys=True)
