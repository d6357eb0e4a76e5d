"""Prepared arrays on disk, in folders named by their content.

    FOLDER/CONTENT/{x_train,…}.npy, manifest.json     written under another name, flushed, renamed; never changed
    FOLDER/requests/REQUEST.json                      which content a request led to, so that it is not computed again

A folder proves itself: its name is the hash of its manifest, which holds the hash of every file.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timetrial.data.arrays import write_array, write_bytes
from timetrial.data.samples import Array
from timetrial.records.store import cannot_write

NAMES = ("x_train", "y_train", "x_test", "y_test")
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Kept:
    folder: Path
    content: str
    provenance: Mapping[str, Any]


def look_up(folder: Path, request: Mapping[str, Any]) -> Kept | None:
    """What an equal request led to before, if all of it is still there and intact."""
    try:
        content = json.loads(_note(folder, request).read_bytes())["content"]
    except (OSError, ValueError, KeyError):
        return None
    return _open(folder / str(content))


def keep(folder: Path, request: Mapping[str, Any], arrays: Mapping[str, Array], provenance: Mapping[str, Any]) -> Kept:
    making = folder / f".making-{uuid.uuid4().hex}"
    try:
        making.mkdir(parents=True)
        content = _write_all(making, arrays, provenance)
        kept = _publish(making, folder / content)
        _write_note(_note(folder, request), kept.content)
    except OSError as error:
        raise cannot_write(Path(error.filename or folder), error) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return kept


def _write_all(place: Path, arrays: Mapping[str, Array], provenance: Mapping[str, Any]) -> str:
    for name in NAMES:
        write_array(place / f"{name}.npy", arrays[name])
    manifest = _canonical({"files": _hashes(place), "provenance": provenance})
    write_bytes(place / _MANIFEST, manifest)
    return hashlib.sha256(manifest).hexdigest()


def _publish(making: Path, place: Path) -> Kept:
    """Two processes may make the same content at once: the first to rename wins, the other takes what is there."""
    kept = _open(place)
    if kept:
        return kept
    if place.exists():  # damaged
        place.rename(making / "damaged")
    try:
        making.rename(place)
    except OSError:
        kept = _open(place)
        if kept is None:
            raise
        return kept
    shutil.rmtree(place / "damaged", ignore_errors=True)
    return Kept(place, place.name, _manifest(place)["provenance"])


def _open(place: Path) -> Kept | None:
    try:
        whole = hashlib.sha256((place / _MANIFEST).read_bytes()).hexdigest() == place.name
        manifest = _manifest(place) if whole else {}
        intact = whole and _hashes(place) == manifest["files"]
    except (OSError, ValueError, KeyError):
        return None
    return Kept(place, place.name, manifest["provenance"]) if intact else None


def _manifest(place: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((place / _MANIFEST).read_bytes())
    return manifest


def _hashes(place: Path) -> dict[str, str]:
    found = {}
    for name in NAMES:
        with open(place / f"{name}.npy", "rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _note(folder: Path, request: Mapping[str, Any]) -> Path:
    return folder / "requests" / f"{hashlib.sha256(_canonical(request)).hexdigest()}.json"


def _write_note(note: Path, content: str) -> None:
    note.parent.mkdir(exist_ok=True)
    fresh = note.with_name(f".making-{uuid.uuid4().hex}")
    fresh.write_bytes(_canonical({"content": content}))
    fresh.replace(note)
