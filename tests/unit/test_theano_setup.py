"""Theano's flags are added to, never overridden."""

from __future__ import annotations

import pytest

from timetrial_worker.adapters import theano_setup


def test_what_is_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEANO_FLAGS", "base_compiledir=/kept/here, floatX=float16")
    theano_setup.add(floatX="float32", blas__ldflags="-L/lib -lblas")
    assert theano_setup.given() == {
        "base_compiledir": "/kept/here", "floatX": "float16", "blas.ldflags": "-L/lib -lblas",
    }  # fmt: skip


def test_flags_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THEANO_FLAGS", raising=False)
    assert theano_setup.given() == {}
    theano_setup.add(openmp="False")
    assert theano_setup.given() == {"openmp": "False"}


def test_the_words_for_the_linker() -> None:
    assert theano_setup.link("/a/numpy.libs/libopenblasp-r0-34a1.3.7.so") == "-L/a/numpy.libs -lopenblasp-r0-34a1.3.7"
