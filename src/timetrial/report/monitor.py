"""How a training goes, while it goes: a line and a curve, from what the worker tells about once a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from timetrial.report import words

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


@dataclass
class Monitor:
    """One training after the other; `hear` takes the worker's events and says whether there is something new."""

    losses: list[float] = field(default_factory=list)
    scores: list[tuple[int, str]] = field(default_factory=list)
    last: Mapping[str, Any] = field(default_factory=dict)

    def begin(self) -> None:
        self.losses, self.scores, self.last = [], [], {}

    def hear(self, event: Mapping[str, Any]) -> bool:
        if event["event"] == "progress":
            self.losses.append(float(event["loss"]))
            self.last = event
            return True
        if event["event"] == "epoch":
            self.scores.append((int(event["epoch"]), scored(event)))
            return True
        return False

    @property
    def active(self) -> bool:
        return bool(self.last)

    def line(self) -> str:
        """`epoch 3 of 6, step 1,200: loss 0.824, 12.1 ms a step, 540 MiB; after epoch 2 accuracy 61.0 %`."""
        if not self.last:
            return ""
        now = self.last
        said = [f"loss {words.figures(now['loss'])}", f"{words.duration(now['step_seconds'])} a step"]
        if now.get("resident"):
            said.append(words.memory(now["resident"]))
        tested = [(epoch, text) for epoch, text in self.scores if text]
        after = f"; after epoch {tested[-1][0]} {tested[-1][1]}" if tested else ""
        return f"epoch {now['epoch']} of {now['epochs']}, step {now['step']:,}: {', '.join(said)}{after}"

    def curve(self) -> str:
        return sparkline(self.losses)


def scored(event: Mapping[str, Any]) -> str:
    """What an epoch's test said; nothing where there was none."""
    if event.get("accuracy") is not None:
        return f"accuracy {words.percent(event['accuracy'])}"
    return f"mse {words.figures(event['mse'])}" if event.get("mse") is not None else ""


def epoch_line(event: Mapping[str, Any]) -> str:
    """For a log: one line an epoch."""
    score = scored(event)
    return f"epoch {event['epoch']} of {event['epochs']}: loss {words.figures(event['loss'])}" + (
        f", {score}" if score else ""
    )


def sparkline(values: list[float], width: int = _WIDTH) -> str:
    """The whole course in at most `width` characters, each the mean of its stretch."""
    if not values:
        return ""
    size = min(width, len(values))
    edges = [round(i * len(values) / size) for i in range(size + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, span = min(means), max(means) - min(means)
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1)) if span else 0] for value in means)
