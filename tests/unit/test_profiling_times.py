"""Self time and shares of the wall clock, against a count of single nanoseconds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetrial.profiling import times

INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 15)), min_size=1, max_size=25)


def arrays(found: list[tuple[int, int, int]]) -> tuple[times.Ints, times.Ints, times.Ints]:
    thread, start, duration = (np.array(values, dtype=np.int64) for values in zip(*found, strict=True))
    return thread, start, duration


def tick_by_tick(found: list[tuple[int, int, int]]) -> np.ndarray:
    """At each instant and on each thread: the interval that began last; of those that began together, the shortest."""
    owner = np.full((3, 60), -1)
    for thread in range(3):
        for tick in range(60):
            active = [i for i, (t, s, d) in enumerate(found) if t == thread and s <= tick < s + d]
            if active:
                owner[thread, tick] = max(active, key=lambda i: (found[i][1], -found[i][2], i))
    return owner


@given(INTERVALS)
def test_every_instant_belongs_to_the_interval_that_began_last(found: list[tuple[int, int, int]]) -> None:
    pieces, owner = times.pieces(*arrays(found)), tick_by_tick(found)
    expected = np.bincount(owner[owner >= 0], minlength=len(found))
    assert times.self_time(pieces, len(found)) == pytest.approx(expected)


@given(INTERVALS)
def test_shares_of_the_wall_add_up_to_the_union(found: list[tuple[int, int, int]]) -> None:
    thread, start, duration = arrays(found)
    owner = tick_by_tick(found)
    active = (owner >= 0).sum(axis=0)
    expected = np.zeros(len(found))
    for tick in np.flatnonzero(active):
        for index in owner[:, tick][owner[:, tick] >= 0]:
            expected[index] += 1 / active[tick]
    shares = times.wall_share(times.pieces(thread, start, duration), len(found))
    assert shares == pytest.approx(expected)
    assert shares.sum() == pytest.approx(times.union(start, start + duration))
    assert times.union(start, start + duration) == (active > 0).sum()


def test_overlapping_spans_of_one_thread_are_counted() -> None:
    thread = np.zeros(3, dtype=np.int64)
    assert times.overlaps(thread, np.array([0, 2, 20]), np.array([10, 4, 5])) == 0
    assert times.overlaps(thread, np.array([0, 8, 20]), np.array([10, 4, 5])) == 1
