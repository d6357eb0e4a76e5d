"""`python -m timetrial` is `timetrial`."""

from timetrial.cli.main import run_app

run_app()
