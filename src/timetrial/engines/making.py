"""The making of one environment: the virtual environment, its packages, a real check, and last its marker."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from timetrial.engines import checks, marker
from timetrial.engines.interpreters import clean_env
from timetrial.engines.libraries import link
from timetrial.engines.registry import Asked
from timetrial.engines.remedies import diagnose, treat
from timetrial.engines.target import Target
from timetrial.engines.trying import attempt, last_lines

Say = Callable[[str], None]

LOG = "install.log"
REQUIREMENTS = "requirements.txt"
TOOLS = "tools.txt"
CACHE = "cache"  # what engines keep between processes: compiled code, settings
_CHECK_TIMEOUT = 300.0  # a cold first import of a large framework from a slow disk takes minutes
_WORTH_SAYING = ("Collecting ", "Downloading ", "Installing ")


class EnvironmentFailed(RuntimeError):
    """An environment could not be made or removed. The message says why, and what to do."""

    def __init__(self, message: str, log: Path | None = None, last_lines: str = "") -> None:
        super().__init__(message)
        self.log, self.last_lines = log, last_lines


@dataclass(frozen=True)
class Broken:
    """An engine that the environment cannot serve."""

    asked: Asked
    problem: str
    remedy: str | None  # where the cause is known
    last_lines: str

    @property
    def otherwise(self) -> str:
        return f"timetrial engines add {self.asked.name} --again"


@dataclass(frozen=True)
class Making:
    """`lock` is the descriptor of the held lock. Commands inherit it: where the parent is killed while pip goes on, the
    environment stays locked until pip has ended."""

    target: Target
    folder: Path
    lock: int
    say: Say

    def make(self, python: Path, version: str) -> marker.Marker:
        own = marker.interpreter(self.folder)
        self.folder.mkdir(parents=True)
        (self.folder / CACHE).mkdir()
        self._tell(f"making an environment with Python {version} in {self.folder}")
        self._run(python, "-m", "venv", self.folder)
        for file, lines in ((TOOLS, self.target.plan.tools), (REQUIREMENTS, self.target.plan.requirements)):
            if lines:
                self._install(own, self.folder / file, lines)
        self._link()
        answers, broken = self._check(self.target.tried)
        if not answers:
            self._refuse(broken)
        made = self._marker(answers[0], broken)
        marker.write(self.folder, made)
        self._tell("ready")
        return made

    def mend(self, made: marker.Marker) -> marker.Marker:
        """Try again what did not work, and what a library of the system now serves otherwise; nothing is installed."""
        linked = self._link()
        again = [asked for asked in self.target.tried if asked in linked or asked.engine.name in made.broken]
        if not again:
            return made
        _, broken = self._check(again)
        kept = {name: why for name, why in made.broken.items() if name not in {asked.engine.name for asked in again}}
        mended = replace(made, broken=kept | _noted(broken))
        marker.write(self.folder, mended)
        return mended

    def _link(self) -> list[Asked]:
        """The engines for which links to the system's libraries were made or changed."""
        return [asked for asked in self.target.tried if link(asked.engine.libraries, self.folder)]

    def _install(self, own: Path, file: Path, lines: tuple[str, ...]) -> None:
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        hashed = ["--require-hashes"] if any("--hash=" in line for line in lines) else []
        self._run(own, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *hashed, "-r", file)

    def _tell(self, line: str) -> None:
        self.say(f"{self.target.plan.folder}: {line}")

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
        found, log = diagnose(printed, self.target.plan.family.megabytes), self.folder / LOG
        raise EnvironmentFailed(
            f"the {self.target.plan.folder} environment could not be made: {found.cause}; {found.remedy} (log: {log})",
            log,
            last_lines("\n".join(line for line in printed.splitlines() if not line.startswith("WARNING: Location"))),
        )

    def _check(self, engines: Iterable[Asked]) -> tuple[list[checks.Answer], dict[str, Broken]]:
        """The answers of the engines that work, and why the others do not."""
        answers, broken = [], {}
        for asked in engines:
            self._tell(f"trying {asked.name} with a small training step")
            tried = attempt(asked.engine, marker.interpreter(self.folder), self.folder, _CHECK_TIMEOUT)
            with (self.folder / LOG).open("a", encoding="utf-8") as stream:
                stream.write(f"$ check of {asked.name}\n{tried.output}\n")
            if tried.answer is not None:
                answers.append(tried.answer)
            else:
                remedy = treat(tried.output, asked.name)
                broken[asked.engine.name] = Broken(asked, str(tried.problem), remedy, last_lines(tried.output))
        return answers, broken

    def _refuse(self, broken: dict[str, Broken]) -> NoReturn:
        first, log = next(iter(broken.values())), self.folder / LOG
        remedy = first.remedy or "ask for another version, or give another interpreter with --python"
        raise EnvironmentFailed(
            f"the packages of {self.target.plan.folder} are installed, but a small training step {first.problem}; "
            f"{remedy} (log: {log})",
            log,
            first.last_lines,
        )

    def _marker(self, answer: checks.Answer, broken: dict[str, Broken]) -> marker.Marker:
        return marker.Marker(
            family=self.target.plan.family.name,
            engine=self.target.name.partition("@")[0],
            requested=self.target.version,
            python=answer.python,
            requirements_sha256=self.target.plan.sha256,
            versions=answer.versions,
            path=str(self.folder),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            broken=_noted(broken),
        )


def _noted(broken: dict[str, Broken]) -> dict[str, list[str]]:
    return {
        name: [f"{why.asked.name}: a small training step {why.problem}", why.remedy or why.otherwise]
        for name, why in broken.items()
    }
