"""Numbers below the normal range: what an engine does with them is tried, and a wish that it cannot follow refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from timetrial_worker import tiny
from timetrial_worker.adapters.base import Adapter, Unsupported
from timetrial_worker.adapters.reference import Reference

LEAST_NORMAL = float(np.finfo(np.float32).tiny)


class Engine(Adapter):
    """`zeros`: how many of the halves it takes for zero; None: it has no way to be asked."""

    name = "made"

    def __init__(self, zeros: int | None, flush: bool | None = None) -> None:
        Adapter.__init__(self, {"flush": flush})
        self.zeros = zeros

    def readback(self) -> dict[str, Any]:
        return {"device": "cpu"}

    def halved(self, values: Any) -> Any:
        assert values.dtype == np.float32
        assert np.all((values > 0) & (values < LEAST_NORMAL))
        if self.zeros is None:
            return None
        halves = values * np.float32(0.5)
        halves[: self.zeros] = 0
        return halves


@pytest.mark.parametrize(
    ("zeros", "found"), [(0, False), (tiny.VALUES, True), (tiny.VALUES // 2, "partly"), (None, None)]
)
def test_what_an_engine_does_is_tried_and_read_back(zeros: int | None, found: Any) -> None:
    assert tiny.readback(Engine(zeros)) == {"device": "cpu", "flush": found}


@pytest.mark.parametrize(("zeros", "asked"), [(0, False), (tiny.VALUES, True)])
def test_a_wish_that_was_followed(zeros: int, asked: bool) -> None:
    assert tiny.readback(Engine(zeros, asked))["flush"] is asked


@pytest.mark.parametrize(
    ("zeros", "asked", "reason"),
    [
        (tiny.VALUES, False, "made takes for zero all numbers below 1.2e-38 and cannot be set to flush: false"),
        (0, True, "made computes with numbers below"),
        (1, True, "made treats differently from thread to thread numbers below"),
        (None, True, "made does not tell what it does with numbers below"),
    ],
)
def test_a_wish_that_was_not_followed_is_no_other_setting(zeros: int | None, asked: bool, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        tiny.readback(Engine(zeros, asked))


def test_numpy_keeps_them() -> None:
    assert tiny.flushed(Reference({})) is False
