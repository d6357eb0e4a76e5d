"""Making and removing the environments in which engines live.

An environment is made in place, because it could not be moved afterwards, and its marker is written last: what was
interrupted at any moment is recognised as half made and made anew.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from timetrial.disk.home import engines_home
from timetrial.disk.lock import locked
from timetrial.engines import marker
from timetrial.engines.interpreters import NoPython, resolve
from timetrial.engines.making import LOG, REQUIREMENTS, TOOLS, EnvironmentFailed, Making, Say
from timetrial.engines.pins import Recipe, served, serves
from timetrial.engines.pythons import search
from timetrial.engines.target import NoEnvironment, Target, target

__all__ = ["Environment", "EnvironmentFailed", "add", "lacking", "remove"]


@dataclass(frozen=True)
class Environment:
    """An environment that is whole: where it is, what is in it, and which engines it serves."""

    name: str
    folder: Path
    interpreter: Path
    python: str
    versions: dict[str, str]
    serves: tuple[str, ...]
    broken: dict[str, tuple[str, str]]  # engines that it should serve and cannot: problem and remedy


def add(name: str, say: Say, python: str | Path | None = None, again: bool = False) -> Environment:
    """Make the environment of an engine or a family, unless a good one is there; `again` makes it anew in any case."""
    wanted = _target(name)
    plan, folder = wanted.plan, engines_home() / wanted.plan.folder
    chosen = interpreter_for(plan, python) if python else None
    with _world(plan.folder), locked(folder, say) as held:
        making = Making(wanted, folder, held.descriptor, say)
        there = marker.condition(folder, plan.sha256)
        if there.usable and there.marker and (held.waited or not again):
            _say_kept(there, wanted, chosen[1] if chosen else None, say)
            return _serving(wanted, _environment(folder, making.mend(there.marker)))
        if unfit := _unfit(plan):
            raise EnvironmentFailed(unfit)
        interpreter, version = chosen or interpreter_for(plan, None)
        if there.problem:
            say(f"{plan.folder}: {there.problem}; it is made anew")
        _remove_tree(folder)
        try:
            _say_size(plan, folder, say)
            made = making.make(interpreter, version)
        except EnvironmentFailed:
            _strip(folder)
            raise
        return _serving(wanted, _environment(folder, made))


def interpreter_for(plan: Recipe, python: str | Path | None) -> tuple[Path, str]:
    """The interpreter to make an environment with, and its version: the one named, or timetrial's own, or one that is
    searched for where that is too new."""
    purpose, wanted = f"the {plan.folder} environment", plan.python
    if python is None and wanted.newest is not None:
        return search(wanted, purpose)
    return resolve(python or sys.executable, wanted, purpose)


def lacking(name: str, python: str | Path | None = None) -> str | None:
    """What this machine lacks for an environment that is not there yet; None where it can be made."""
    plan = _target(name).plan
    if marker.condition(engines_home() / plan.folder, plan.sha256).usable:
        return None
    if unfit := _unfit(plan):
        return unfit
    compiler = plan.family.compiler
    if compiler is not None and shutil.which(compiler) is None:
        return f"there is no C++ compiler ({compiler}; Debian: apt-get install {compiler})"
    try:
        interpreter_for(plan, python)
    except NoPython as error:
        return str(error)
    return None


def _unfit(plan: Recipe) -> str | None:
    here, only = f"{platform.system()} {platform.machine()}", plan.family.machine
    return (
        f"the packages of {plan.family.name} are for {only} alone, and this is {here}"
        if only not in (None, here)
        else None
    )


def remove(name: str, say: Say) -> tuple[str, ...]:
    """Remove the environment of an engine or a family; returns the engines that it served."""
    wanted = _target(name)
    plan, folder = wanted.plan, engines_home() / wanted.plan.folder
    if not os.path.lexists(folder):
        raise EnvironmentFailed(
            f"{wanted.name} has no environment in {folder}; `timetrial engines list` shows what there is"
        )
    with _world(plan.folder), locked(folder, say):
        _remove_tree(folder)
    names = serves(plan.folder)
    say(f"{plan.folder}: removed; it served {', '.join(names)}")
    return names


def _target(name: str) -> Target:
    try:
        return target(name)
    except NoEnvironment as error:
        raise EnvironmentFailed(str(error)) from None


def _serving(wanted: Target, made: Environment) -> Environment:
    """The environment, unless the engine that was asked for is one that it cannot serve."""
    asked = wanted.asked.engine.name if wanted.asked else ""
    for problem, remedy in (why for name, why in made.broken.items() if name.partition("@")[0] == asked):
        others = f"; the environment serves {', '.join(made.serves)}" if made.serves else ""
        raise EnvironmentFailed(f"{problem}; {remedy} (log: {made.folder / LOG}){others}", made.folder / LOG)
    return made


@contextmanager
def _world(name: str) -> Iterator[None]:
    """Turn what the file system refuses into this module's own failure."""
    try:
        yield
    except OSError as error:
        where = error.filename or engines_home()
        raise EnvironmentFailed(
            f"the {name} environment: {error.strerror or error} ({where}); "
            "free space or permission there, or set TIMETRIAL_HOME to another folder"
        ) from error


def _environment(folder: Path, made: marker.Marker) -> Environment:
    broken = {one.name: made.broken[one.engine.name] for one in served(folder.name) if one.engine.name in made.broken}
    return Environment(
        folder.name,
        folder,
        marker.interpreter(folder),
        made.python,
        made.versions,
        tuple(name for name in serves(folder.name) if name not in broken),
        {name: (problem, remedy) for name, (problem, remedy) in broken.items()},
    )


def _say_kept(there: marker.Condition, meant: Target, wanted_python: str | None, say: Say) -> None:
    name, made = there.folder.name, there.marker
    say(f"{name}: already there")
    redo = f"`timetrial engines add {meant.name} --again` makes it anew"
    if there.problem:
        say(f"{name}: {there.problem}; {redo}")
    if made and wanted_python and wanted_python != made.python:
        say(f"{name}: it has Python {made.python}, not {wanted_python}; {redo}")


def _say_size(plan: Recipe, folder: Path, say: Say) -> None:
    size, free = plan.family.megabytes, shutil.disk_usage(_existing(folder)).free // 2**20
    # A version leaves the other frameworks of such a family out.
    about = "about" if plan.pinned or plan.family.main else "at most about"
    say(f"{plan.folder}: takes {about} {size} MB on disk; {free} MB are free")
    if plan.family.brings_cuda and platform.system() == "Linux" and not Path("/dev/nvidia0").exists():
        say(
            f"{plan.folder}: this machine has no GPU, yet the index's wheel brings the CUDA libraries, gigabytes more; "
            "a CPU wheel that pip can find (PIP_FIND_LINKS, PIP_INDEX_URL) is taken instead"
        )


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


def _strip(folder: Path) -> None:
    """Leave of a failed environment only what tells why: its log and what was asked for."""
    for child in folder.iterdir():
        if child.name not in (LOG, TOOLS, REQUIREMENTS):
            _remove_tree(child)


def _remove_tree(path: Path) -> None:
    """Remove a file or folder, its marker first: an interrupted removal leaves what is recognised as half made."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        (path / marker.FILE).unlink(missing_ok=True)
        shutil.rmtree(path)
