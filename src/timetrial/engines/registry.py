"""Which engines and families there are: pure data. Adding an engine is adding one entry.

`NAME@VERSION` asks for a version of the engine's first `needs` package: `torch@2.9.1` is torch 2.9.1, and
`keras-jax@3.12.0` is keras 3.12.0 on the family's pinned jax.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from timetrial.engines import checks

VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?")


class UnknownEngine(ValueError):
    """No engine has this name, or what follows the `@` is no version."""


@dataclass(frozen=True)
class Family:
    """Engines that share an environment. `packages` maps each import name to the distribution that brings it."""

    name: str
    packages: Mapping[str, str]  # the first is the main one; these are asked for, pip finds what they need
    python: tuple[int, int]  # the oldest Python for any version
    pinned_python: tuple[int, int]  # the oldest Python that the shipped pins accept
    megabytes: int  # on disk, measured on Linux with CPU wheels
    brings_cuda: bool = False  # the index's Linux wheel pulls in the CUDA libraries

    @property
    def main(self) -> str:
        """The import name of the main package."""
        return next(iter(self.packages))


@dataclass(frozen=True)
class Engine:
    """A framework that can run workloads. `adapter` is the worker's name for what drives it."""

    name: str
    adapter: str
    family: str | None  # None: runs in the parent's own interpreter
    needs: tuple[str, ...]  # import names; the first is the one whose version is the engine's
    distributions: tuple[str, ...]  # whose versions are recorded
    summary: str
    check: str  # a small training step, see `checks`
    backend_env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tasks: tuple[str, ...] = ("train", "infer")
    loops: tuple[str, ...] = ("step",)
    ranked: bool = True  # False: correct on purpose, slow on purpose, kept out of comparisons of time


@dataclass(frozen=True)
class Asked:
    """What a name such as `torch@2.9.1` asks for."""

    engine: Engine
    version: str | None

    @property
    def name(self) -> str:
        return self.engine.name if self.version is None else f"{self.engine.name}@{self.version}"


def _keras(backend: str, distribution: str, title: str) -> Engine:
    return Engine(
        name=f"keras-{backend}",
        adapter=f"keras-{backend}",
        family=backend,
        needs=("keras", backend),
        distributions=("keras", *(("jax", "jaxlib") if backend == "jax" else (distribution,)), "numpy"),
        summary=f"Keras 3 on {title}",
        check=checks.KERAS,
        backend_env=MappingProxyType({"KERAS_BACKEND": backend}),
        loops=("step", "fit"),
    )


_FAMILIES = (
    Family("torch", {"torch": "torch", "keras": "keras", "numpy": "numpy"}, (3, 10), (3, 11), 1033, brings_cuda=True),
    Family(
        "tensorflow",
        {"tensorflow": "tensorflow-cpu", "keras": "keras", "numpy": "numpy"},
        (3, 10),
        (3, 11),
        1544,
    ),
    Family("jax", {"jax": "jax", "keras": "keras", "numpy": "numpy"}, (3, 10), (3, 11), 688),
)

_ENGINES = (
    Engine("torch", "torch", "torch", ("torch",), ("torch", "numpy"), "PyTorch", checks.TORCH),
    Engine(
        "tensorflow",
        "tensorflow",
        "tensorflow",
        ("tensorflow",),
        ("tensorflow", "numpy"),
        "TensorFlow 2, its own layers and gradient tape",
        checks.TENSORFLOW,
    ),
    Engine("jax", "jax", "jax", ("jax", "jaxlib"), ("jax", "jaxlib", "numpy"), "JAX, compiled by XLA", checks.JAX),
    _keras("torch", "torch", "PyTorch"),
    _keras("tensorflow", "tensorflow", "TensorFlow"),
    _keras("jax", "jax", "JAX"),
    Engine(
        "reference",
        "reference",
        None,
        ("numpy",),
        ("numpy",),
        "NumPy in float64: says what is right, never ranked",
        checks.REFERENCE,
        ranked=False,
    ),
)

FAMILIES: Mapping[str, Family] = MappingProxyType({family.name: family for family in _FAMILIES})
ENGINES: Mapping[str, Engine] = MappingProxyType({engine.name: engine for engine in _ENGINES})

# One package under several distribution names: any of them brings the import name.
ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tensorflow-intel", "tf-nightly")}
)


def parse(name: str) -> Asked:
    """The engine and version that `torch` or `torch@2.9.1` asks for."""
    word, at, version = name.strip().partition("@")
    if word not in ENGINES:
        close = difflib.get_close_matches(word, ENGINES, n=1)
        advice = f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(ENGINES)
        raise UnknownEngine(f"there is no engine '{word}'; {advice}")
    if at and not VERSION.fullmatch(version):
        raise UnknownEngine(f"'{version}' in '{name}' is no version; write the engine as {word}@1.2.3 or {word}")
    return Asked(ENGINES[word], version if at else None)


def same_version(asked: str, found: str) -> bool:
    """Whether a found version answers the asked one: 2.13.0 is answered by 2.13.0+cpu, 2.13 by 2.13.0."""
    if "+" not in asked:
        found = found.partition("+")[0]
    return _without_zeros(asked) == _without_zeros(found)


def _without_zeros(version: str) -> str:
    release, plus, local = version.partition("+")
    return re.sub(r"(\.0)+$", "", release) + plus + local
