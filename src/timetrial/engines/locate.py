"""Where an engine is: in an environment of its family, beside timetrial, or nowhere. No framework is ever imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from timetrial.disk.home import engines_home
from timetrial.engines import marker
from timetrial.engines.pins import recipe, served
from timetrial.engines.registry import ALIASES, ENGINES, FAMILIES, Asked, Engine, parse, same_version

Kind = Literal["environment", "beside", "missing"]


@dataclass(frozen=True)
class Located:
    """Where an engine was found. `problem` with a kind other than `missing` is a warning: it can still be used."""

    engine: Engine
    requested: str | None  # the version asked for
    version: str | None  # the version found
    interpreter: Path | None
    kind: Kind
    versions: dict[str, str]
    problem: str | None = None
    remedy: str | None = None
    broken: bool = False  # there is an environment, and it cannot be used
    folder: Path | None = None  # of the environment
    other: str | None = None  # the package that `requested` is of, where it is not the engine's first

    @property
    def name(self) -> str:
        return Asked(self.engine, self.requested, self.other).name

    @property
    def variables(self) -> dict[str, str]:
        """What a process of this engine has in its environment, besides what every run has."""
        return self.engine.variables(self.folder)


def locate(name: str) -> Located:
    """Find an engine: its family's environment first, then the packages beside timetrial."""
    asked = parse(name)
    looked = [_in_environment(asked, there) for there in _candidates(asked)]
    whole = next((found for found in looked if found.kind == "environment"), None)
    if whole is not None:
        return whole
    broken = next((found for found in looked if found.broken), None)
    beside = _beside(asked)
    if beside is None:
        return broken or _missing(asked)
    if broken is None:
        return beside
    problem = f"{broken.problem}; the packages beside timetrial are used"
    return replace(beside, problem=problem, remedy=broken.remedy)


def installed() -> tuple[Located, ...]:
    """Every engine there is, then the environments of particular versions found in the data folder."""
    names = list(ENGINES)
    if engines_home().is_dir():
        folders = sorted(path for path in engines_home().iterdir() if path.is_dir() and "@" in path.name)
        names += [asked.name for folder in folders for asked in served(folder.name) if _counts(asked, folder)]
    return tuple(locate(name) for name in names)


def _counts(asked: Asked, folder: Path) -> bool:
    """A version is made for one engine; that it does not suit another one of the family is no news."""
    made = marker.read(folder)
    return made is None or asked.engine.name not in made.broken or asked.engine.name == made.engine


def _candidates(asked: Asked) -> list[marker.Condition]:
    """The asked version's own environment, then the family's, which may happen to hold that version."""
    plan = recipe(asked)
    if plan is None:
        return []
    conditions = [marker.condition(engines_home() / plan.folder, plan.sha256)]
    plain = recipe(Asked(asked.engine, None))
    if plain is not None and plain.folder != plan.folder:
        conditions.append(marker.condition(engines_home() / plain.folder, plain.sha256))
    return conditions


def _in_environment(asked: Asked, there: marker.Condition) -> Located:
    redo = f"timetrial engines add {asked.name}"
    if there.state == "absent":
        return _missing(asked)
    if not there.usable or there.marker is None:
        return _missing(asked, there.problem, redo)
    there_is = _pick(asked.package, there.marker.versions)
    if asked.version is not None and (there_is is None or not same_version(asked.version, there_is)):
        return _missing(asked)
    if asked.engine.name in there.marker.broken:
        return _missing(asked, *there.marker.broken[asked.engine.name])
    return Located(
        asked.engine,
        asked.version,
        _pick(asked.engine.needs[0], there.marker.versions),
        marker.interpreter(there.folder),
        "environment",
        versions_of(asked.engine, there.marker.versions),
        there.problem,
        f"{redo} --again" if there.problem else None,
        folder=there.folder,
        other=asked.other,
    )


def versions_of(engine: Engine, recorded: dict[str, str]) -> dict[str, str]:
    """Of all distributions of an interpreter, those that matter to the engine."""
    found = {name: _pick(name, recorded) for name in engine.distributions}
    return {name: version for name, version in found.items() if version is not None}


def _pick(name: str, recorded: dict[str, str]) -> str | None:
    return next((recorded[alias] for alias in ALIASES.get(name, (name,)) if alias in recorded), None)


def _beside(asked: Asked) -> Located | None:
    engine = asked.engine
    newest = FAMILIES[engine.family].newest_python if engine.family else None
    if newest is not None and sys.version_info[:2] > newest:
        return None  # a package of that name is another major version
    if not all(_importable(name) for name in engine.needs):
        return None
    found = {name: _version_beside(name) for name in engine.distributions}
    version = found.get(engine.needs[0])
    if asked.version is not None and (version is None or not same_version(asked.version, version)):
        return None
    versions = {name: value for name, value in found.items() if value is not None}
    return Located(engine, asked.version, version, Path(sys.executable), "beside", versions)


def _importable(name: str) -> bool:
    """Whether a top-level package is there. A mere folder of that name, which Python would take for a namespace
    package, is not the framework."""
    try:
        spec = importlib.util.find_spec(name)
    except (ValueError, ImportError):
        return False
    return spec is not None and spec.origin is not None


def _version_beside(name: str) -> str | None:
    for alias in ALIASES.get(name, (name,)):
        try:
            return importlib.metadata.version(alias)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _missing(asked: Asked, problem: str | None = None, remedy: str | None = None) -> Located:
    if asked.engine.family is None:
        problem = problem or f"{', '.join(asked.engine.needs)} is not installed beside timetrial"
        if asked.version is not None:
            problem = f"{asked.name} is not the version beside timetrial, and it has no environment of its own"
        remedy = f"use {asked.engine.name} without a version, or install timetrial again"
    elif problem is None:
        main = FAMILIES[asked.engine.family].name
        problem = f"{asked.name} is neither in a {main} environment nor beside timetrial"
    broken = remedy is not None and asked.engine.family is not None
    remedy = remedy or f"timetrial engines add {asked.name}"
    return Located(asked.engine, asked.version, None, None, "missing", {}, problem, remedy, broken, other=asked.other)
