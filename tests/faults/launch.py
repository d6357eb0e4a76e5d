"""The command line with the fake engines in it, as a process of its own: `python -m tests.faults.launch run STUDY`."""

from tests.faults import bench
from timetrial.cli.main import run_app

if __name__ == "__main__":
    bench.install(setattr)
    run_app()
