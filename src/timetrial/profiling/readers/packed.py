"""What the collectors of the original engines wrote round by round: a file of its trace, and one of its steps."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from timetrial.profiling.schema import TraceError
from timetrial.records.traces import PACKED

AGAIN = "profile again with --fresh"


def unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read()
    except FileNotFoundError:
        raise TraceError(f"{path}: not there; {AGAIN}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, "cut short or not packed by gzip") from error


def unpacked_json(path: Path) -> Any:
    content = unpacked(path)
    try:
        return json.loads(content)
    except ValueError as error:
        raise damaged(path, "no JSON") from error


def damaged(path: Path, what: object) -> TraceError:
    return TraceError(f"{path}: damaged ({what}); {AGAIN}")


def rounds(folder: Path, ending: str) -> Iterator[Path]:
    """The files of all rounds, in their order."""
    found = sorted(folder.glob(f"*{ending}{PACKED}"), key=lambda path: (len(path.name), path.name))
    if not found:
        raise TraceError(f"{folder}: no file of a trace (*{ending}{PACKED}) is in it; {AGAIN}")
    yield from found


def beside(path: Path, ending: str, other: str) -> Path:
    """`round0.json.gz` of `round0.pb.gz`."""
    return path.with_name(path.name.removesuffix(ending + PACKED) + other + PACKED)
