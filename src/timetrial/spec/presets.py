"""What the programs of the published studies had inside their times, engine by engine: pure data.

Only what differs from the defaults. A study whose text leaves something open is taken to have left its framework's own
default, and says so. What a preset sets is written into each trial; none of it is known to anybody but the expansion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

AS_PUBLISHED = "as-published"


@dataclass(frozen=True)
class Program:
    """How one of a study's programs went about it: settings, and what of the recipe was the program's own."""

    settings: Mapping[str, Any]
    recipe: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[str, ...] = ("train", "infer")


def _program(recipe: Mapping[str, Any] | None = None, /, **settings: Any) -> Program:
    """All were run with the threads and the allocator that they came with."""
    shipped = {"threads": "as-shipped", "allocator": "as-shipped"}
    return Program(MappingProxyType({**shipped, **settings}), MappingProxyType(dict(recipe or {})))


# `fit` over arrays: gives each batch from the host, shuffles in every epoch, and keeps the partial last batch.
_FIT = {"loop": "fit", "lap": "epoch", "feed": "batch", "shuffle": "inside"}
_SHUFFLED, _IN_ORDER = {"shuffle": True}, {"shuffle": False}
_KEEP, _DROP = {"last_batch": "keep"}, {"last_batch": "drop"}

# By study, then by engine; the first pattern that an engine matches is its program.
PRESETS: Mapping[str, Mapping[str, Program]] = MappingProxyType({
    # Theano's set lay in shared variables and was cut in the graph; TensorFlow was fed by feed_dict and tested once at
    # the end; Keras had validation_data, and labels as vectors.
    "libraries": {
        "theano": _program({**_IN_ORDER, **_DROP}, lap="epoch", evaluate="inside"),
        "tensorflow*": _program({**_SHUFFLED, **_DROP}, lap="epoch", feed="batch", shuffle="inside"),
        "keras*": _program({**_SHUFFLED, **_KEEP, "labels": "one_hot"}, **_FIT, evaluate="inside"),
    },
    # Errors are told of the end of the training; whether a test set was looked at meanwhile is not.
    "backends": {"keras*": _program({**_SHUFFLED, **_KEEP}, **_FIT)},
    # Perceptrons: slices in order by feed_dict, the last one shorter. The CNN: fit with a validation split.
    "solar": {
        "tensorflow*": _program({**_IN_ORDER, **_KEEP}, lap="epoch", feed="batch"),
        "keras*": _program({**_SHUFFLED, **_KEEP}, **_FIT, evaluate="inside"),
    },
    # Training epochs were timed apart from validation. How many workers is not told: DataLoader's default is none.
    "parallel": {
        "torch": _program(
            {**_SHUFFLED, **_KEEP}, lap="epoch", feed="loader", workers=0, shuffle="inside"
        ),
        "keras*": _program({**_SHUFFLED, **_KEEP}, **_FIT),
    },
    # Steps of a session that takes its batches out of an input queue: in TensorFlow 1 the study's own evaluation.
    "profiling": {
        "tensorflow1": replace(_program(feed="queue", compile="as-written"), tasks=("infer",)),
        "tensorflow*": _program(feed="loader"),
    },
})  # fmt: skip
# Of a prediction's lap there is no epoch, and nothing of one.
OF_EPOCHS = ("lap", "shuffle", "evaluate")


def program(study: str, engine: str, task: str = "train") -> Program:
    """Raises ValueError, with the remedy, where the study had none for this engine."""
    if study not in PRESETS:
        raise ValueError(f"it is none of a published study; use models of {', '.join(PRESETS)}, or leave out preset")
    plain = engine.partition("@")[0]
    for pattern, found in PRESETS[study].items():
        if fnmatchcase(plain, pattern) and task in found.tasks:
            return found
    had = ", ".join(PRESETS[study])
    raise ValueError(
        f"the study '{study}' had no program for {plain}, only for {had}; leave {plain} out, or write its settings out"
    )
