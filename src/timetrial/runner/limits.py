"""What the machine can do at most, measured in the session that it is compared with: matrix products and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from timetrial.engines.locate import locate
from timetrial.meters.hardware import Machine, TooFewCores, cores_for
from timetrial.meters.limits import Event, MachineLimits, Question, measure, questions
from timetrial.runner.process import Bounds, run
from timetrial.runner.surroundings import surroundings
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Settings


def machine_limits(
    engines: Sequence[str], placements: Iterable[Placement], machine: Machine, bounds: Bounds
) -> MachineLimits:
    """Keras has no product of its own: it is the engine's below it."""

    def start(question: Question) -> Sequence[Event]:
        located = locate(question.engine)
        assert located.interpreter is not None
        with tempfile.TemporaryDirectory(prefix="timetrial-") as name:
            cores = cores_for(question.placement.threads, machine)
            job = {**question.job, "adapter": located.engine.adapter, "cores": cores}
            variables = surroundings(question.placement, Settings(), located.variables)
            return run(located.interpreter, job, Path(name), variables, bounds).events

    there = [name for name in dict.fromkeys(engines) if not name.startswith("keras") and locate(name).interpreter]
    return measure(questions(there, filter(lambda one: _fits(one, machine), placements), machine), start)


def _fits(placement: Placement, machine: Machine) -> bool:
    try:
        cores_for(placement.threads, machine)
    except TooFewCores:
        return False
    return True
