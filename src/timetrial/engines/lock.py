"""One at a time may make or remove an environment."""

from timetrial.disk.lock import Held, locked

__all__ = ["Held", "locked"]
