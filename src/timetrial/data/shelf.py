"""Where fetched and imported datasets are kept: a folder each, with its arrays and a manifest.

    $TIMETRIAL_HOME/data/NAME/manifest.json, {x_train,…}.npy [, {x_train,…}.ends.npy]
    $TIMETRIAL_HOME/data/.NAME.making/                     what is not whole yet; cleared before the next attempt

Written under another name, flushed, renamed. Texts and sequences are one long array and where each of them ends.
Listing what there is needs no NumPy.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.data.errors import DataError
from timetrial.disk.home import data_home

if TYPE_CHECKING:
    from timetrial.data.samples import Array, Samples

PARTS = ("x_train", "y_train", "x_test", "y_test")
GRIDS = "grids"  # beside the datasets lie the user's own grids of sensors, in their files
_MANIFEST, _FORM = "manifest.json", 1
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Kept:
    name: str
    folder: Path
    facts: Mapping[str, Any]  # what the dataset is, where it came from, and each array with its SHA-256

    @property
    def content(self) -> str:
        return str(self.facts["content"])

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())


def place(name: str) -> Path:
    if not _NAME.fullmatch(name) or name.startswith("synthetic") or name == GRIDS:
        raise DataError(
            f"'{name}' cannot name a dataset: use small letters, digits, '-', '_' and '.', not synthetic… or {GRIDS}"
        )
    return data_home() / name


def look_up(name: str) -> Kept | None:
    if not _NAME.fullmatch(name):
        return None
    folder = data_home() / name
    try:
        facts = json.loads((folder / _MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return Kept(name, folder, facts) if isinstance(facts, dict) and facts.get("form") == _FORM else None


def entries() -> list[Kept]:
    home = data_home()
    names = sorted(path.name for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    return [kept for name in names if (kept := look_up(name))]


def discard(name: str) -> None:
    """The manifest goes first: what is interrupted here is recognised as not whole."""
    folder = place(name)
    (folder / _MANIFEST).unlink(missing_ok=True)
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=False)


def keep(name: str, samples: Samples, facts: Mapping[str, Any], content: str | None = None) -> Kept:
    """Write a dataset; call it with its lock held. What was there under this name is replaced when the new is whole.

    `content` is what its checksum must be, where that is known.
    """
    from timetrial.data.arrays import write_bytes

    folder = place(name)
    making = folder.with_name(f".{name}.making")
    shutil.rmtree(making, ignore_errors=True)
    try:
        making.mkdir(parents=True)
        arrays = {part: _write(making, part, getattr(samples, part)) for part in PARTS}
        if content not in (None, content_of(arrays)):
            raise DataError(
                f"these are not the samples of '{name}': their checksum is {content_of(arrays)}, not {content}; "
                "other samples can be imported under another name"
            )
        whole = {"form": _FORM, "name": name, "content": content_of(arrays), "arrays": arrays, **facts}
        whole["kept"] = datetime.now(UTC).isoformat(timespec="seconds")
        write_bytes(making / _MANIFEST, json.dumps(whole, indent=1).encode())
        if folder.exists():
            discard(name)
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return Kept(name, folder, whole)


def load(kept: Kept) -> Samples:
    """The arrays, mapped into memory after their checksums have been compared."""
    from timetrial.data.samples import Samples

    try:
        read = {part: _read(kept, part, facts) for part, facts in kept.facts["arrays"].items()}
        parts = (read[part] for part in ("x_train", "y_train", "x_test", "y_test"))
        return Samples(*parts, class_names=tuple(kept.facts.get("class_names", ())))
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise _damaged(kept, str(error)) from None


def content_of(arrays: Mapping[str, Mapping[str, Any]]) -> str:
    """One checksum for all arrays, whatever file they came from."""
    parts = [f"{part} {arrays[part]['kind']} {arrays[part]['sha256']}" for part in PARTS]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _damaged(kept: Kept, what: str) -> DataError:
    return DataError(
        f"dataset '{kept.name}' in {kept.folder} is damaged ({what}); "
        f"`timetrial data get {kept.name} --again`, or importing it again, makes it anew"
    )


def _write(folder: Path, part: str, array: Array) -> dict[str, Any]:
    """The array's facts. The checksum is over its type, shape and bytes, not over NumPy's way to write a header."""
    import numpy as np

    if array.dtype != object:
        return {"kind": "array", "shape": list(array.shape), **_save(folder / f"{part}.npy", array)}
    items = [np.frombuffer(item.encode(), np.uint8) if isinstance(item, str) else item for item in array]
    kind = "texts" if isinstance(array[0], str) else "sequences"
    ends = np.cumsum([len(item) for item in items], dtype=np.int64)
    flat = _save(folder / f"{part}.npy", np.concatenate(items))
    where = _save(folder / f"{part}.ends.npy", ends)
    both = hashlib.sha256(f"{flat['sha256']} {where['sha256']}".encode()).hexdigest()
    return {"kind": kind, "shape": [len(items)], "dtype": flat["dtype"], "sha256": both}


def _save(path: Path, array: Array) -> dict[str, Any]:
    import numpy as np

    from timetrial.data.arrays import write_array

    array = np.ascontiguousarray(array)
    write_array(path, array)
    return {"dtype": array.dtype.str, "sha256": _sum(array)}


def _sum(array: Array) -> str:
    found = hashlib.sha256(f"{array.dtype.str} {list(array.shape)}\n".encode())
    if array.size:
        found.update(array.reshape(-1).view("u1").data)
    return found.hexdigest()


def _read(kept: Kept, part: str, facts: Mapping[str, Any]) -> Array:
    import numpy as np

    from timetrial.data.samples import objects

    flat: Array = np.load(kept.folder / f"{part}.npy", mmap_mode="r", allow_pickle=False)
    if facts["kind"] == "array":
        if _sum(flat) != facts["sha256"]:
            raise _damaged(kept, f"the checksum of {part}.npy is not its own")
        return flat
    ends = np.load(kept.folder / f"{part}.ends.npy", allow_pickle=False)
    if hashlib.sha256(f"{_sum(flat)} {_sum(ends)}".encode()).hexdigest() != facts["sha256"]:
        raise _damaged(kept, f"the checksum of {part}.npy is not its own")
    starts = np.concatenate([[0], ends[:-1]])
    pieces = [flat[start:end] for start, end in zip(starts, ends, strict=True)]
    return objects([piece.tobytes().decode() for piece in pieces] if facts["kind"] == "texts" else pieces)
