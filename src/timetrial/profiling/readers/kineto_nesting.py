"""What stands within what: spans of the same thread, one pass over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from timetrial.profiling.readers.kineto_columns import DEVICE, HOST, LAUNCH, MEMORY, Columns

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Nesting:
    """Of each row of a trace."""

    mark: Ints  # the innermost range around it, itself included; -1 for none
    owner: Ints  # the innermost operation, itself included
    node: Ints  # in backward, the number of the forward operation
    forward: NDArray[np.bool_]  # an operation that has such a number


def nest(read_in: Columns, own: Ints, is_op: NDArray[np.bool_], backward: NDArray[np.bool_]) -> Nesting:
    """`own` is the range that a row is; `backward` says of each range (and last, of none) whether it runs backward."""
    rows = np.flatnonzero(read_in.kind != DEVICE)
    rows = rows[np.lexsort((-read_in.duration[rows], read_in.start[rows], read_in.thread[rows]))]
    size = len(read_in.kind)
    mark, owner, node = ([-1] * (size + 1) for _ in range(3))  # the last stands for what is within nothing
    point = (read_in.kind == MEMORY) | (read_in.kind == LAUNCH)
    end, number = read_in.start + read_in.duration, np.where(read_in.kind == HOST, read_in.number, -1)
    given = (
        rows,
        read_in.thread[rows],
        read_in.start[rows],
        end[rows],
        own[rows],
        is_op[rows],
        number[rows],
        point[rows],
    )
    runs_back, stack, ends, current = backward.tolist(), [-1], [np.iinfo(np.int64).max], -1
    for row, thread, start, finish, mine, op, sequence, instant in zip(*(each.tolist() for each in given), strict=True):
        if thread != current:
            current = thread
            del stack[1:], ends[1:]
        while ends[-1] <= start:
            stack.pop()
            ends.pop()
        around = stack[-1]
        mark[row] = here = mine if mine >= 0 else mark[around]
        owner[row] = row if op else owner[around]
        node[row] = sequence if sequence >= 0 and runs_back[here] else node[around]
        if not instant:
            stack.append(row)
            ends.append(finish)
    marks, owners, nodes = (np.array(each[:-1], np.int64) for each in (mark, owner, node))
    return Nesting(marks, owners, nodes, (number >= 0) & is_op & ~backward[marks])


def last_of_each(key: Ints, rows: Ints, wanted: Ints) -> Ints:
    """For each wanted key the last of `rows` that has it; -1 where none has."""
    if not len(rows):
        return np.full(len(wanted), -1, np.int64)
    ordered = rows[np.argsort(key[rows], kind="stable")]
    keys = key[ordered]
    found = np.searchsorted(keys, wanted, side="right") - 1
    return np.where((found >= 0) & (keys[np.maximum(found, 0)] == wanted), ordered[np.maximum(found, 0)], -1)
