"""Takes one job, runs it, tells events: `python timetrial_worker/__main__.py JOB DESCRIPTOR`.

Started by its path, not with -m, so that nothing of the parent's packages is on the engine's import path.
"""

import importlib.util
import json
import os
import signal
import sys
import traceback
from contextlib import suppress

HERE = os.path.dirname(os.path.abspath(__file__))

SET_PARENT_DEATH_SIGNAL = 1  # of prctl

# What engines call it when the memory of the host or of a device is not enough.
OUT_OF_MEMORY = ("out of memory", "resource_exhausted", "oom when allocating", "can't allocate memory", "bad_alloc")


def become_a_package():
    """Make `import timetrial_worker` work and take this folder itself off the path."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != HERE]
    if "timetrial_worker" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "timetrial_worker", os.path.join(HERE, "__init__.py"), submodule_search_locations=[HERE]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["timetrial_worker"] = module
    spec.loader.exec_module(module)


def outcome_of(error):
    """The typed outcome of an exception; crash is what no other word fits."""
    from timetrial_worker.adapters.base import Unsupported
    from timetrial_worker.training import Diverged

    text = "{}: {}".format(type(error).__name__, error)
    if isinstance(error, Unsupported):
        return "unsupported", str(error)
    if isinstance(error, Diverged):
        return "diverged", str(error)
    if isinstance(error, ImportError):
        return "missing", text
    low = text.lower()
    if isinstance(error, MemoryError) or any(words in low for words in OUT_OF_MEMORY):
        return "oom", text.splitlines()[0]
    return "crash", text


def pin(cores):
    """Before any import, so that every thread pool sees only these cores."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def end_with_parent():
    """Where the kernel can do it (Linux): a parent that is killed takes its run along."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def main(path, descriptor):
    end_with_parent()
    become_a_package()
    with open(path) as file:
        job = json.load(file)
    pin(job.get("cores"))
    from timetrial_worker import limits, session
    from timetrial_worker.wire import Wire

    wire = Wire(descriptor)
    modes = {"measure": session.measure, "prove": session.prove, "limits": limits.measure}
    try:
        modes[job["mode"]](job, wire)
    except BaseException as error:  # whatever ends the run is an outcome, never a lost cell
        kind, reason = outcome_of(error)
        wire.tell("outcome", kind=kind, reason=reason)
        with suppress(Exception):  # where the disk is full nothing can be printed; it is told already
            traceback.print_exc()
        return 1
    wire.tell("outcome", kind="ok", reason="")
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1], int(sys.argv[2]))
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)  # some frameworks abort while the interpreter shuts down, when everything is told
