"""The making of one environment: the virtual environment, its packages, a real check, and last its marker."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from timetrial.engines import checks, marker
from timetrial.engines.interpreters import clean_env
from timetrial.engines.pins import Recipe
from timetrial.engines.registry import Asked
from timetrial.engines.remedies import diagnose
from timetrial.engines.trying import attempt, last_lines

Say = Callable[[str], None]

LOG = "install.log"
REQUIREMENTS = "requirements.txt"
_CHECK_TIMEOUT = 300.0  # a cold first import of a large framework from a slow disk takes minutes
_WORTH_SAYING = ("Collecting ", "Downloading ", "Installing ")


class EnvironmentFailed(RuntimeError):
    """An environment could not be made or removed. The message says why, and what to do."""

    def __init__(self, message: str, log: Path | None = None, last_lines: str = "") -> None:
        super().__init__(message)
        self.log, self.last_lines = log, last_lines


@dataclass(frozen=True)
class Making:
    """`lock` is the descriptor of the held lock. Commands inherit it: where the parent is killed while pip goes on, the
    environment stays locked until pip has ended."""

    asked: Asked
    plan: Recipe
    folder: Path
    lock: int
    say: Say

    def make(self, python: Path, version: str) -> marker.Marker:
        own, requirements = marker.interpreter(self.folder), self.folder / REQUIREMENTS
        self.folder.mkdir(parents=True)
        requirements.write_text("\n".join(self.plan.requirements) + "\n", encoding="utf-8")
        self._tell(f"making an environment with Python {version} in {self.folder}")
        self._run(python, "-m", "venv", self.folder)
        self._run(own, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r", requirements)
        self._tell(f"trying {self.asked.engine.name} with a small training step")
        answer = self._check(own)
        made = self._marker(answer)
        marker.write(self.folder, made)
        self._tell("ready")
        return made

    def _tell(self, line: str) -> None:
        self.say(f"{self.plan.folder}: {line}")

    def _run(self, *command: str | Path) -> None:
        """Run a command with all it prints in the environment's log, and its progress told."""
        words = [str(word) for word in command]
        with (
            (self.folder / LOG).open("a", encoding="utf-8", buffering=1) as log,
            subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=clean_env({"PIP_USER": "0", "PYTHONUNBUFFERED": "1"}),
                pass_fds=(self.lock,),
            ) as process,
        ):
            log.write(f"$ {' '.join(words)}\n")
            try:
                printed = "".join(self._follow(line, log.write) for line in process.stdout or ())
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            self._fail(printed)

    def _follow(self, line: str, write: Callable[[str], object]) -> str:
        write(line)
        if line.startswith(_WORTH_SAYING):
            # What pip adds in brackets is where the requirement came from, which is always this environment's file.
            self._tell(line.partition(" (from ")[0].strip()[:100])
        return line

    def _fail(self, printed: str) -> NoReturn:
        found, log = diagnose(printed, self.plan.family.megabytes), self.folder / LOG
        raise EnvironmentFailed(
            f"the {self.plan.folder} environment could not be made: {found.cause}; {found.remedy} (log: {log})",
            log,
            last_lines("\n".join(line for line in printed.splitlines() if not line.startswith("WARNING: Location"))),
        )

    def _check(self, own: Path) -> checks.Answer:
        tried, log = attempt(self.asked.engine, own, beside=False, timeout=_CHECK_TIMEOUT), self.folder / LOG
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"$ check of {self.asked.engine.name}\n{tried.output}\n")
        if tried.answer is None:
            raise EnvironmentFailed(
                f"the packages of {self.plan.folder} are installed, but a small training step {tried.problem}; "
                f"ask for another version, or give another interpreter with --python (log: {log})",
                log,
                last_lines(tried.output),
            )
        return tried.answer

    def _marker(self, answer: checks.Answer) -> marker.Marker:
        return marker.Marker(
            family=self.plan.family.name,
            engine=self.asked.engine.name,
            requested=self.asked.version,
            python=answer.python,
            requirements_sha256=self.plan.sha256,
            versions=answer.versions,
            path=str(self.folder),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
        )
