"""One long text, byte by byte, in its own order: nine tenths to train on, and the last twentieth to test.

The twentieth between them is left free, for choosing between models without looking at the test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from timetrial.data.readers.files import content, one
from timetrial.data.samples import DataError, Samples

LEAST = 100


def read(folder: Path, name: str = "*.txt") -> Samples:
    path = one(folder, name)
    text = np.frombuffer(content(path), np.uint8)
    if len(text) < LEAST:
        raise DataError(f"{path}: {len(text)} bytes are too short a text; {LEAST} are the least")
    train, held = text[: len(text) * 9 // 10], text[len(text) - len(text) // 20 :]
    # What follows a byte is its own target: where a window begins is decided when a network asks for it.
    return Samples(train, np.zeros(0, np.int32), held, np.zeros(0, np.int32))
