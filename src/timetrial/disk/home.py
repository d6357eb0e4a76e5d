"""Where the user's data lives: $TIMETRIAL_HOME, or the platform's data folder."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The data folder. It need not exist yet."""
    chosen = os.environ.get("TIMETRIAL_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME", "")
    # The convention says that a relative XDG_DATA_HOME is to be ignored.
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "timetrial"


def engines_home() -> Path:
    return home() / "engines"


def data_home() -> Path:
    return home() / "data"
