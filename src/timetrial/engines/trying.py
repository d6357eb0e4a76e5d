"""Run an engine's check in an interpreter and say in words how it went."""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from timetrial.engines import checks
from timetrial.engines.interpreters import clean_env, run_script
from timetrial.engines.registry import Engine

_TAIL, _WIDTH = 12, 300


@dataclass(frozen=True)
class Attempt:
    """`answer` is there only where the step ran and was right; otherwise `problem` says what it did instead."""

    seconds: float
    answer: checks.Answer | None
    problem: str | None
    output: str


def attempt(engine: Engine, interpreter: Path, folder: Path | None, timeout: float) -> Attempt:
    """Try an engine. Beside timetrial (no folder) the packages may come through PYTHONPATH or the user's own site, so
    these stay; in an environment nothing from outside may be seen."""
    beside = folder is None
    env = clean_env(engine.variables(folder), keep_python=beside)
    begun = time.perf_counter()
    try:
        done = run_script(interpreter, checks.script(engine.check), env=env, isolated=not beside, timeout=timeout)
    except subprocess.TimeoutExpired:
        return Attempt(time.perf_counter() - begun, None, f"gave no answer in {timeout:g} s", "")
    except OSError as error:
        return Attempt(time.perf_counter() - begun, None, f"could not be started: {error}", "")
    answer = checks.read(done.stdout) if done.returncode == 0 else None
    problem = _problem(done, answer)
    output = f"{done.stdout}{done.stderr}"
    return Attempt(time.perf_counter() - begun, None if problem else answer, problem, output)


def last_lines(output: str) -> str:
    """The end of a command's output, as much as fits under a message."""
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join(line[:_WIDTH] for line in lines[-_TAIL:])


def _problem(done: subprocess.CompletedProcess[str], answer: checks.Answer | None) -> str | None:
    if done.returncode < 0:
        return f"was ended by {_signal(-done.returncode)}"
    if done.returncode > 0:
        told = last_lines(done.stderr).splitlines()
        return f"failed with exit code {done.returncode}" + (f": {told[-1]}" if told else "")
    if answer is None:
        return "ended without an answer"
    return None if answer.right else "computed a wrong gradient"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
