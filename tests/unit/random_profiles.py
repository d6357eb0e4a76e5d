"""Profiles drawn at random: spans that nest, overlap and run beside each other, some without layer, phase or memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from tests.unit import made_profiles as made
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.schema import PHASES, Raw, raw_ops, raw_steps

LAYERS = ("conv1", "conv1.relu", "conv2", "dense", None)
TYPES = ("conv2d", "MatMul", "fusion.7", "copy", "nothing known")
SPANS = st.tuples(
    st.integers(0, 1),  # step
    st.integers(0, 2),  # thread
    st.integers(0, 900),  # start
    st.integers(0, 400),  # length
    st.sampled_from(TYPES),
    st.sampled_from(LAYERS),
    st.sampled_from(PHASES),
    st.one_of(st.none(), st.integers(0, 10**6)),
    st.booleans(),  # whether it is split over two layers
)


def _raw(spans: list[tuple[Any, ...]]) -> Raw:
    step, thread, start, length, kind, layer, phase, alloc, cut = zip(*spans, strict=True)
    ops = raw_ops(
        {
            "step": list(step),
            "thread": [f"thread {number}" for number in thread],
            "name": [f"{name}:{phase_}" for name, phase_ in zip(kind, phase, strict=True)],
            "type": list(kind),
            "start_ns": [1000 * s + at for s, at in zip(step, start, strict=True)],
            "duration_ns": list(length),
            "phase": list(phase),
            "layer": list(layer),
            "attribution": ["none" if name is None else "scope" for name in layer],
            "alloc_bytes": list(alloc),
        }
    )
    raw = Raw(ops, raw_steps([0, 1], [0, 1000], [1000, 1000]))
    rows = [number for number, one in enumerate(cut) if one]
    if not rows:
        return raw
    parts = {
        "row": [r for r in rows for _ in "ab"],
        "layer": ["conv1", "dense"] * len(rows),
        "share": [0.25, 0.75] * len(rows),
    }
    return replace(raw, parts=pd.DataFrame(parts))


RAWS = st.lists(SPANS, min_size=1, max_size=20).map(_raw)


def profile(raw: Raw, engine: str = "torch") -> Profile:
    return assemble(raw, made.workload(engine=engine), made.record(engine))
