"""Whether an engine works: a small training step with a known answer, in the engine's own interpreter."""

from __future__ import annotations

from dataclasses import dataclass

from timetrial.engines.locate import Located, versions_of
from timetrial.engines.remedies import treat
from timetrial.engines.trying import attempt, last_lines


@dataclass(frozen=True)
class Health:
    """`ok`: the step ran and its gradient was right. `problem` may then still be a warning, such as older pins."""

    name: str
    ok: bool
    seconds: float | None  # import and step together; None where nothing was run
    python: str | None
    versions: dict[str, str]
    problem: str | None = None
    remedy: str | None = None
    last_lines: str = ""


def check(located: Located, timeout: float = 180.0) -> Health:
    """Run the engine's check; never raises for a broken engine."""
    if located.interpreter is None:
        return Health(located.name, False, None, None, {}, located.problem, located.remedy)
    tried = attempt(located.engine, located.interpreter, located.folder, timeout)
    if tried.answer is None:
        problem = f"{located.name}: a small training step {tried.problem}"
        remedy = treat(tried.output, located.name) or _remedy(located)
        return Health(located.name, False, tried.seconds, None, {}, problem, remedy, last_lines(tried.output))
    versions = versions_of(located.engine, tried.answer.versions)
    return Health(located.name, True, tried.seconds, tried.answer.python, versions, located.problem, located.remedy)


def _remedy(located: Located) -> str:
    if located.kind == "environment":
        return f"timetrial engines add {located.name} --again"
    if located.engine.family is None:
        return "repair numpy beside timetrial, or install timetrial again"
    return f"repair the packages beside timetrial, or timetrial engines add {located.name}"
