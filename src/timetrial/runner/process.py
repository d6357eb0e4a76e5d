"""One worker process: started, listened to, held to its limits, and always gone afterwards.

The parent sleeps in a wait between events; once a quarter of a second it looks at the memory of the process tree.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timetrial.records.record import Limit, Outcome
from timetrial.records.store import cannot_write, is_full

Event = dict[str, Any]
WORKER = Path(__file__).resolve().parents[2] / "timetrial_worker" / "__main__.py"
LOOK_SECONDS = 0.25
LEAVE_SECONDS = 5.0
TAIL_LINES = 12
LONGEST_LINE = 2**26  # more without an end of line is no event
ROOM = 2**20  # bytes that a disk is to have free where a run's failure is the engine's own
# Where no limit of the study is in the way, a larger one does nothing.
OUT_OF_MEMORY = "a smaller batch or network; where more memory has become free, --fresh measures it again"
CRASHED = "record and report have the last lines of its log; `timetrial engines doctor {}` tries the engine alone"
ELSEWHERE = ", or set TMPDIR to a folder that has some,"
MARK = "TIMETRIAL_RUN"  # in the environment of the worker and all that it starts


@dataclass(frozen=True)
class Bounds:
    timeout: float
    memory: float | None = None  # bytes of the whole process tree


@dataclass
class Finished:
    """All that came back: events in order, the outcome, and what the parent itself used meanwhile."""

    outcome: Outcome
    events: list[Event] = field(default_factory=list)
    wall_seconds: float = 0.0
    parent_cpu_seconds: float = 0.0
    teardown_seconds: float | None = None  # from the worker's last word to its end

    def last(self, kind: str) -> Event | None:
        return next((event for event in reversed(self.events) if event["event"] == kind), None)

    def all(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["event"] == kind]


def run(
    interpreter: Path,
    job: Mapping[str, Any],
    folder: Path,
    variables: Mapping[str, str],
    bounds: Bounds,
    listen: Callable[[Event], None] = lambda event: None,
    begun: Callable[[int], object] = lambda pid: None,
) -> Finished:
    """Run one job to its end, whatever that is. `folder` keeps the job, stdout and stderr; `begun` is told its pid.

    Raises StoreError where the folder's disk is full: what fails on it says nothing about the engine.
    """
    path = _written(folder, job)
    start, busy = time.monotonic(), time.process_time()
    mark = uuid.uuid4().hex
    reader, writer = os.pipe()
    try:
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            worker = subprocess.Popen(
                [str(interpreter), str(WORKER), str(path), str(writer)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**variables, MARK: mark}, cwd=folder,
                pass_fds=(writer,), start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        os.close(reader)
        os.close(writer)
        remedy = "make the engine's environment again: timetrial engines add NAME --again"
        return Finished(Outcome(kind="missing", reason=f"{interpreter}: {error.strerror}", remedy=remedy))
    os.close(writer)
    begun(worker.pid)
    patience, heard, gone = 0.0, start, start  # patience for a worker that is stopped, by a limit or by Ctrl-C: none

    def hear(event: Event) -> None:
        nonlocal heard
        heard = time.monotonic()
        listen(event)

    try:
        events, stopped = _follow(worker, reader, bounds, start, hear)
        patience, gone = 0.0 if stopped else LEAVE_SECONDS, time.monotonic()
    finally:
        os.close(reader)
        left = _end(worker, patience, mark)
    outcome = stopped or _judge(worker.returncode if left else None, events, folder / "stderr")
    if not (outcome.ok or stopped or _has_room(folder)):
        raise cannot_write(folder, OSError(errno.ENOSPC, ""), ELSEWHERE)
    if outcome.kind == "crash":
        outcome = outcome.model_copy(update={"remedy": CRASHED.format(job.get("engine", "NAME"))})
    teardown = gone - heard if outcome.ok else None
    return Finished(outcome, events, time.monotonic() - start, time.process_time() - busy, teardown)


def _written(folder: Path, job: Mapping[str, Any]) -> Path:
    """The job, and room for what the worker prints."""
    path = folder / "job.json"
    try:
        path.write_text(json.dumps(job))
        for name in ("stdout", "stderr"):
            (folder / name).touch()
    except OSError as error:
        raise cannot_write(path, error, ELSEWHERE) from error
    return path


def _has_room(folder: Path) -> bool:
    """Tried, not asked for: what is free may not be free for everybody."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
            file.flush()
    except OSError as error:
        return not is_full(error)
    return True


