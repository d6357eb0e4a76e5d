"""One file over HTTP. What an earlier attempt left is gone on with, if the server can; its checksum decides."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from timetrial import __version__
from timetrial.data.fetching.listening import FetchFailed, Listener
from timetrial.data.sources import Remote

TIMEOUT = 20.0  # seconds without a byte
ATTEMPTS = 3  # after a connection that broke off
_PIECE = 2**18
MOST_BYTES = 8 * 2**30


def download(remote: Remote, folder: Path, listener: Listener) -> Path:
    """The file in `folder`, whole and with its checksum. `NAME.part` is what is not whole yet."""
    path, part = folder / remote.name, folder / f"{remote.name}.part"
    if path.exists() and _right(path, remote):
        return path
    for attempt in range(1, ATTEMPTS + 1):
        before = _size(part)
        try:
            _transfer(remote, part, listener)
            break
        except urllib.error.HTTPError as error:
            if error.code == 416 and before:  # what is here is longer than what is there
                part.unlink()
                continue
            raise FetchFailed(f"{remote.address}: the server answers {error.code} {error.reason}") from None
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            if attempt == ATTEMPTS or _size(part) == before:
                reason = getattr(error, "reason", None) or error
                raise FetchFailed(f"{remote.address}: cannot be fetched ({reason})") from None
    _verify(remote, part)
    part.replace(path)
    return path


def _transfer(remote: Remote, part: Path, listener: Listener) -> None:
    have = _size(part)
    request = urllib.request.Request(remote.address, headers={"User-Agent": f"timetrial/{__version__}"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        goes_on = have > 0 and answer.status == 206 and _begins(answer) == have
        have = have if goes_on else 0
        total = have + int(answer.headers.get("Content-Length") or 0)
        _room(remote, total if total > have else remote.size, have, part)
        with open(part, "ab" if goes_on else "wb") as file:
            _copy(remote, answer, file, have, total, listener)
        if total > have and _size(part) < total:
            raise ConnectionError(f"it ended after {_size(part):,} of {total:,} bytes")


def _copy(remote: Remote, answer: Any, file: Any, have: int, total: int, listener: Listener) -> None:
    most = remote.size or MOST_BYTES
    while piece := answer.read(_PIECE):
        have += len(piece)
        if have > most:
            raise FetchFailed(f"{remote.address}: is longer than the {most:,} bytes that it should be")
        file.write(piece)
        listener.moved(remote.name, have, total or remote.size)
    file.flush()
    os.fsync(file.fileno())


def _begins(answer: Any) -> int | None:
    found = re.fullmatch(r"bytes (\d+)-.*", answer.headers.get("Content-Range", ""))
    return int(found[1]) if found else None


def _room(remote: Remote, total: int, have: int, part: Path) -> None:
    free = shutil.disk_usage(part.parent).free
    if total - have > free:
        raise OSError(
            errno.ENOSPC, f"{remote.name} needs {total - have:,} bytes and {free:,} are free", str(part.parent)
        )


def _verify(remote: Remote, part: Path) -> None:
    if not _right(part, remote):
        size = _size(part)
        part.unlink()
        raise FetchFailed(
            f"{remote.address}: the {size:,} bytes there have not the checksum {remote.checksum}; they are thrown away"
        )


def _right(path: Path, remote: Remote) -> bool:
    if remote.size and _size(path) != remote.size:
        return False
    kind, _, wanted = remote.checksum.partition(":")
    if not wanted:
        return True
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() == wanted


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
