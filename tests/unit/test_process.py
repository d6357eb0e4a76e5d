"""One worker process, played by small scripts: what is heard, how it may end, and that nothing of it stays behind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.bench import processes_with
from timetrial.records.record import Limit, Outcome
from timetrial.records.store import StoreError
from timetrial.runner import process
from timetrial.runner.process import Bounds, Event, Finished, run, tree_memory

PRELUDE = """
import ctypes, json, os, signal, subprocess, sys, time
job, pipe = json.load(open(sys.argv[1])), int(sys.argv[2])
def tell(event, **fields):
    os.write(pipe, (json.dumps(dict(fields, event=event)) + "\\n").encode())
def fine():
    tell("outcome", kind="ok", reason="")
"""

Worker = Callable[..., Finished]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Runs a script in the worker's place."""
    script = tmp_path / "worker.py"
    monkeypatch.setattr(process, "WORKER", script)
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.5)

    def go(
        body: str,
        *,
        timeout: float = 20.0,
        memory: float | None = None,
        listen: Callable[[Event], None] = lambda event: None,
        **variables: str,
    ) -> Finished:
        script.write_text(PRELUDE + textwrap.dedent(body))
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        return run(Path(sys.executable), {"answer": 42}, folder, variables, Bounds(timeout, memory), listen)

    return go


