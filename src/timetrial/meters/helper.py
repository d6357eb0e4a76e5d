"""A small program beside the parent: it sleeps on its input, and answers a line with a line. Both are JSON.

It takes no CPU while nothing is asked, and ends by itself when the parent is gone: its input is then at its end.
Nothing that happens to it is an error of the parent: what it does not answer is None.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LEAVE_SECONDS = 1.0
# No linear-algebra library may start threads: they would spin beside an engine under test.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Helper:
    """`command` is a Python script and its arguments; `flags` are the interpreter's."""

    def __init__(self, command: Sequence[str | Path], flags: Sequence[str] = ("-P",)) -> None:
        """Raises OSError where no process can be started."""
        self._process = subprocess.Popen(
            [sys.executable, *flags, *map(str, command)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env={**os.environ, **_ONE_THREAD}, start_new_session=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, message: Any, patience: float) -> Any | None:
        return self.hear(patience) if self.tell(message) else None

    def tell(self, message: Any) -> bool:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
        except (OSError, ValueError):  # it is gone, or was closed
            return False
        return True

    def hear(self, patience: float) -> Any | None:
        """The next answer; None where it does not come in time, or is none."""
        assert self._process.stdout is not None
        deadline, heard = time.monotonic() + patience, b""
        while not heard.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(deadline - time.monotonic(), 0.0))
            chunk = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not chunk:
                return None
            heard += chunk
        try:
            return json.loads(heard)
        except ValueError:
            return None

    def close(self) -> None:
        process = self._process
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        try:
            process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
