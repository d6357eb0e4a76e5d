"""What commands share: printing, errors in one line, exit codes, and the `--json` answer."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

FINE, FAILED, BAD_REQUEST, INTERRUPTED = 0, 1, 2, 130

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Records = Annotated[
    Path, typer.Option("--records", envvar="TIMETRIAL_RECORDS", help="Folder of the records.", show_default=True)
]
DEFAULT_RECORDS = Path("records")


def debugging() -> bool:
    return bool(os.environ.get("TIMETRIAL_DEBUG"))


def console(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A table in a file or a pipe is not cut to a terminal's width.
    return Console(stderr=stderr, width=None if stream.isatty() else 160, highlight=False)


def say(message: str) -> None:
    """Progress and remarks go to stderr: stdout is for the answer."""
    print(message, file=sys.stderr, flush=True)


def print_json(answer: Any) -> None:
    print(json.dumps(_plain(answer), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    """What JSON knows. It has no NaN and no infinity: these are null."""
    from dataclasses import asdict, is_dataclass

    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value)


class BadRequest(Exception):
    """The command cannot be carried out as it was asked for: exit code 2."""


class Failed(Exception):
    """It was asked for rightly and did not work out: exit code 1."""


@contextmanager
def explained() -> Iterator[None]:
    """Every error that has a remedy is one message without a traceback, unless --debug is on."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        say("Interrupted. What was measured is kept; the same command goes on from there.")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    except Exception as error:
        if debugging():
            raise
        say(f"timetrial: {_words(error)}")
        raise typer.Exit(_code(error)) from None


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.filename or 'disk'}: the disk is full; free some space and give the same command again"
    return str(error) or type(error).__name__


def _code(error: Exception) -> int:
    # A ValueError is the user's: an unknown name, a study that does not hold together.
    return BAD_REQUEST if isinstance(error, (BadRequest, ValueError)) else FAILED
