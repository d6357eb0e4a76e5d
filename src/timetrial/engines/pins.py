"""What pip is asked to install: the shipped pins, or these with one package at another version."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from timetrial.engines.registry import ENGINES, FAMILIES, VERSION, Asked, Family, same_version

_FOLDER = Path(__file__).parent / "requirements"


@dataclass(frozen=True)
class Recipe:
    """One environment to be: its family, its folder's name and pip's requirements."""

    family: Family
    folder: str
    requirements: tuple[str, ...]
    pinned: bool  # made from the shipped pins alone

    @property
    def sha256(self) -> str:
        return hashlib.sha256("\n".join(self.requirements).encode()).hexdigest()

    @property
    def python(self) -> tuple[int, int]:
        return self.family.pinned_python if self.pinned else self.family.python


def recipe(asked: Asked) -> Recipe | None:
    """How to make the environment of an engine; None for one that needs none.

    A version that is the shipped pin is the family's own environment, not another one.
    """
    if asked.engine.family is None:
        return None
    family = FAMILIES[asked.engine.family]
    package = asked.engine.needs[0]
    pins = shipped(family)
    if asked.version is None or same_version(asked.version, pins[_normal(family.packages[package])]):
        return Recipe(family, family.name, tuple(f"{name}=={version}" for name, version in pins.items()), True)
    label = asked.version if package == family.main else f"{package}-{asked.version}"
    return Recipe(family, f"{family.name}@{label}", _loosened(family, package, asked.version, pins), False)


def serves(folder: str) -> tuple[str, ...]:
    """The engines that an environment's folder name stands for: `torch` serves torch and keras-torch, `torch@2.9.1`
    torch@2.9.1 alone, `torch@keras-3.12.0` keras-torch@3.12.0 alone. Nothing for a folder of another kind."""
    name, at, label = folder.partition("@")
    served = []
    for engine in ENGINES.values():
        if engine.family is None or engine.family != name:
            continue
        lead = "" if engine.needs[0] == FAMILIES[name].main else f"{engine.needs[0]}-"
        if not at:
            served.append(engine.name)
        elif label.startswith(lead) and VERSION.fullmatch(label.removeprefix(lead)):
            served.append(f"{engine.name}@{label.removeprefix(lead)}")
    return tuple(served)


def shipped(family: Family) -> dict[str, str]:
    """The exact pins of a family, by normalised distribution name, in the file's order."""
    text = (_FOLDER / f"{family.name}.txt").read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {_normal(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def _loosened(family: Family, package: str, version: str, pins: dict[str, str]) -> tuple[str, ...]:
    """The asked version exactly; the family's other packages at most as new as the pins, so that an older main package
    may have older ones and nothing is newer than what was tried. What these need in turn is left to pip.
    The main package keeps its pin where another one's version is asked for: that is then the only thing that differs.
    """
    wanted = []
    for name, distribution in family.packages.items():
        pin = pins[_normal(distribution)]
        if name == package:
            wanted.append(f"{distribution}=={version}")
        else:
            wanted.append(f"{distribution}{'==' if name == family.main else '<='}{pin}")
    return tuple(wanted)


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
