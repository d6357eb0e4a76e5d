"""Traces as PyTorch's profiler writes them, by hand: times in microseconds, one thread unless another is named."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAIN, BASE = 7, 4272523253590.0  # kineto counts from some month


@dataclass
class Trace:
    events: list[dict[str, Any]] = field(default_factory=list)

    def span(self, name: str, start: float, length: float, cat: str = "cpu_op", tid: int = MAIN, **args: Any) -> Trace:
        place = {"pid": 1 if cat != "kernel" else 0, "tid": tid}
        named = {key.replace("_", " ").capitalize() if key == "sequence_number" else key: args[key] for key in args}
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, **place, "ts": BASE + start, "dur": length, "args": named}
        )
        return self

    def memory(self, at: float, size: int, alive: int, tid: int = MAIN) -> Trace:
        args = {"Total Allocated": alive, "Bytes": size, "Device Type": 0}
        event = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": tid, "ts": BASE + at}
        self.events.append({**event, "args": args})
        return self

    def text(self) -> str:
        noise = [{"ph": "M", "name": "thread_name", "ts": 0, "pid": 1, "tid": MAIN, "args": {"name": "python ü"}}]
        head = {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms"}
        return json.dumps({**head, "traceEvents": noise + self.events, "traceName": "/tmp/é.json"}, indent=1)

    def write(self, folder: Path, number: int = 0) -> Path:
        return pack(folder, self.text().encode(), number)


def pack(folder: Path, content: bytes, number: int = 0) -> Path:
    path = folder / f"round{number}.json.gz"
    path.write_bytes(gzip.compress(content))
    return path


def training(first: int = 0, steps: int = 2) -> Trace:
    """Steps of 1000 µs of the network of `made_profiles`: two convolutions, a dense layer, a loss, their way back."""
    trace = Trace()
    for number in range(first, first + steps):
        at, numbered = 2000.0 * (number - first), 10 * number
        trace.span(f"step::{number}", at, 1000)
        trace.span("Optimizer.zero_grad#SGD.zero_grad", at + 1, 5, "user_annotation")
        trace.span("phase::loss", at + 9, 411)
        for place, layer in enumerate(("conv1", "conv2")):
            begin, own = at + 10 + 150 * place, numbered + place
            trace.span(f"layer::{layer}", begin, 140)
            trace.span("aten::conv2d", begin + 5, 130, sequence_number=own)
            trace.span("aten::convolution", begin + 10, 120, sequence_number=own)
            trace.span("aten::empty", begin + 20, 10).memory(begin + 25, 4096, 4096 * (place + 1) + 100)
        trace.span("layer::dense", at + 310, 60).span("aten::addmm", at + 315, 50, sequence_number=numbered + 2)
        trace.span("aten::to", at + 366, 1, sequence_number=numbered + 3)  # looks at the number that the loss will have
        trace.span("aten::nll_loss", at + 380, 30, sequence_number=numbered + 3)
        trace.span("phase::backward", at + 430, 370)
        trace.span("aten::ones_like", at + 431, 4)
        for place, (node, length) in enumerate((("Nll", 20), ("Addmm", 40), ("Conv", 100), ("Conv", 100))):
            begin, own = at + 440 + 90 * place, numbered + 3 - place
            trace.span(f"autograd::engine::evaluate_function: {node}", begin, min(length, 85), sequence_number=own)
            trace.span(f"aten::{node}_backward", begin + 5, min(length, 85) - 10)
        trace.memory(at + 795, -4096, 100)
        trace.span("Optimizer.step#SGD.step", at + 850, 120, "user_annotation").span("aten::add_", at + 860, 90)
    return trace
