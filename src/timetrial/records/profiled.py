"""What a run under the framework's own profiler leaves in its record; the trace itself lies beside the records."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Profiled(BaseModel):
    """Rounds of steps with the profiler off and on took turns in one process: the two tell what it costs."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: str  # of the trace: which reader understands it
    steps: int  # in each round
    plain: tuple[float, ...]  # seconds a step, round by round, without the profiler
    profiled: tuple[float, ...]  # with it
    plain_cpu: tuple[float, ...] = ()  # CPU seconds a step of the same rounds
    profiled_cpu: tuple[float, ...] = ()
    switches: int = 0  # involuntary ones during all rounds
    trace: str = ""  # its folder, in that of the study
    facts: dict[str, Any] = {}  # what else the framework told: its own count of operations, its plan of memory
