"""Which engines and families there are: pure data. Adding an engine is adding one entry.

`NAME@VERSION` asks for a version of the engine's first `needs` package: `torch@2.9.1` is torch 2.9.1, and
`keras-jax@3.12.0` is keras 3.12.0 on the family's pinned jax. In a family of several frameworks another needed package
may be named instead: `keras2-cntk@cntk-2.5.1` is the pinned keras on CNTK 2.5.1.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from timetrial.engines import checks

VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?")
LINKS = "lib/timetrial"  # in an environment: links to the shared libraries of the system that its engines ask for


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


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
    newest_python: tuple[int, int] | None = None  # None: newer ones are tried as they come
    compiler: str | None = None  # a command without which some of its engines cannot work

    @property
    def main(self) -> str | None:
        """The package that the family is named after; None where several frameworks share one environment."""
        return self.name if self.name in self.packages else None


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
    backend_env: Mapping[str, str] = field(
        default_factory=_nothing
    )  # `{folder}` in a value is the environment's folder
    libraries: Mapping[str, str] = field(
        default_factory=_nothing
    )  # shared libraries it asks for, each with the system's that serves
    major: str | None = None  # versions that begin otherwise are another engine
    tasks: tuple[str, ...] = ("train", "infer")
    loops: tuple[str, ...] = ("step",)
    ranked: bool = True  # False: correct on purpose, slow on purpose, kept out of comparisons of time

    def variables(self, folder: Path | None) -> dict[str, str]:
        """What a process of this engine has in its environment, where the engine lives in this folder."""
        found = {name: value.replace("{folder}", str(folder)) for name, value in self.backend_env.items()}
        if self.libraries:
            places = (f"{folder}/{LINKS}", os.environ.get("LD_LIBRARY_PATH", ""))
            found["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, places))
        return found


@dataclass(frozen=True)
class Asked:
    """What a name such as `torch@2.9.1` asks for."""

    engine: Engine
    version: str | None
    other: str | None = None  # the needed package whose version it is, where it is not the first

    @property
    def package(self) -> str:
        return self.other or self.engine.needs[0]

    @property
    def name(self) -> str:
        lead = f"{self.other}-" if self.other else ""
        return self.engine.name if self.version is None else f"{self.engine.name}@{lead}{self.version}"


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


def _keras2(backend: str, title: str, **more: Any) -> Engine:
    # Early versions know no KERAS_HOME and read ~/.keras, so the home is another one too.
    own = {"KERAS_BACKEND": backend, "KERAS_HOME": "{folder}/cache/.keras", "HOME": "{folder}/cache"}
    return Engine(
        name=f"keras2-{backend}",
        adapter=f"keras2-{backend}",
        family="originals",
        needs=("keras", backend),
        distributions=("keras", backend, "numpy"),
        summary=f"Keras 2 on {title}",
        check=checks.KERAS2,
        backend_env=MappingProxyType({**own, **more.pop("backend_env", {})}),
        loops=("step", "fit"),
        major="2",
        **more,
    )


# What Theano compiles is kept in the environment. Processes share it: Theano locks it, and each of a study's processes
# would otherwise compile the same C++ again.
_THEANO = {"THEANO_FLAGS": "base_compiledir={folder}/cache/theano", "THEANORC": "{folder}/cache/theanorc"}
_MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

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
    Family("sklearn", {"sklearn": "scikit-learn", "numpy": "numpy", "scipy": "scipy"}, (3, 10), (3, 11), 300),
    Family(
        "originals",
        {name: name for name in ("theano", "tensorflow", "keras", "cntk", "numpy", "h5py")},
        (3, 6),
        (3, 6),
        980,
        newest_python=(3, 6),
        compiler="g++",
    ),
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
        "sklearn",
        "sklearn",
        "sklearn",
        ("sklearn",),
        ("sklearn", "scipy", "numpy"),
        "scikit-learn's multi-layer perceptron",
        checks.SKLEARN,
    ),
    Engine(
        "theano",
        "theano",
        "originals",
        ("theano",),
        ("theano", "numpy"),
        "Theano, compiled to C++",
        checks.THEANO,
        backend_env=MappingProxyType(_THEANO),
    ),
    Engine(
        "tensorflow1",
        "tensorflow1",
        "originals",
        ("tensorflow",),
        ("tensorflow", "numpy"),
        "TensorFlow 1, graph and session",
        checks.TENSORFLOW1,
        major="1",
    ),
    _keras2("theano", "Theano", backend_env=_THEANO),
    _keras2("tensorflow", "TensorFlow 1"),
    _keras2(
        "cntk",
        "CNTK",
        backend_env=_MPI_AS_ROOT,
        libraries=MappingProxyType({"libmpi.so.12": "libmpi.so.40", "libmpi_cxx.so.1": "libmpi_cxx.so.40"}),
    ),
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
    {
        "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tensorflow-intel", "tf-nightly"),
        "sklearn": ("scikit-learn",),
    }
)


def parse(name: str) -> Asked:
    """The engine and version that `torch` or `torch@2.9.1` asks for."""
    word, at, label = name.strip().partition("@")
    if word not in ENGINES:
        raise UnknownEngine(f"there is no engine '{word}'; {advice(word, ENGINES)}")
    engine = ENGINES[word]
    if not at:
        return Asked(engine, None)
    package, _, version = label.rpartition("-")
    if not VERSION.fullmatch(version) or package not in ("", *_packages(engine)):
        raise UnknownEngine(f"'{label}' in '{name}' is no version; write the engine as {word}@1.2.3 or {word}")
    asked = (
        Asked(engine, version, package if package != engine.needs[0] else None) if package else Asked(engine, version)
    )
    if engine.major and asked.other is None and version.split(".")[0] != engine.major:
        raise UnknownEngine(f"{word} is {engine.needs[0]} {engine.major}; '{version}' in '{name}' is not of it")
    return asked


def advice(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(known)


def _packages(engine: Engine) -> tuple[str, ...]:
    """The packages whose version may be named: any that is needed, in a family of several frameworks."""
    several = engine.family is not None and FAMILIES[engine.family].main is None
    return engine.needs if several else ()


def same_version(asked: str, found: str) -> bool:
    """Whether a found version answers the asked one: 2.13.0 is answered by 2.13.0+cpu, 2.13 by 2.13.0."""
    if "+" not in asked:
        found = found.partition("+")[0]
    return _without_zeros(asked) == _without_zeros(found)


def _without_zeros(version: str) -> str:
    release, plus, local = version.partition("+")
    return re.sub(r"(\.0)+$", "", release) + plus + local