def descriptors() -> list[str]:
    names = [name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
    return sorted(f"{name} {os.readlink(f'/proc/self/fd/{name}')}" for name in names)


def gone(text: str) -> bool:
    """Whether no process with this text is left, given the moment that the kernel takes to bury one."""
    deadline = time.monotonic() + 2
    while processes_with(text):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# --- what is heard ---------------------------------------------------------------------------------------------------


def test_events_come_in_order_and_at_once(worker: Worker) -> None:
    heard: list[tuple[float, Event]] = []
    finished = worker(
        """
        for i in range(3):
            tell("lap", seconds=i, answer=job["answer"])
            time.sleep(0.15)
        fine()
        """,
        listen=lambda event: heard.append((time.monotonic(), event)),
    )
    assert finished.outcome == Outcome(kind="ok")
    assert [event["seconds"] for event in finished.all("lap")] == [0, 1, 2]
    assert finished.last("lap") == {"event": "lap", "seconds": 2, "answer": 42}
    assert finished.last("nothing") is None
    assert [event for _, event in heard] == finished.events
    assert heard[2][0] - heard[0][0] >= 0.25
    assert finished.wall_seconds > 0.45


def test_an_event_may_come_in_pieces_and_many_at_once(worker: Worker) -> None:
    finished = worker(
        """
        whole = json.dumps({"event": "warm", "values": list(range(40000)), "word": "µ"}, ensure_ascii=False).encode()
        os.write(pipe, whole[:7]); time.sleep(0.1)
        for start in range(7, len(whole), 5000):
            os.write(pipe, whole[start:start + 5000])
        os.write(pipe, b"\\n" + b'{"event": "a"}\\n{"event": "b"}\\n')
        fine()
        """
    )
    assert [event["event"] for event in finished.events] == ["warm", "a", "b", "outcome"]
    assert finished.events[0]["values"] == list(range(40000))
    assert finished.events[0]["word"] == "µ"


def test_rubbish_on_the_pipe_is_no_event(worker: Worker) -> None:
    finished = worker(
        r"""
        tell("begin", phase="import")
        for line in (b"WARNING: log\n", b"\xff\xfe\x00\n", b"\n\n", b"[1, 2]\n", b'"event"\n', b'{"other": 1}\n',
                     b"[" * 60000 + b"\n", b"NaN\n", b'{"event": "half'):
            os.write(pipe, line)
        os.write(pipe, b"\n")
        fine()
        """
    )
    assert [event["event"] for event in finished.events] == ["begin", "outcome"]
    assert finished.outcome.ok


def test_rubbish_without_an_end_is_not_hoarded(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LONGEST_LINE", 2**20, raising=False)
    before = tree_memory(os.getpid())
    finished = worker(
        r"""
        tell("begin", phase="steady")
        for i in range(1500):
            os.write(pipe, b"x" * 65536)
        os.write(pipe, b"\n")
        fine()
        """
    )
    assert finished.outcome.ok
    assert [event["event"] for event in finished.events] == ["begin", "outcome"]
    assert tree_memory(os.getpid()) - before < 50 * 2**20


def test_the_worker_gets_its_job_a_clean_environment_and_no_descriptor_but_its_own(worker: Worker) -> None:
    with open(os.devnull) as kept:
        os.set_inheritable(kept.fileno(), True)
        finished = worker(
            """
            tell("seen", job=job, variables=dict(os.environ), folder=os.getcwd(), typed=sys.stdin.read(),
                 descriptors=[n for n in range(256) if os.path.exists(f"/proc/self/fd/{n}")], pipe=pipe, session=os.getsid(0))
            print("to stdout"); print("to stderr", file=sys.stderr)
            fine()
            """,
            ONE="1",
        )
    seen = finished.last("seen")
    assert seen is not None
    assert seen["job"] == {"answer": 42}
    assert seen["variables"].pop("ONE") == "1"
    assert set(seen["variables"]) <= {process.MARK, "LC_CTYPE"}
    assert seen["descriptors"] == [0, 1, 2, seen["pipe"]]
    assert seen["typed"] == ""
    assert seen["session"] != os.getsid(0)
    folder = Path(seen["folder"])
    assert (folder / "stdout").read_text() == "to stdout\n"
    assert (folder / "stderr").read_text() == "to stderr\n"


def test_no_descriptor_of_the_parent_is_left_open(worker: Worker, tmp_path: Path) -> None:
    before = descriptors()
    worker("fine()")
    worker("os._exit(3)")
    worker("time.sleep(60)", timeout=0.2)
    run(tmp_path / "nothing", {}, tmp_path, {}, Bounds(5))
    assert descriptors() == before


def test_the_parent_sleeps_while_the_worker_works(worker: Worker) -> None:
    finished = worker("time.sleep(1.5); fine()", memory=2**34)
    assert finished.wall_seconds > 1.5
    assert finished.parent_cpu_seconds < 0.05 * finished.wall_seconds


# --- how it may end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "reason", "exit_"),
    [
        ("os._exit(3)", "crash", "left with exit code 3 and without a result", "exit 3"),
        ("os._exit(0)", "crash", "left with exit code 0 and without a result", "exit 0"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crash", "died of SIGSEGV", "signal SIGSEGV"),
        ("ctypes.string_at(0)", "crash", "died of SIGSEGV", "signal SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGABRT)", "crash", "died of SIGABRT", "signal SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 3)", "crash", "died of 37", "signal 37"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "oom", "killed by the system", "signal SIGKILL"),
        ("tell('outcome', kind='unsupported', reason='no lrn'); os._exit(1)", "unsupported", "no lrn", ""),
        ("fine(); os.kill(os.getpid(), signal.SIGSEGV)", "ok", "", ""),
    ],
)
def test_every_end_has_its_word(worker: Worker, body: str, kind: str, reason: str, exit_: str) -> None:
    outcome = worker(body).outcome
    assert outcome.kind == kind
    assert outcome.reason.startswith(reason)
    assert outcome.exit == exit_


def test_the_end_is_a_phase_from_the_last_word_to_the_exit(worker: Worker) -> None:
    ended = worker("fine(); time.sleep(0.3)")
    assert ended.teardown_seconds is not None
    assert 0.3 <= ended.teardown_seconds < ended.wall_seconds
    assert worker("os._exit(3)").teardown_seconds is None  # nothing was told, so nothing is known of it


def test_the_last_lines_of_stderr_are_kept(worker: Worker) -> None:
    outcome = worker(
        r"""
        for i in range(5000):
            print("line", i, file=sys.stderr)
        sys.stderr.flush()
        os.write(2, b"\xff not text\n\n   \n")
        os._exit(1)
        """
    ).outcome
    assert len(outcome.stderr) == process.TAIL_LINES
    assert outcome.stderr[-2:] == ("line 4999", "\N{REPLACEMENT CHARACTER} not text")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("time.sleep(60)", "before it told anything"),
        ("tell('begin', phase='import'); tell('begin', phase='build'); time.sleep(60)", "in the phase build"),
        ("tell('begin', phase='steady')\nwhile True: tell('lap', seconds=1)", "in the phase steady"),
    ],
)
def test_a_worker_that_hangs_is_stopped_and_says_where(worker: Worker, body: str, where: str) -> None:
    finished = worker(body, timeout=0.6)
    assert finished.outcome.kind == "timeout"
    assert finished.outcome.reason == f"not finished after 0.6 s; it was {where}"
    assert finished.outcome.limit == Limit(timeout=0.6)
    assert "limits" in finished.outcome.remedy
    assert 0.6 <= finished.wall_seconds < 3


