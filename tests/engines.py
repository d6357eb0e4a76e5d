"""Which engines the tests find on this machine; what is missing is skipped with its remedy, visibly."""

from __future__ import annotations

from pathlib import Path

import pytest

from timetrial.engines.locate import Located, locate

TODAY = ("torch", "tensorflow", "jax", "keras-torch", "keras-tensorflow", "keras-jax")
KERAS2 = ("keras2-theano", "keras2-tensorflow", "keras2-cntk")
ORIGINALS = ("theano", "tensorflow1", *KERAS2)


def find(engine: str) -> Located:
    """The engine, or a skip that says how to get it. `make test` installs all that this machine can have first."""
    located = locate(engine)
    if located.interpreter is None:
        pytest.skip(f"{engine}: {located.problem}; {located.remedy}")
    return located


def interpreter(engine: str) -> Path:
    path = find(engine).interpreter
    assert path is not None
    return path
