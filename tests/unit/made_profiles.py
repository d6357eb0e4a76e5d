"""Profiles written by hand: two convolutions and a dense layer, three steps, on one thread or two."""

from __future__ import annotations

from typing import Any

from tests.unit import made_records as made
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.schema import Raw, raw_ops, raw_steps
from timetrial.profiling.workload import Workload
from timetrial.records.profiled import Profiled
from timetrial.records.record import Record
from timetrial.spec.network import Input, Network
from timetrial.spec.recipe import Recipe

STEPS = 3
STEP_NS = 1_000_000
NETWORK = Network.model_validate(
    {
        "name": "made",
        "input": Input(shape=(8, 8, 1)).model_dump(),
        "layers": [
            {"conv2d": {"filters": 4, "kernel": 3, "activation": "relu", "name": "conv1"}},
            {"conv2d": {"filters": 8, "kernel": 3, "name": "conv2"}},
            "flatten",
            {"dense": {"units": 10, "activation": "softmax", "name": "dense"}},
        ],
    }
)
# type, layer, phase, attribution, start and length in a step (µs), bytes
OPS = (
    ("aten::conv2d", "conv1", "forward", "exact", 10, 200, 4096),
    ("aten::mkldnn_convolution", "conv1", "forward", "exact", 20, 180, 4096),
    ("aten::relu", "conv1.relu", "forward", "exact", 210, 20, None),
    ("aten::conv2d", "conv2", "forward", "exact", 230, 300, 8192),
    ("aten::addmm", "dense", "forward", "exact", 530, 40, 512),
    ("aten::nll_loss", None, "loss", "exact", 570, 10, None),
    ("aten::convolution_backward", "conv2", "backward", "sequence", 580, 350, 8192),
    ("Optimizer.step#Adam", None, "optimiser", "exact", 930, 60, None),
)


def workload(**changes: Any) -> Workload:
    values = {"model": "made/cnn", "network": NETWORK, "recipe": Recipe(batch=32), "task": "train", "engine": "torch"}
    return Workload(**{**values, **changes})


def raw(slower: float = 1.0, threads: int = 1) -> Raw:
    rows = [(step, *op) for step in range(STEPS) for op in OPS]
    return Raw(
        raw_ops(
            {
                "step": [row[0] for row in rows],
                "thread": [f"thread {i % threads}" for i in range(len(rows))],
                "name": [row[1] for row in rows],
                "type": [row[1] for row in rows],
                "start_ns": [int((row[0] * STEP_NS + row[5] * 1000) * slower) for row in rows],
                "duration_ns": [int(row[6] * 1000 * slower) for row in rows],
                "phase": [row[3] for row in rows],
                "layer": [row[2] for row in rows],
                "attribution": [row[4] for row in rows],
                "alloc_bytes": [row[7] for row in rows],
            }
        ),
        raw_steps(range(STEPS), [int(i * STEP_NS * slower) for i in range(STEPS)], [int(STEP_NS * slower)] * STEPS),
    )


def record(engine: str = "torch", slower: float = 1.0, **changes: Any) -> Record:
    plain = STEP_NS * slower / 1e9
    run = Profiled(format="kineto", steps=STEPS, plain=(plain,) * 5, profiled=(plain * 1.02,) * 5, trace="traces/made")
    return made.record(engine, 0, plain, role="profile", profile=run, laps=None, effort=None, **changes)


def profile(engine: str = "torch", slower: float = 1.0, threads: int = 1, **changes: Any) -> Profile:
    return assemble(raw(slower, threads), workload(engine=engine), record(engine, slower, **changes))
