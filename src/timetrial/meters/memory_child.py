"""The memory sampler itself, a program of its own: follows a process tree until it is told to stop.

python memory_child.py INTERVAL CORE,CORE,…     lines in: {"follow": PID}, {"stop": true}; lines out: what was found

Sizes are summed over the tree at one instant, and of the sums the largest is kept. The sizes are looked at in every
interval; who belongs to the tree only in every fifth, because that takes one read a thread. A process counts from the
interval after it was found: between fork and exec it would be shown with its parent's memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time

TREE_EVERY = 5  # intervals


class Tree:
    """A process and its descendants, their files kept open."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.files: dict[int, int] = {}
        self.add(root)

    def add(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            self.files[pid] = os.open(f"/proc/{pid}/statm", os.O_RDONLY)

    def resident(self) -> int:
        """Pages of all of them; what has ended is left out from now on."""
        total = 0
        for pid, file in list(self.files.items()):
            pages = _pages(file)
            total += pages
            if not pages:
                os.close(self.files.pop(pid))
        return total

    def grow(self) -> None:
        todo, seen = [self.root], {self.root}
        while todo:
            for child in _children(todo.pop()):
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
                if child not in self.files:
                    self.add(child)

    def close(self) -> None:
        for file in self.files.values():
            os.close(file)
        self.files.clear()


def _pages(file: int) -> int:
    """None resident: ended, and perhaps not yet waited for."""
    try:
        return int(os.pread(file, 128, 0).split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


class Lines:
    """Whole lines of the standard input, and whether there is one, without a buffer that would hide it."""

    def __init__(self) -> None:
        self.kept = b""

    def wait(self, seconds: float | None) -> bytes | None:
        """The next line; b"" where the input is at its end, None where none came in time."""
        while b"\n" not in self.kept:
            ready, _, _ = select.select([0], [], [], seconds)
            if not ready:
                return None
            chunk = os.read(0, 4096)
            if not chunk:
                return b""
            self.kept += chunk
        line, _, self.kept = self.kept.partition(b"\n")
        return line


def follow(pid: int, lines: Lines, interval: float) -> dict[str, float] | None:
    """Until a line comes or the tree has ended; None where the input has ended."""
    tree, page = Tree(pid), os.sysconf("SC_PAGE_SIZE")
    most, most_processes, samples, longest = 0, 0, 0, 0.0
    busy, start = time.process_time(), time.perf_counter()
    last = due = start
    line: bytes | None = None
    while line is None:
        pages, processes, now = tree.resident(), len(tree.files), time.perf_counter()
        if pages:
            most, most_processes = max(most, pages), max(most_processes, processes)
            longest = max(longest, now - last) if samples else longest
            samples, last = samples + 1, now
        if not tree.files:
            break
        if samples % TREE_EVERY == 1:
            tree.grow()
        due = max(due + interval, time.perf_counter())  # what was missed is not made up for
        line = lines.wait(max(due - time.perf_counter(), 0.0))
    seconds = time.perf_counter() - start
    tree.close()
    used = time.process_time() - busy
    while line is None:
        line = lines.wait(None)
    if line == b"":
        return None
    return {
        "resident": most * page, "processes": most_processes, "samples": samples, "longest_gap": longest,
        "seconds": seconds, "cpu_seconds": used,
    }  # fmt: skip


def main(interval: float, cores: set[int]) -> None:
    if cores:
        os.sched_setaffinity(0, cores)
    lines = Lines()
    print(json.dumps("ready"), flush=True)
    while line := lines.wait(None):
        asked = json.loads(line)
        if "follow" in asked:
            found = follow(asked["follow"], lines, interval)
            if found is None:
                return
            print(json.dumps(found), flush=True)
        else:
            print(json.dumps(None), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), {int(word) for word in sys.argv[2].split(",") if word})
