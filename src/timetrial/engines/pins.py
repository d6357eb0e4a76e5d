"""What pip is asked to install: the shipped pins, or these with one package at another version."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from timetrial.engines.interpreters import Range
from timetrial.engines.registry import ENGINES, FAMILIES, VERSION, Asked, Engine, Family, same_version

_FOLDER = Path(__file__).parent / "requirements"
TOOLS = "-tools"


@dataclass(frozen=True)
class Recipe:
    """One environment to be: its family, its folder's name and pip's requirements."""

    family: Family
    folder: str
    requirements: tuple[str, ...]
    pinned: bool  # made from the shipped pins alone
    tools: tuple[str, ...] = ()  # pip and what it builds with, where a Python's own are too old or the newest too new

    @property
    def sha256(self) -> str:
        return hashlib.sha256("\n".join((*self.tools, *self.requirements)).encode()).hexdigest()

    @property
    def python(self) -> Range:
        oldest = self.family.pinned_python if self.pinned else self.family.python
        return Range(oldest, self.family.newest_python)


def recipe(asked: Asked) -> Recipe | None:
    """How to make the environment of an engine; None for one that needs none.

    A version that is the shipped pin is the family's own environment, not another one.
    """
    if asked.engine.family is None:
        return None
    family = FAMILIES[asked.engine.family]
    pins = shipped(family)
    if asked.version is None or same_version(asked.version, pins[_normal(family.packages[asked.package])]):
        return own(family)
    label = asked.version if asked.package == family.main else f"{asked.package}-{asked.version}"
    wanted = _loosened(family, asked.package, asked.version, pins)
    return Recipe(family, f"{family.name}@{label}", wanted, False, _lines(family, TOOLS))


def own(family: Family) -> Recipe:
    """The environment of a family itself."""
    return Recipe(family, family.name, _lines(family), True, _lines(family, TOOLS))


def serves(folder: str) -> tuple[str, ...]:
    """The engines that an environment's folder name stands for. Nothing for a folder of another kind.

    `torch` serves torch and keras-torch, `torch@2.9.1` torch@2.9.1 alone, `torch@keras-3.12.0` keras-torch@3.12.0
    alone; `originals@theano-0.9.0` serves theano@0.9.0 and keras2-theano@theano-0.9.0.
    """
    return tuple(asked.name for asked in served(folder))


def served(folder: str) -> tuple[Asked, ...]:
    """The same, understood."""
    name, at, label = folder.partition("@")
    if name not in FAMILIES:
        return ()
    engines = [engine for engine in ENGINES.values() if engine.family == name]
    if not at:
        return tuple(Asked(engine, None) for engine in engines)
    family = FAMILIES[name]
    package, dash, version = label.rpartition("-")
    package = package if dash else family.main or ""
    if not VERSION.fullmatch(version):
        return ()
    first = [Asked(engine, version) for engine in engines if engine.needs[0] == package]
    if family.main is not None:
        return tuple(first)
    return (*first, *(Asked(engine, version, package) for engine in engines if package in engine.needs[1:]))


def shipped(family: Family) -> dict[str, str]:
    """The exact pins of a family, by normalised distribution name, in the file's order."""
    parts = (line.split()[0].partition("==") for line in _lines(family))
    return {name: version for name, _, version in parts}


def _lines(family: Family, which: str = "") -> tuple[str, ...]:
    """A family's requirements, one `name==version` a line with the hash of its file where there is one."""
    file = _FOLDER / f"{family.name}{which}.txt"
    if which and not file.exists():
        return ()
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    parts = (line.partition("==") for line in lines if line)
    return tuple(f"{_normal(name)}=={version}" for name, _, version in parts)


def _loosened(family: Family, package: str, version: str, pins: dict[str, str]) -> tuple[str, ...]:
    """The asked version exactly; the family's other packages at most as new as the pins, so that an older main package
    may have older ones and nothing is newer than what was tried. What these need in turn is left to pip.
    The main package keeps its pin where another one's version is asked for: that is then the only thing that differs.
    In a family of several frameworks all that the served engines need keep theirs, and the other frameworks stay out.
    """
    firm = {family.main} if family.main else {need for engine in _users(family, package) for need in engine.needs}
    frameworks = {need for engine in ENGINES.values() if engine.family == family.name for need in engine.needs}
    wanted = []
    for name, distribution in family.packages.items():
        pin = pins[_normal(distribution)]
        if name == package:
            wanted.append(f"{distribution}=={version}")
        elif name in firm:
            wanted.append(f"{distribution}=={pin}")
        elif family.main or name not in frameworks:
            wanted.append(f"{distribution}<={pin}")
    return tuple(wanted)


def _users(family: Family, package: str) -> list[Engine]:
    return [engine for engine in ENGINES.values() if engine.family == family.name and package in engine.needs]


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
