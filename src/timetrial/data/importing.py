"""Takes a dataset from the user's own files: one that is known by name, or any in a format that is read."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timetrial.data import registry, shelf
from timetrial.data.checking import checked
from timetrial.data.errors import DataError
from timetrial.data.fetching.get import described
from timetrial.data.fetching.listening import Listener
from timetrial.data.fetching.unpacking import is_archive, unpack
from timetrial.data.readers.files import every
from timetrial.data.readers.pictures import ENDINGS
from timetrial.data.reading import apply, classes_of, facts, read_folder
from timetrial.data.samples import Samples
from timetrial.disk.home import data_home
from timetrial.disk.lock import locked

_BY_NAME = (
    ("idx", ("*-ubyte",)), ("cifar", ("data_batch_*.bin", "data_batch_*.png")), ("norb", ("*norb*-dat.mat",)),
    ("matlab", ("*.mat",)), ("shuttle", ("Shuttle.rda", "shuttle.trn")), ("arrays", ("*.npz", "*.npy")),
    ("table", ("*.csv", "*.tsv", "*.data")), ("images", tuple(f"*{ending}" for ending in ENDINGS)),
    ("characters", ("*.txt",)),
)  # fmt: skip


def bring(
    name: str,
    path: Path,
    listener: Listener,
    reader: str | None = None,
    options: Mapping[str, Any] | None = None,
    words: Mapping[str, str] | None = None,
) -> shelf.Kept:
    """Read and check the files at `path`, and keep them under the name. Nothing at `path` is changed.

    `options` go to the reader; `words` (summary, licence, citation) describe a dataset that is not known by name.
    """
    if not path.exists():
        raise DataError(f"{path}: is not there")
    known = registry.known(name)
    if known and known.shelf is None:
        way = f"is not imported: {known.how}" if known.how else "is a dataset of its own; import under another name"
        raise DataError(f"'{name}' {way}")
    target = known.shelf if known and known.shelf else name
    with locked(shelf.place(target), listener.say):
        raw = data_home() / f".{target}.unpacked"
        try:
            folder = _opened(path, raw)
            listener.say(f"{target}: reading and checking {path}")
            if known is None:
                samples = _other(folder, reader, options or {})
                told, pinned = _told(path, words or {}), None
            elif reader in (None, known.reader):
                samples = read_folder(known, folder, options)
                told, pinned = described(known), None if options else known.content
            else:
                raise DataError(f"'{known.name}' is read as {known.reader}; import another format under another name")
            own = {**facts(samples), "files": _sums(path), "from": f"imported from {path}"}
            before, kept = shelf.look_up(target), shelf.keep(target, samples, {**told, **own}, pinned)
            if before and before.content != kept.content:
                was = f"{before.facts.get('from')}, {before.facts.get('kept')}"
                listener.say(f"{target}: replaces other samples ({was}); records of those say so by their checksum")
            return kept
        finally:
            shutil.rmtree(raw, ignore_errors=True)


def _opened(path: Path, raw: Path) -> Path:
    if not (path.is_file() and is_archive(path)):
        return path
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    unpack(path, raw)
    return raw


def _other(folder: Path, reader: str | None, options: Mapping[str, Any]) -> Samples:
    reader = reader or _guessed(folder)
    samples = apply(reader, folder, options)
    return checked(folder, samples, classes_of(samples), gaps=reader == "radar")


def _guessed(folder: Path) -> str:
    for reader, patterns in _BY_NAME:
        if every(folder, *patterns):
            return reader
    raise DataError(f"{folder}: holds no format that is known; name it with --format, see docs/data.md")


def _told(path: Path, words: Mapping[str, str]) -> dict[str, str]:
    return {
        "summary": words.get("summary") or f"imported from {path.name}",
        "licence": words.get("licence") or "not stated: ask whoever the files are from",
        "citation": words.get("citation") or "not stated",
    }


def _sums(path: Path) -> dict[str, str]:
    """SHA-256 of the file; of a folder, of all its files' names and sizes, which takes no second reading."""
    if path.is_file():
        with open(path, "rb") as file:
            return {path.name: hashlib.file_digest(file, "sha256").hexdigest()}
    lines = [f"{f.relative_to(path)} {f.stat().st_size}" for f in sorted(path.rglob("*")) if f.is_file()]
    return {f"names and sizes of {len(lines)} files": hashlib.sha256("\n".join(lines).encode()).hexdigest()}
