"""The machine's limits: what the worker tries and tells, which attempt is the best, and percent of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.unit.test_grade import CPU, GIB, MACHINE
from timetrial.meters import limits as meter
from timetrial.meters.hardware import Limits, Memory
from timetrial.meters.limits import (
    Attempt,
    MachineLimits,
    Question,
    array_bytes,
    attempts_of,
    measure,
    percent_of_limit,
    questions,
)
from timetrial.meters.processor import Caches
from timetrial.spec.placement import Placement
from timetrial_worker import adapters, limits
from timetrial_worker.adapters.base import Adapter, Unsupported


class Machine:
    """A clock that products move: so many operations a second, and a first call that compiles for a second."""

    def __init__(self, rate: float) -> None:
        self.now, self.rate, self.calls, self.compiled = 0.0, rate, 0, False

    def clock(self) -> float:
        return self.now

    def multiplier(self, dtype: str, size: int) -> Callable[[int], None]:
        if dtype == "float16":
            raise Unsupported("no float16 here")

        def multiply(count: int) -> None:
            self.now += 0.0 if self.compiled else 1.0
            self.compiled, self.calls = True, self.calls + count
            self.now += count * 2 * size**3 / self.rate

        return multiply


class Told(list[dict[str, Any]]):
    def tell(self, event: str, **fields: Any) -> None:
        self.append({"event": event, **fields})


# --- in the worker ------------------------------------------------------------------------------------------------------


def test_the_rate_is_found_and_compiling_is_not_timed() -> None:
    machine, told = Machine(1e9), Told()
    limits.products(machine, "float32", [64, 128], told.tell, machine.clock)
    assert [(one["size"], one["rate"]) for one in told] == [(64, pytest.approx(1e9)), (128, pytest.approx(1e9))]
    assert told[0]["seconds"] == pytest.approx(2 * 64**3 / 1e9)


def test_laps_are_long_enough_for_the_clock() -> None:
    machine, told = Machine(1e12), Told()
    limits.products(machine, "float32", [64], told.tell, machine.clock)
    assert machine.now - 1.0 >= limits.LAPS * limits.LAP_SECONDS
    assert machine.calls > 1000


def test_a_size_that_would_take_too_long_is_left_out() -> None:
    machine, told = Machine(1e8), Told()
    limits.products(machine, "float32", [256, 512, 1024], told.tell, machine.clock)  # 0.34 s, 2.7 s, 21 s
    assert [one["size"] for one in told] == [256]


def test_a_dtype_that_there_is_not_is_told_once() -> None:
    told = Told()
    limits.products(Machine(1e9), "float16", [64, 128], told.tell)
    assert told == [{"event": "no_product", "dtype": "float16", "reason": "no float16 here"}]


def test_numpy_multiplies_and_copies_here() -> None:
    adapter, told = adapters.load("reference", {"threads": 1}), Told()
    limits.products(adapter, "float64", [32], told.tell)
    limits.products(adapter, "bfloat16", [32], told.tell)
    limits.bandwidth(2, 2**20, told.tell)
    product, no_product, copy, add = told
    assert product["rate"] > 1e6
    assert "NumPy has no bfloat16" in no_product["reason"]
    assert (copy["kernel"], add["kernel"]) == ("copy", "add")
    assert copy["rate"] > 1e6


def test_every_byte_is_copied_and_added_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sweep covers the whole arrays; the counted bytes are those of a sweep."""
    seen: list[int] = []
    monkeypatch.setattr(limits, "_copy", lambda part: seen.append(part[2].size) or np.copyto(part[2], part[0]))
    told, now = Told(), iter(range(10**6))
    limits.bandwidth(3, 8 * 1000, told.tell, lambda: float(next(now)))
    assert sum(seen[:3]) == 1000
    assert told[0]["rate"] == 2 * 8000 / 1.0
    assert told[1]["rate"] == 3 * 8000 / 1.0


def test_an_engine_without_a_product_of_its_own_says_so() -> None:
    with pytest.raises(Unsupported, match="backend"):
        Adapter({}).multiplier("float32", 8)


# --- in the parent ------------------------------------------------------------------------------------------------------

ONE, TWO, GPU = Placement(), Placement(threads=2), Placement(device="cuda:0")