def _follow(
    worker: subprocess.Popen[bytes], reader: int, bounds: Bounds, start: float, listen: Callable[[Event], None]
) -> tuple[list[Event], Outcome | None]:
    """Events until the worker closes its end, or the outcome for which it had to be stopped."""
    events: list[Event] = []
    lines = _Lines()
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        while True:
            heard = bool(selector.select(LOOK_SECONDS))
            if heard:
                chunk = os.read(reader, 65536)
                if not chunk:
                    return events, None
                for event in filter(None, map(_parse, lines.take(chunk))):
                    events.append(event)
                    listen(event)
            # A child of the worker may hold the pipe open for ever, and chatter on it.
            if (not heard or _last(events) == "outcome") and worker.poll() is not None:
                return events, None
            if stopped := _beyond(worker.pid, bounds, time.monotonic() - start, events):
                return events, stopped


class _Lines:
    """Whole lines out of pieces. A line that does not end is dropped: it is rubbish, and could fill the memory."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def take(self, chunk: bytes) -> Iterator[bytes]:
        first, *others = chunk.split(b"\n")
        self._add(first)
        for piece in others:
            yield b"".join(self._pieces)
            self._pieces, self._size = [], 0
            self._add(piece)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > LONGEST_LINE:
            self._pieces.clear()
        else:
            self._pieces.append(piece)


def _parse(line: bytes) -> Event | None:
    """Rubbish on the pipe is no event; the outcome then says that the worker left without a result."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _last(events: list[Event]) -> str:
    return str(events[-1]["event"]) if events else ""


def _beyond(pid: int, bounds: Bounds, seconds: float, events: list[Event]) -> Outcome | None:
    if seconds > bounds.timeout:
        begun = [event["phase"] for event in events if event["event"] == "begin"]
        where = f" in the phase {begun[-1]}" if begun else " before it told anything"
        return Outcome(
            kind="timeout",
            reason=f"not finished after {bounds.timeout:g} s; it was{where}",
            remedy="give it more time with limits: {timeout: …}, or a smaller cell",
            limit=Limit(timeout=bounds.timeout),
        )
    if bounds.memory is not None and (used := tree_memory(pid)) > bounds.memory:
        return Outcome(
            kind="oom",
            reason=f"used {used / 2**30:.1f} GiB of the {bounds.memory / 2**30:.1f} GiB that a run may use",
            remedy="a smaller batch or network, or limits: {memory: …}",
            limit=Limit(memory=bounds.memory),
        )
    return None


def tree_memory(pid: int) -> int:
    """Resident bytes of a process and its descendants; what has just ended counts as nothing."""
    total, todo = 0, [pid]
    page = os.sysconf("SC_PAGE_SIZE")
    while todo:
        current = todo.pop()
        try:
            with open(f"/proc/{current}/statm") as file:
                total += int(file.read().split()[1]) * page
            for task in os.listdir(f"/proc/{current}/task"):
                with open(f"/proc/{current}/task/{task}/children") as file:
                    todo += map(int, file.read().split())
        except (OSError, IndexError, ValueError):
            continue
    return total


def _end(worker: subprocess.Popen[bytes], patience: float, mark: str) -> bool:
    """Wait for the worker's own end, then leave nothing of it behind. False: it had to be killed."""
    try:
        worker.wait(timeout=patience)
        left = True
    except subprocess.TimeoutExpired:
        left = False
    finally:  # a second Ctrl-C comes here too
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        _kill_marked(mark)
    return left


def _kill_marked(mark: str) -> None:
    """What left the worker's process group still has the run's mark in its environment."""
    for _ in range(10):  # one that is killed may just have started another
        found = [pid for pid in _processes() if _has(pid, mark)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:  # a system without /proc: the process group has to do
        return []


def _has(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark.encode() in file.read()
    except OSError:
        return False


def _judge(code: int | None, events: list[Event], stderr: Path) -> Outcome:
    """What the worker said of itself, else what its end says; None where it did not come to an end."""
    tail = _tail(stderr)
    said = next((event for event in reversed(events) if event["event"] == "outcome"), None)
    if said is not None:
        kept = () if said["kind"] == "ok" else tail
        remedy = OUT_OF_MEMORY if said["kind"] == "oom" else ""
        return Outcome(kind=said["kind"], reason=said["reason"], remedy=remedy, stderr=kept)
    if code is None:
        reason = f"closed its pipe and went on for {LEAVE_SECONDS:g} s without a result; it was stopped"
        return Outcome(kind="crash", reason=reason, stderr=tail)
    if code < 0:
        name = _signal_name(-code)
        if -code == signal.SIGKILL:
            return Outcome(
                kind="oom",
                reason="killed by the system, most likely because the machine's memory was used up",
                remedy=OUT_OF_MEMORY,
                exit=f"signal {name}",
                stderr=tail,
            )
        return Outcome(kind="crash", reason=f"died of {name}", exit=f"signal {name}", stderr=tail)
    return Outcome(
        kind="crash", reason=f"left with exit code {code} and without a result", exit=f"exit {code}", stderr=tail
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _tail(path: Path) -> tuple[str, ...]:
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - 16384, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return tuple(line for line in lines if line.strip())[-TAIL_LINES:]
