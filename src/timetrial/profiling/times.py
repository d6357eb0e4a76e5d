"""Of nested, parallel and overlapping intervals: who had each instant. Pure: arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """The time of each interval that no later one of its thread took over: `owner` is the interval's index."""

    owner: Ints
    start: Ints
    end: Ints


def pieces(thread: Ints, start: Ints, duration: Ints) -> Pieces:
    """On each thread an instant belongs to the interval that began last and still runs. Nested intervals come out with
    their self time; ones that overlap without nesting are never counted twice."""
    end = start + duration
    order = np.lexsort((-duration, start, thread))
    owners: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    stack: list[int] = []
    begin, finish, of = start.tolist(), end.tolist(), thread.tolist()

    def give(owner: int, since: int, until: int) -> None:
        if until > since:
            owners.append(owner)
            starts.append(since)
            ends.append(until)

    def close(since: int, until: int | None) -> int:
        """Everything that ends by `until` (None: everything); returns up to when instants are given out."""
        while stack and (until is None or finish[stack[-1]] <= until):
            top = stack.pop()
            give(top, since, finish[top])
            since = max(since, finish[top])
        return since

    cursor, current = 0, None
    for index in order.tolist():
        if of[index] != current:
            close(cursor, None)
            current, cursor = of[index], begin[index]
        cursor = close(cursor, begin[index])
        if stack:
            give(stack[-1], cursor, begin[index])
        cursor = max(cursor, begin[index])
        stack.append(index)
    close(cursor, None)
    return Pieces(*(np.array(values, dtype=np.int64) for values in (owners, starts, ends)))


def self_time(found: Pieces, count: int) -> Floats:
    return _summed(found.owner, (found.end - found.start).astype(np.float64), count)


def wall_share(found: Pieces, count: int) -> Floats:
    """Each instant is shared equally among the threads on which something runs; the sum is the union."""
    if not len(found.owner):
        return np.zeros(count)
    times, where = np.unique(np.concatenate([found.start, found.end]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    size = len(found.start)
    np.add.at(change, where[:size], 1)
    np.add.at(change, where[size:], -1)
    active = np.cumsum(change)[:-1]
    given = np.divide(np.diff(times).astype(float), active, out=np.zeros(len(active)), where=active > 0)
    so_far = np.concatenate([[0.0], np.cumsum(given)])
    return _summed(found.owner, so_far[where[size:]] - so_far[where[:size]], count)


def _summed(owner: Ints, values: Floats, count: int) -> Floats:
    found = np.zeros(count)
    np.add.at(found, owner, values)
    return found


def union(start: Ints, end: Ints) -> int:
    """How long at least one of the intervals runs."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    gaps = np.maximum(start[1:] - reach[:-1], 0)
    return int(reach[-1] - start[0] - gaps.sum())


def overlaps(thread: Ints, start: Ints, duration: Ints) -> int:
    """Intervals of a thread that begin within another and outlast it: no thread can have done that."""
    end, order = start + duration, np.lexsort((-duration, start, thread))
    found, stack, current = 0, list[int](), None
    for index in order.tolist():
        if thread[index] != current:
            current, stack = thread[index], []
        while stack and stack[-1] <= start[index]:
            stack.pop()
        if stack and end[index] > stack[-1]:
            found += 1
        stack.append(int(end[index]))
    return found