def test_numpy_is_asked_on_every_number_of_threads_and_alone_copies() -> None:
    asked = questions(["torch", "jax"], [ONE, TWO, ONE, GPU], MACHINE)
    assert [(one.engine, str(one.placement)) for one in asked] == [
        ("reference", "cpu"), ("torch", "cpu"), ("jax", "cpu"),
        ("reference", "cpu:2"), ("torch", "cpu:2"), ("jax", "cpu:2"),
        ("torch", "cuda:0"), ("jax", "cuda:0"),
    ]  # fmt: skip
    assert [bool(one.job["copy_bytes"]) for one in asked] == [one.engine == "reference" for one in asked]
    assert asked[3].job["settings"]["threads"] == 2
    assert asked[-1].job["sizes"] == meter.GPU_SIZES
    assert all(
        one.job["mode"] == "limits" and one.job["sizes"] == sorted(one.job["sizes"]) for one in map(listed, asked)
    )


def listed(question: Question) -> Question:
    return replace(question, job={**question.job, "sizes": list(question.job["sizes"])})


@pytest.mark.parametrize(
    ("l3", "available", "limit", "expected"),
    [
        (32 * 2**20, 12 * GIB, None, 128 * 2**20),
        (None, 12 * GIB, None, 64 * 2**20),
        (480 * 2**20, 64 * GIB, None, 256 * 2**20),
        (480 * 2**20, GIB, None, 128 * 2**20),
        (480 * 2**20, 64 * GIB, GIB, 128 * 2**20),
    ],
)
def test_arrays_are_larger_than_the_cache_and_fit(l3: int, available: int, limit: int, expected: int) -> None:
    machine = replace(
        MACHINE,
        cpu=replace(CPU, caches=Caches(None, None, l3)),
        memory=Memory(available, available, 0, 0),
        limits=Limits(2, None, limit),
    )
    assert array_bytes(machine) == expected


def events(*told: dict[str, Any], kind: str = "ok") -> list[dict[str, Any]]:
    started = {"event": "started", "versions": {"torch": "2.13.0", "numpy": "2"}}
    return [started, *told, {"event": "outcome", "kind": kind, "reason": "because"}]


def product(dtype: str, size: int, rate: float) -> dict[str, Any]:
    return {"event": "product", "dtype": dtype, "size": size, "seconds": 1.0, "rate": rate}


def ask(engine: str = "torch", placement: Placement = ONE) -> Question:
    return Question(engine, placement, {})


def test_all_attempts_are_kept_and_the_best_is_of_any_library() -> None:
    copied = {"event": "bandwidth", "kernel": "add", "bytes": 8, "seconds": 1.0, "rate": 9e9}
    answers = {
        "reference": events(product("float32", 512, 4e10), copied),
        "torch": events(product("float32", 512, 5e10), product("float32", 1024, 7e10), product("bfloat16", 512, 9e11)),
    }

    def start(question: Question) -> Sequence[dict[str, Any]]:
        return answers[question.engine]

    found = measure([ask("reference"), ask("torch")], start)
    assert len(found.attempts) == 5
    assert found.missing == ()
    best = found.best("float32", 1)
    assert best == Attempt("product", "torch", "2.13.0", "cpu", 1, "float32", 1024, 7e10)
    assert found.best("float64", 1) is None
    assert found.best("float32", 2) is None  # one thread's limit is no limit of two
    copy = found.bandwidth(1)
    assert copy is not None and copy.rate == 9e9
    assert found.bandwidth(1, "copy") is None


def test_an_engine_that_fails_lacks_its_attempts_and_says_why() -> None:
    found = measure([ask()], lambda question: [])
    assert found == MachineLimits((), ("torch on cpu: no result; not measured",))
    found = measure([ask(placement=TWO)], lambda question: events(product("float32", 8, 1.0), kind="oom"))
    assert len(found.attempts) == 1
    assert found.missing == ("torch on cpu:2: oom: because; the attempts before it are kept",)
    nothing = [{"event": "no_product", "dtype": dtype, "reason": "none"} for dtype in ("float32", "float64")]
    found = measure([ask()], lambda question: events(*nothing))
    assert found.missing == ("torch on cpu, float32, float64: none",)


def test_an_engine_that_never_started_has_no_version() -> None:
    assert attempts_of(ask(), [product("float32", 8, 1.0)])[0].version == ""


def test_percent_of_the_limit() -> None:
    best = Attempt("product", "torch", "2", "cpu", 1, "float32", 512, 1e10)
    assert percent_of_limit(2e9, 0.5, best) == pytest.approx(40.0)
    assert percent_of_limit(2e9, 0.5, None) is None
    assert percent_of_limit(2e9, None, best) is None
    assert percent_of_limit(0, 0.5, best) is None  # a network without a product has no percent of one
