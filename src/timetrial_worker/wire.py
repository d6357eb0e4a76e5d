"""The event protocol: one JSON object a line, on a pipe of its own that nothing printed to stdout can disturb."""

import json
import os
import time
from contextlib import contextmanager


class Wire(object):
    def __init__(self, descriptor):
        self._descriptor = descriptor

    def tell(self, event, **fields):
        """Written whole and at once: what was told before a crash is not lost.

        The line begins with an end of line: half a line that an engine wrote onto the pipe spoils no event.
        """
        line = json.dumps(dict(fields, event=event), separators=(",", ":"), default=_plain)
        data = "\n{}\n".format(line).encode("utf-8")
        while data:
            data = data[os.write(self._descriptor, data) :]

    @contextmanager
    def phase(self, name):
        self.tell("begin", phase=name, resident=resident())
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.tell("end", phase=name, seconds=seconds, resident_peak=resident_peak())


def resident():
    """What this process holds now, in bytes: at the begin of a phase its baseline. None where there is no such file."""
    return _status("VmRSS:")


def resident_peak():
    """The kernel's high-water mark of this process, in bytes; None where there is no such file.

    VmHWM belongs to the program that runs now; ru_maxrss would still hold the parent's size from before the start.
    """
    return _status("VmHWM:")


def _status(name):
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith(name):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _plain(value):
    """NumPy scalars and arrays, as JSON knows them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
