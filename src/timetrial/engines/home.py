"""Where the engines' environments are."""

from timetrial.disk.home import engines_home, home

__all__ = ["engines_home", "home"]
