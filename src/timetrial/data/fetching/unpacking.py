"""Archives to files, with Python's own modules. Entries that would leave the folder are refused, links are left out."""

from __future__ import annotations

import errno
import io
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO

from timetrial.data.errors import DataError

MOST_BYTES = 16 * 2**30
MOST_ENTRIES = 500_000
_DEB, _HEADER = b"!<arch>\n", 60
_Entry = tuple[str, int, IO[bytes]]
_LONGEST_SHOWN = 80
# What an entry's name may run into, in words.
_CLASHES = {
    errno.EEXIST: "wants a folder where another entry is a file",
    errno.ENOTDIR: "wants a folder where another entry is a file",
    errno.EISDIR: "is a file where another entry wants a folder",
    errno.ENAMETOOLONG: "is too long for a name here",
}
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError)


def is_archive(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith((".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".zip", ".whl", ".deb"))


def unpack(path: Path, folder: Path, members: Sequence[str] = ("*",)) -> list[Path]:
    """The files of an archive whose paths match a pattern, written below `folder`."""
    try:
        written = list(_write(path, folder, members))
    except NotImplementedError as error:  # before the others: zipfile's word for a method that it does not know
        raise DataError(
            f"{path}: cannot be unpacked by Python ({error}); unpack it yourself and give the folder"
        ) from None
    except _BROKEN as error:
        raise DataError(f"{path}: is cut off or no archive ({error}); fetch it again") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DataError(f"{path}: is damaged ({error}); fetch it again") from None
    if not written:
        raise DataError(f"{path}: has no file {' or '.join(members)} inside")
    return written


def _write(path: Path, folder: Path, members: Sequence[str]) -> Iterator[Path]:
    total = 0
    for count, (name, size, content) in enumerate(_entries(path)):
        target = _inside(path, folder, name)
        total += size
        if total > MOST_BYTES or count >= MOST_ENTRIES:
            raise DataError(f"{path}: unpacks to more than {MOST_BYTES:,} bytes or {MOST_ENTRIES:,} files")
        if not any(fnmatchcase(name.removeprefix("./"), pattern) for pattern in members):
            continue
        with content, _created(path, target, name) as file:
            shutil.copyfileobj(content, file, 2**20)
        if target.stat().st_size != size:
            raise DataError(f"{path}: {name} has {target.stat().st_size:,} of its {size:,} bytes; fetch it again")
        yield target


def _created(path: Path, target: Path, name: str) -> IO[bytes]:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return open(target, "wb")
    except OSError as error:
        if error.errno not in _CLASHES:
            raise
        shown = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…"
        raise DataError(
            f"{path}: the entry '{shown}' {_CLASHES[error.errno]}; unpack it yourself and give the folder"
        ) from None


def _inside(path: Path, folder: Path, name: str) -> Path:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name:
        raise DataError(f"{path}: the entry {name!r} would be written outside of the folder; nothing of it is used")
    return folder / pure


def _entries(path: Path) -> Iterable[_Entry]:
    with open(path, "rb") as file:
        start = file.read(8)
    if start == _DEB:
        return _of_deb(path)
    return _of_zip(path) if zipfile.is_zipfile(path) else _of_tar(path)


def _of_tar(path: Path, file: IO[bytes] | None = None) -> Iterator[_Entry]:
    with tarfile.open(path if file is None else None, "r:*", file) as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.isreg() else None
            if content is not None:
                yield entry.name, entry.size, content


def _of_zip(path: Path) -> Iterator[_Entry]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.flag_bits & 1:
                raise DataError(f"{path}: is encrypted; unpack it and give the folder")
            # A link is a file of Unix' kind 0o12 whose content is where it leads.
            if not entry.is_dir() and entry.external_attr >> 28 != 0o12:
                yield entry.filename, entry.file_size, archive.open(entry)


def _of_deb(path: Path) -> Iterator[_Entry]:
    """A Debian package is an `ar` archive of three members; the files are in data.tar."""
    with open(path, "rb") as file:
        file.seek(len(_DEB))
        while header := file.read(_HEADER):
            if len(header) < _HEADER or header[58:] != b"`\n" or not header[48:58].strip().isdigit():
                raise DataError(f"{path}: is cut off or no Debian package; fetch it again")
            size = int(header[48:58])
            if header[:16].decode("ascii", "replace").strip(" /").startswith("data.tar"):
                yield from _of_tar(path, io.BytesIO(file.read(min(size, MOST_BYTES))))
                return
            file.seek(size + size % 2, 1)
    raise DataError(f"{path}: is a Debian package without data")
