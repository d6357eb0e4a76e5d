"""Events of a chrome trace, one after the other: a file of any length is read without ever being held as a whole."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from timetrial.profiling.schema import TraceError

CHUNK = 1 << 20  # bytes
MOST = 1 << 24  # characters of one event: what is longer is none
REMEDY = "profile again with --fresh"
_BETWEEN = re.compile(r"[\s,]*")
_decode = json.JSONDecoder().raw_decode


def events(path: Path) -> Iterator[dict[str, Any]]:
    """What stands in `traceEvents`; anything else in the file is passed over, but has to be whole too."""
    text = _Text(path)
    if not text.next():
        raise TraceError(f"{path}: the trace is empty; {REMEDY}")
    if text.next() != "{":
        raise TraceError(f"{path}: not a chrome trace, which begins with a brace; {REMEDY}")
    text.skip()
    found = False
    while text.next() != "}":
        key = text.value()
        if text.next() != ":":
            raise text.damaged()
        text.skip()
        opens = text.next() == "["
        if key == "traceEvents" and opens:
            found = True
            yield from _array(text)
        else:
            text.value()
    if not found:
        raise TraceError(f"{path}: holds no list of traceEvents, so it is no trace of this kind; {REMEDY}")


def _array(text: _Text) -> Iterator[dict[str, Any]]:
    text.skip()
    while text.next() != "]":
        event = text.value()
        if not isinstance(event, dict):
            raise text.damaged()
        yield event
    text.skip()


class _Text:
    """A packed file as a window of characters that slides on."""

    def __init__(self, path: Path):
        self.path, self._bytes = path, _unpacked(path)
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._window, self._at, self._ended = "", 0, False

    def next(self) -> str:
        """The next character that means something; none at the end of the file."""
        while True:
            found = _BETWEEN.match(self._window, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._window):
                return self._window[self._at]
            if not self._more():
                return ""

    def skip(self) -> None:
        self._at += 1

    def value(self) -> Any:
        """The JSON value that begins here."""
        while True:
            try:
                found, end = _decode(self._window, self._at)
            except (json.JSONDecodeError, RecursionError):
                end = len(self._window)
            if end < len(self._window):  # a number at the very end might go on
                self._at = end
                return found
            if len(self._window) - self._at > MOST or not self._more():
                raise self.damaged()

    def damaged(self) -> TraceError:
        here = self._window[self._at : self._at + 40]
        return TraceError(f"{self.path}: breaks off or is damaged at {here!r}; {REMEDY}")

    def _more(self) -> bool:
        if self._ended:
            return False
        piece = next(self._bytes, b"")
        self._ended = not piece
        try:
            more = self._utf8.decode(piece, final=self._ended)
        except UnicodeDecodeError:
            raise TraceError(f"{self.path}: not text; {REMEDY}") from None
        self._window, self._at = self._window[self._at :] + more, 0
        return True


def _unpacked(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            while piece := file.read(CHUNK):
                yield piece
    except EOFError:
        raise TraceError(f"{path}: the packed file was cut short; {REMEDY}") from None
    except (OSError, zlib.error) as error:
        raise TraceError(f"{path}: cannot be unpacked ({error}); {REMEDY}") from None
