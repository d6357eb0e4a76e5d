"""Profiles whose bottleneck is known, because their operations were laid out for it, and limits to hold them against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.unit import made_profiles as made
from timetrial.meters.limits import Attempt, MachineLimits
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.schema import Raw, raw_ops, raw_steps

STEP = 1000  # µs
# type, layer, phase, start, length (µs) and thread, in each step
Op = tuple[str, str | None, str, float, float, int]


def raw(ops: Sequence[Op], steps: int = 2, step: float = STEP) -> Raw:
    rows = [(number, *op) for number in range(steps) for op in ops]
    columns = {
        "step": [row[0] for row in rows],
        "thread": [f"thread {row[6]}" for row in rows],
        "name": [row[1] for row in rows],
        "type": [row[1] for row in rows],
        "start_ns": [round((row[0] * step + row[4]) * 1000) for row in rows],
        "duration_ns": [round(row[5] * 1000) for row in rows],
        "phase": [row[3] for row in rows],
        "layer": [row[2] for row in rows],
        "attribution": ["exact"] * len(rows),
    }
    ends = raw_steps(range(steps), [round(i * step * 1000) for i in range(steps)], [round(step * 1000)] * steps)
    return Raw(raw_ops(columns), ends)


def profile(ops: Sequence[Op], step: float = STEP, run: dict[str, Any] | None = None, **changes: Any) -> Profile:
    record = made.record("torch", step / made.STEP_NS * 1000, **changes)
    if run:
        assert record.profile is not None
        record = record.model_copy(update={"profile": record.profile.model_copy(update=run)})
    return assemble(raw(ops, step=step), made.workload(), record)


def limits(gflops: float, gigabytes: float, threads: int = 2) -> MachineLimits:
    where = ("1.0", "cpu", threads)
    return MachineLimits(
        (
            Attempt("product", "jax", *where, "float32", 1024, gflops * 1e9),
            Attempt("product", "torch", *where, "float32", 1024, gflops * 0.5e9),
            Attempt("add", "reference", *where, "float64", 2**26, gigabytes * 1e9),
            Attempt("copy", "reference", *where, "float64", 2**26, gigabytes * 0.5e9),
        )
    )


# The network's second convolution does 8.2 operations for each byte and 294,912 of them, forward.
COMPUTING: tuple[Op, ...] = (
    ("aten::convolution", "conv2", "forward", 0, 700, 0),
    ("aten::relu", "conv1.relu", "forward", 700, 200, 0),
    ("Optimizer.step#Adam", None, "optimiser", 900, 60, 0),
)
STARTING: tuple[Op, ...] = tuple(("aten::mul", "conv1.relu", "forward", 25 * i, 24, 0) for i in range(40))
WAITING: tuple[Op, ...] = (
    ("DataLoader", None, "input", 0, 500, 0),
    ("aten::convolution", "conv2", "forward", 500, 480, 0),
)
FETCHING_AHEAD: tuple[Op, ...] = (
    ("DataLoader", None, "input", 0, 500, 1),
    ("aten::convolution", "conv2", "forward", 0, 980, 0),
)
COPYING: tuple[Op, ...] = (
    ("aten::copy_", "conv2", "forward", 0, 600, 0),
    ("aten::convolution", "conv2", "forward", 600, 380, 0),
)
