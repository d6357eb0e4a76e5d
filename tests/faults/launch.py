"""The command line with the fake engines in it, as a process of its own: `python -m tests.faults.launch run STUDY`."""

import signal

from tests.faults import bench
from timetrial.cli.main import run_app

if __name__ == "__main__":
    # A shell has what it starts in the background ignore Ctrl-C, and so has all that comes of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    bench.install(setattr)
    run_app()
