"""Percent of what the machine can do, from the session that the runs were made in."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.unit import made_records as made
from timetrial.meters.limits import Attempt, MachineLimits
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report.ceiling import ceilings, sentences
from timetrial.report.html import page
from timetrial.report.summary import summarise
from timetrial.report.terminal import group_table


def attempt(rate: float, engine: str = "torch", threads: int = 2, dtype: str = "float32") -> Attempt:
    return Attempt("product", engine, "1.0", "cpu", threads, dtype, 1024, rate)


LIMITS = MachineLimits(
    (attempt(50e9, "jax"), attempt(100e9), attempt(900e9, threads=16), attempt(5e9, dtype="float64"))
)


def runs(operations: int = 20_000_000, session: str = "s") -> list[Record]:
    return made.runs("jax", 1e-3, cell={"operations": operations}, session=session)


def test_a_cell_is_held_against_the_best_product_of_its_precision_and_threads() -> None:
    """20 million operations in a millisecond are 20 of the 100 GFLOP/s that the best library reached."""
    (group,) = summarise(runs(), {"s": LIMITS})
    assert group.rows[0].limit == pytest.approx(20.0, rel=0.01)


def test_another_sessions_limit_says_nothing() -> None:
    (group,) = summarise(runs(), {"other": LIMITS})
    assert group.rows[0].limit is None


def test_what_was_not_measured_or_not_counted_is_none() -> None:
    (group,) = summarise(runs(), {"s": MachineLimits(())})
    assert group.rows[0].limit is None
    (bare,) = summarise(made.runs("jax", 1e-3, session="s"), {"s": LIMITS})
    assert bare.rows[0].limit is None


def test_limits_lie_beside_the_records_and_are_shown_with_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for record in runs():
        store.write(record)
    store.keep_session(made.STUDY, "s", {"limits": asdict(LIMITS)})
    store.keep_session(made.STUDY, "t", {"limits": None})
    (tmp_path / made.STUDY / "sessions" / "broken.json").write_text("{")
    known = ceilings(store, made.STUDY)
    assert known == {"s": LIMITS}
    assert "float32 on cpu, 2 threads: 100 GFLOP/s (torch 1.0, 1024 x 1024)" in sentences(known)
    text = page(made.STUDY, "", summarise(runs(), known), runs(), tmp_path)
    assert "100 GFLOP/s" in text and "20 %" in text


def test_the_terminal_has_the_column_only_where_there_is_something_in_it() -> None:
    from rich.console import Console

    def shown(known: dict[str, MachineLimits]) -> str:
        console = Console(width=200, record=True, file=io.StringIO())
        for group in summarise(runs(), known):
            console.print(group_table(group))
        return console.export_text()

    assert "of the limit" in shown({"s": LIMITS})
    assert "of the limit" not in shown({})