def test_the_memory_limit_counts_the_whole_tree(worker: Worker) -> None:
    hoard = "import time; x = bytearray(150 * 2**20); x[::4096] = b'x' * len(x[::4096]); time.sleep(60)"
    finished = worker(
        f"""
        import threading
        own = bytearray(150 * 2**20); own[::4096] = b"x" * len(own[::4096])
        thread = threading.Thread(target=lambda: subprocess.Popen([sys.executable, "-c", {hoard!r}]).wait())
        thread.start()
        thread.join()
        """,
        memory=250 * 2**20,
    )
    assert finished.outcome.kind == "oom"
    assert finished.outcome.reason.endswith("of the 0.2 GiB that a run may use")
    assert finished.outcome.limit == Limit(memory=250 * 2**20)
    assert "limits" in finished.outcome.remedy


@pytest.mark.parametrize(
    "body",
    ["os.kill(os.getpid(), signal.SIGKILL)", "tell('outcome', kind='oom', reason='MemoryError: std::bad_alloc')"],
)
def test_memory_that_no_limit_of_ours_ended_names_a_remedy_that_helps(worker: Worker, body: str) -> None:
    outcome = worker(body, memory=2**33).outcome
    assert (outcome.kind, outcome.limit) == ("oom", None)
    assert outcome.remedy.startswith("a smaller batch or network; ")
    assert "--fresh" in outcome.remedy
    assert "limits" not in outcome.remedy


def test_memory_within_the_limit_is_no_matter(worker: Worker) -> None:
    assert worker("x = bytearray(50 * 2**20); time.sleep(0.6); fine()", memory=250 * 2**20).outcome.ok


def test_a_worker_that_closes_its_pipe_and_goes_on_is_no_victim_of_memory(worker: Worker) -> None:
    finished = worker("tell('begin', phase='steady'); os.close(pipe); time.sleep(60)")
    assert finished.outcome.kind == "crash"
    assert "closed its pipe" in finished.outcome.reason
    assert finished.wall_seconds < 3


def test_a_worker_that_hangs_after_its_result_keeps_it(worker: Worker) -> None:
    finished = worker("fine(); os.close(pipe); time.sleep(60)")
    assert finished.outcome.ok
    assert finished.wall_seconds < 3


def test_an_interpreter_that_is_not_there_is_missing(tmp_path: Path) -> None:
    outcome = run(tmp_path / "bin" / "python", {}, tmp_path, {}, Bounds(5)).outcome
    assert outcome.kind == "missing"
    assert outcome.reason == f"{tmp_path}/bin/python: No such file or directory"
    assert "timetrial engines add" in outcome.remedy


# --- where there is no room ---------------------------------------------------------------------------------------------


