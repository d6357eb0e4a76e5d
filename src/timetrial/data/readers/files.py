"""What the readers share: finding files, opening packed ones within bounds, and saying where something is wrong."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from timetrial.data.samples import DataError

MOST_BYTES = 4 * 2**30  # of one array or one unpacked file; more is a mistake, or wants smaller images
_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)


def every(folder: Path, *patterns: str) -> list[Path]:
    """The files below a folder whose names match a pattern, packed or not; `folder` may be such a file itself."""
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    wanted = [pattern + end for pattern in patterns for end in ("", ".gz")]
    return [path for path in files if any(fnmatchcase(path.name, pattern) for pattern in wanted)]


def one(folder: Path, *patterns: str) -> Path:
    """The one file that matches; of a packed and a plain one of the same name, the plain."""
    found = every(folder, *patterns)
    if not found:
        raise DataError(f"{folder}: has no file {' or '.join(patterns)}")
    names = {path.with_suffix("") if path.suffix == ".gz" else path for path in found}
    if len(names) > 1:
        raise DataError(f"{folder}: has several files {patterns[0]} ({found[0]}, {found[1]}); leave only one there")
    return found[0]


def unpacked(path: Path) -> IO[bytes]:
    with open(path, "rb") as file:
        opener = _PACKED.get(file.read(2))
    return opener(path, "rb") if opener else open(path, "rb")


def content(path: Path, limit: int = MOST_BYTES) -> bytes:
    """The whole file, unpacked where it is gzip, bzip2 or xz."""
    read = head(path, limit + 1)
    if len(read) > limit:
        raise DataError(f"{path}: holds more than {limit:,} bytes, which is more than it should; is it the right file?")
    return read


def head(path: Path, count: int) -> bytes:
    """At most so many bytes from the beginning of the file, unpacked."""
    try:
        with unpacked(path) as file:
            return file.read(count)
    except _BROKEN as error:
        raise DataError(f"{path}: is cut off or damaged ({error}); fetch it again") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DataError(f"{path}: is damaged ({error}); fetch it again") from None


def bounded(path: Path, size: int) -> int:
    """The size of what is about to be read, if it is not absurd."""
    if not 0 <= size <= MOST_BYTES:
        raise DataError(f"{path}: announces {size:,} bytes; at most {MOST_BYTES:,} are read")
    return size
