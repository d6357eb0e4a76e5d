"""The memory sampler: follows real process trees, takes the largest sum, and survives whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from timetrial.meters.memory import METHODS, MemorySampler, Peak, elsewhere, figures
from timetrial_worker.wire import Wire

MIB = 2**20
# Tells when it is ready, holds so many MiB until it is told to go on, frees them, and holds fewer.
HOLDS = """
import sys
block = bytearray(b"x") * ({most} * 2**20)
print("ready", flush=True); sys.stdin.readline()
del block
block = bytearray(b"x") * ({then} * 2**20)
print("ready", flush=True); sys.stdin.readline()
"""
# Two children in turn, each as large, and never both at once.
IN_TURN = """
import subprocess, sys
child = 'import sys; b = bytearray(b"x") * (60 * 2**20); print(1, flush=True); sys.stdin.readline()'
for _ in range(2):
    one = subprocess.Popen([sys.executable, "-S", "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    one.stdout.readline()
    print("ready", flush=True); sys.stdin.readline()
    one.communicate(b"\\n")
print("ready", flush=True); sys.stdin.readline()
"""
FORKS = """
import os, sys
inner, outer = os.pipe()
if os.fork() == 0:
    block = bytearray(b"x") * (80 * 2**20)
    os.write(outer, b"1")
    sys.stdin.readline()
    os._exit(0)
os.read(inner, 1)
print("ready", flush=True)
os.wait()
"""


class Program:
    def __init__(self, source: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.pid = self.process.pid

    def wait(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    def resident(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def program(source: str) -> Iterator[Program]:
    made = Program(source)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def looked(sampler: MemorySampler, made: Program) -> None:
    """Long enough for the sampler to have seen the tree several times, whatever else the machine does."""
    made.wait()
    time.sleep(0.4)


def test_the_largest_size_is_kept_and_not_the_last() -> None:
    with MemorySampler() as sampler, program(HOLDS.format(most=120, then=10)) as made:
        sampler.follow(made.pid)
        looked(sampler, made)
        most = made.resident()
        made.go_on()
        looked(sampler, made)
        last = made.resident()
        peak = sampler.stop()
    assert peak is not None
    assert most > 120 * MIB > last
    assert peak.resident == pytest.approx(most, abs=2 * MIB)
    assert peak.processes == 1
    assert peak.samples > 10
    assert 0.01 <= peak.longest_gap < peak.seconds
    assert 0 <= peak.cpu_share < 1
    assert "every 10 ms" in peak.method


def test_children_are_summed_at_one_instant_and_never_over_time() -> None:
    with MemorySampler() as sampler, program(IN_TURN) as made:
        sampler.follow(made.pid)
        for _ in range(3):
            looked(sampler, made)
            made.go_on()
        peak = sampler.stop()
    assert peak is not None
    assert peak.processes == 2
    assert 60 * MIB < peak.resident < 110 * MIB  # one child and its parent; both children would be over 120


def test_a_child_that_was_forked_counts() -> None:
    with MemorySampler() as sampler, program(FORKS) as made:
        sampler.follow(made.pid)
        looked(sampler, made)
        own = made.resident()
        peak = sampler.stop()
    assert peak is not None
    assert peak.processes == 2
    assert peak.resident > own + 80 * MIB


def test_a_run_that_has_ended_before_the_first_sample_is_not_measured() -> None:
    with program("pass") as made:
        made.process.wait()
        with MemorySampler() as sampler:
            sampler.follow(made.pid)
            assert sampler.stop() is None


def test_one_that_ends_while_it_is_followed_keeps_its_peak() -> None:
    with MemorySampler() as sampler, program(HOLDS.format(most=30, then=1)) as made:
        sampler.follow(made.pid)
        looked(sampler, made)
        made.process.kill()
        time.sleep(0.1)  # a zombie: it has no memory any more
        peak = sampler.stop()
    assert peak is not None
    assert peak.resident > 30 * MIB


def test_a_sampler_that_was_killed_is_not_measured() -> None:
    with MemorySampler() as sampler:
        sampler.follow(os.getpid())
        assert sampler.pid is not None
        os.kill(sampler.pid, signal.SIGKILL)
        assert sampler.stop() is None
        assert sampler.stop() is None


def test_a_sampler_that_cannot_start_is_not_measured(tmp_path: Path) -> None:
    with MemorySampler(child=[tmp_path / "nothing.py"]) as sampler:
        sampler.follow(os.getpid())
        assert sampler.stop() is None


def test_nothing_followed_nothing_measured() -> None:
    with MemorySampler() as sampler:
        assert sampler.stop() is None


def test_one_sampler_can_follow_one_run_after_the_other() -> None:
    with MemorySampler() as sampler:
        found = []
        for size in (90, 20):
            with program(HOLDS.format(most=size, then=1)) as made:
                sampler.follow(made.pid)
                looked(sampler, made)
                found.append(sampler.stop())
    large, small = found
    assert large is not None and small is not None
    assert small.resident < 60 * MIB < large.resident


def test_it_leaves_with_its_run() -> None:
    with MemorySampler() as sampler:
        pid = sampler.pid
        sampler.follow(os.getpid())
    assert not Path(f"/proc/{pid}").exists()


def test_it_keeps_off_the_run_where_there_is_another_core() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert elsewhere(allowed) == []
    assert elsewhere(()) == []
    assert elsewhere(allowed[:1]) == allowed[1:]
    with MemorySampler(cores=allowed[:1]) as sampler:
        assert sampler.pid is not None
        assert sorted(os.sched_getaffinity(sampler.pid)) == (allowed[1:] or allowed)


def test_a_peak_is_plain_data() -> None:
    assert Peak(1, 1, 1, 0.0, 1.0, 0.0).interval == 0.01


EVENTS = [
    {"event": "begin", "phase": "import", "resident": 20},
    {"event": "end", "phase": "import", "seconds": 1.0, "resident_peak": 300},
    {"event": "begin", "phase": "build", "resident": 250},
    {"event": "end", "phase": "build", "seconds": 1.0, "resident_peak": 310},
    {"event": "begin", "phase": "warmup", "resident": 305},
    {"event": "end", "phase": "steady", "seconds": 1.0, "resident_peak": 400},
    {"event": "readback", "values": {}, "memory": {"live_peak": 5, "reserved_peak": 9}},
]


def test_every_figure_has_a_name_and_a_method() -> None:
    found = figures(EVENTS, Peak(450, 2, 100, 0.02, 1.0, 0.01))
    assert found == {
        "resident_before_import": 20, "resident_after_import": 300, "resident_before_build": 250,
        "resident_after_build": 310, "resident_after_steady": 400, "tree_peak": 450, "allocator_live_peak": 5,
        "allocator_reserved_peak": 9,
    }  # fmt: skip
    assert found.keys() == METHODS.keys()


def test_what_was_not_measured_is_left_out() -> None:
    assert figures([]) == {}
    events = [{"event": "end", "phase": "import", "resident_peak": None}, {"event": "readback", "memory": {}}]
    assert figures(events) == {}
    assert "tree_peak" not in figures(EVENTS)


def _below_the_peak() -> int:
    """Bytes that this process, in which other tests ran before, has given back since it was largest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmHWM", "VmRSS"))}
    return (kib["VmHWM"] - kib["VmRSS"]) * 1024


def test_the_worker_tells_a_baseline_before_the_engine_and_before_the_network() -> None:
    """The phases are begun in this order by the worker itself, so the baselines are what they are called."""
    from timetrial_worker import session

    told: list[dict[str, object]] = []

    class Listener(Wire):
        def tell(self, event: str, **fields: object) -> None:
            told.append({"event": event, **fields})

    class Engine:
        traits: dict[str, str] = {}  # noqa: RUF012
        ballast: bytearray

        def start(self) -> dict[str, str]:
            self.ballast = bytearray(b"x") * (_below_the_peak() + 40 * MIB)
            return {}

        def build(self, network: object, recipe: object, weights: object) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session.adapters, "load", lambda name, settings: Engine())
        patch.setattr(session, "load_arrays", lambda path: {})
        job = {"adapter": "", "settings": {}, "weights": "", "network": {}, "recipe": {}}
        session.open_adapter(job, Listener(-1))
    found = figures(told)
    assert found["resident_before_build"] - found["resident_before_import"] > 35 * MIB