def test_a_run_that_fails_on_a_full_disk_is_no_outcome(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_has_room", lambda folder: False)
    for body in ("os._exit(120)", "tell('outcome', kind='missing', reason='ImportError: no file could be written')"):
        with pytest.raises(StoreError, match=r"folder: the disk is full; free some space, or set TMPDIR to a folder"):
            worker(body)
    assert worker("fine()").outcome.ok
    assert worker("time.sleep(60)", timeout=0.6).outcome.kind == "timeout"  # stopped by a limit, whatever the disk


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_job_that_cannot_be_written_is_no_outcome(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(process.json, "dumps", lambda job: "{}")
    monkeypatch.setattr(process.Path, "write_text", full)
    with pytest.raises(StoreError, match=r"folder/job\.json: the disk is full"):
        run(Path(sys.executable), {}, Path("folder"), {}, Bounds(5))


def test_a_folder_has_room_until_it_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert process._has_room(tmp_path)
    assert os.listdir(tmp_path) == []
    assert process._has_room(tmp_path / "none")  # that it cannot be told is no full disk
    with open("/dev/full", "wb") as full:
        monkeypatch.setattr(process.tempfile, "TemporaryFile", lambda **_: full)
        assert not process._has_room(tmp_path)


def test_the_outcome_is_told_before_anything_is_printed(tmp_path: Path) -> None:
    """Nothing can be printed onto a full disk; what went wrong is told all the same."""
    job = tmp_path / "job.json"
    job.write_text('{"mode": "measure", "adapter": "no adapter at all", "settings": {}}')
    reader, writer = os.pipe()
    with open("/dev/full", "wb") as full:
        command = [sys.executable, str(process.WORKER), str(job), str(writer)]
        ended = subprocess.run(command, stdout=full, stderr=full, pass_fds=(writer,), check=False)
    os.close(writer)
    with open(reader) as told:
        events = [json.loads(line) for line in told if line.strip()]
    assert events[-1]["event"] == "outcome"
    assert events[-1]["kind"] == "crash"
    assert ended.returncode == 1


# --- nothing stays behind ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("end", ["fine()", "os._exit(3)", "time.sleep(60)"])
def test_children_end_with_their_worker(worker: Worker, tmp_path: Path, apart: bool, end: str) -> None:
    """Those that hold the pipe open, and those that made a session of their own."""
    mark = f"child-of-{tmp_path.name}-{apart}"
    finished = worker(
        f"""
        command = [sys.executable, "-c", "import time; time.sleep(60)", {mark!r}]
        child = subprocess.Popen(command, close_fds=False, pass_fds=(pipe,), start_new_session={apart})
        tell("child", pid=child.pid)
        {end}
        """,
        timeout=2 if "sleep" in end else 20,
    )
    assert finished.last("child") is not None
    assert finished.outcome.kind == {"fine()": "ok", "os._exit(3)": "crash"}.get(end, "timeout")
    assert finished.wall_seconds < 6
    assert gone(mark)


def test_a_child_that_chatters_on_after_the_result_does_not_hold_the_run_up(worker: Worker, tmp_path: Path) -> None:
    mark = f"chatterer-of-{tmp_path.name}"
    chatter = "import os, sys\nwhile True: os.write(int(sys.argv[1]), b'noise\\n')"
    finished = worker(
        f"""
        subprocess.Popen([sys.executable, "-c", {chatter!r}, str(pipe), {mark!r}], pass_fds=(pipe,))
        time.sleep(0.2)
        os.write(pipe, b"\\n")
        fine()
        """
    )
    assert finished.outcome.ok
    assert finished.wall_seconds < 5
    assert gone(mark)


def test_an_interruption_ends_the_worker_and_its_children(worker: Worker, tmp_path: Path) -> None:
    mark = f"interrupted-{tmp_path.name}"

    def interrupt(event: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worker(
            f"""
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", {mark!r}], start_new_session=True)
            tell("begin", phase="steady")
            time.sleep(60)
            """,
            listen=interrupt,
            NAME=mark,
        )
    assert gone(mark)


def test_an_interruption_while_the_worker_takes_its_leave(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"leaving-{tmp_path.name}"
    monkeypatch.setattr(process, "LEAVE_SECONDS", 30)
    wait = process.subprocess.Popen.wait

    def interrupted(self: object, timeout: float | None = None) -> int:
        if timeout:
            raise KeyboardInterrupt
        return wait(self)  # type: ignore[arg-type]

    monkeypatch.setattr(process.subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker("os.close(pipe); time.sleep(60)", NAME=mark)
    assert gone(mark)


def test_memory_of_a_process_that_is_not_there_is_nothing() -> None:
    assert tree_memory(2**22 + 1) == 0
    assert tree_memory(os.getpid()) > 2**20
