"""The timed region in words, made from the settings that draw it: what stands inside the clock, and in what order."""

from __future__ import annotations

from collections.abc import Iterator

from timetrial.spec.trial import Settings, Trial

# Settings that draw the region; the number of threads is no part of it, but of the conditions.
DRAWN = ("lap", "feed", "workers", "prefetch", "shuffle", "evaluate")
_STEP = {
    "train": "forward, loss, backward, update, wait for the device",
    "infer": "forward with the last activation, wait for the device",
}
_CALL = {
    "train": ("fit", "forward, loss, backward, update, callbacks"),
    "infer": ("predict", "forward, collecting of the outputs"),
}


def includes(trial: Trial) -> str:
    """`a whole epoch …: order …; each batch copied …: forward, loss, …; after it the test set …`"""
    settings = trial.settings
    work = _fit(trial.task, settings) if settings.loop == "fit" else _steps(trial.task, settings)
    if settings.lap == "steps":
        return work
    return "; ".join([f"a whole epoch, {_last(trial)}{_order(trial)}", work, *_after(settings)])


def _steps(task: str, settings: Settings) -> str:
    if settings.feed == "queue":
        return "each batch out of a queue in the graph, which another thread keeps full: forward, right class on top"
    begin = {
        "resident": "batches already on the device",
        "batch": "each batch from the host to the device",
        "loader": f"each batch from the engine's own loader ({loader(settings)}), waited for and put on the device",
    }
    return f"{begin[settings.feed]}: {_STEP[task]}"


def _fit(task: str, settings: Settings) -> str:
    call, work = _CALL[task]
    if settings.feed == "loader":
        return f"one {call} call over the engine's own loader ({loader(settings)}): waiting for batches, copy, {work}"
    return f"one {call} call over host arrays: batching, copy, {work}"


def loader(settings: Settings) -> str:
    workers = "no worker" if not settings.workers else f"{settings.workers} worker{'s'[: settings.workers > 1]}"
    return f"{workers}, {settings.prefetch} batches ahead"


def _last(trial: Trial) -> str:
    return "its last partial batch kept" if trial.recipe.last_batch == "keep" else "its last partial batch dropped"


def _order(trial: Trial) -> str:
    if not trial.recipe.shuffle:
        gathered = "; its batches gathered" if trial.settings.shuffle == "inside" else ""
        return f", not shuffled{gathered}"
    return ", shuffled, its batches gathered" if trial.settings.shuffle == "inside" else ", shuffled before the clock"


def _after(settings: Settings) -> Iterator[str]:
    if settings.evaluate == "inside":
        yield "then the test set predicted and scored"
