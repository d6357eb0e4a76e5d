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

from timetrial.engines import marker
from timetrial.engines.home import engines_home
from timetrial.engines.interpreters import resolve
from timetrial.engines.lock import locked
from timetrial.engines.making import LOG, REQUIREMENTS, EnvironmentFailed, Making, Say
from timetrial.engines.pins import Recipe, recipe, serves
from timetrial.engines.registry import Asked, parse

__all__ = ["Environment", "EnvironmentFailed", "add", "remove"]


@dataclass(frozen=True)
class Environment:
    """An environment that is whole: where it is, what is in it, and which engines it serves."""

    name: str
    folder: Path
    interpreter: Path
    python: str
    versions: dict[str, str]
    serves: tuple[str, ...]


def add(name: str, say: Say, python: str | Path | None = None, again: bool = False) -> Environment:
    """Make the environment of an engine, unless a good one is there; `again` makes it anew in any case."""
    asked, plan = _plan(name)
    folder = engines_home() / plan.folder
    interpreter, version = resolve(python or sys.executable, plan.python, f"the {plan.folder} environment")
    with _world(plan.folder), locked(folder, say) as held:
        there = marker.condition(folder, plan.sha256)
        if there.usable and there.marker and (held.waited or not again):
            _say_kept(there, asked, version if python else None, say)
            return _environment(folder, there.marker)
        if there.problem:
            say(f"{plan.folder}: {there.problem}; it is made anew")
        _remove_tree(folder)
        try:
            _say_size(plan, folder, say)
            made = Making(asked, plan, folder, held.descriptor, say).make(interpreter, version)
            return _environment(folder, made)
        except EnvironmentFailed:
            _strip(folder)
            raise


def remove(name: str, say: Say) -> tuple[str, ...]:
    """Remove the environment of an engine; returns the engines that it served."""
    asked, plan = _plan(name)
    folder = engines_home() / plan.folder
    if not os.path.lexists(folder):
        raise EnvironmentFailed(
            f"{asked.name} has no environment in {folder}; `timetrial engines list` shows what there is"
        )
    with _world(plan.folder), locked(folder, say):
        _remove_tree(folder)
    served = serves(plan.folder)
    say(f"{plan.folder}: removed; it served {', '.join(served)}")
    return served


def _plan(name: str) -> tuple[Asked, Recipe]:
    asked = parse(name)
    plan = recipe(asked)
    if plan is None:
        raise EnvironmentFailed(f"{asked.engine.name} runs in timetrial's own Python; it has no environment of its own")
    return asked, plan


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
    interpreter = marker.interpreter(folder)
    return Environment(folder.name, folder, interpreter, made.python, made.versions, serves(folder.name))


def _say_kept(there: marker.Condition, asked: Asked, wanted_python: str | None, say: Say) -> None:
    name, made = there.folder.name, there.marker
    say(f"{name}: already there")
    redo = f"`timetrial engines add {asked.name} --again` makes it anew"
    if there.problem:
        say(f"{name}: {there.problem}; {redo}")
    if made and wanted_python and wanted_python != made.python:
        say(f"{name}: it has Python {made.python}, not {wanted_python}; {redo}")


def _say_size(plan: Recipe, folder: Path, say: Say) -> None:
    size, free = plan.family.megabytes, shutil.disk_usage(_existing(folder)).free // 2**20
    say(f"{plan.folder}: takes about {size} MB on disk; {free} MB are free")
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
        if child.name not in (LOG, REQUIREMENTS):
            _remove_tree(child)


def _remove_tree(path: Path) -> None:
    """Remove a file or folder, its marker first: an interrupted removal leaves what is recognised as half made."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        (path / marker.FILE).unlink(missing_ok=True)
        shutil.rmtree(path)
