"""A folder of records: `FOLDER/STUDY/RUN.json`. Append-only, atomic, mergeable by copying.

A record is written to a temporary name, flushed to the disk, and renamed: what is there under its name is whole. One
that another takes the place of, measured again or with other code, is first kept in `FOLDER/STUDY/replaced/`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.records.record import SCHEMA, Record

if TYPE_CHECKING:
    import duckdb
    import pandas

SESSIONS = "sessions"  # beside the records of a study lie the sessions that they are of
REPLACED = "replaced"  # and the records that others took the place of


class StoreError(RuntimeError):
    """The folder cannot be written or read. Says where, why and what to do."""


@dataclass(frozen=True)
class Unreadable:
    """A file among the records that is not one. It is left alone and named."""

    path: Path
    reason: str


def write_atomically(path: Path, content: str | bytes) -> None:
    """Whole or not at all, also when the machine stops in between."""
    with whole(path) as temporary, open(temporary, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def cannot_write(path: Path, error: OSError, otherwise: str = "") -> StoreError:
    """`otherwise`: what else would help against a full disk."""
    if is_full(error):
        remedy = f"free some space{otherwise} and start the study again, it goes on where it was"
        return StoreError(f"{path}: the disk is full; {remedy}")
    return StoreError(f"{path}: cannot be written ({error.strerror or error}); what was measured before is kept")


@contextlib.contextmanager
def whole(path: Path, explain: Callable[[Path, OSError], StoreError] = cannot_write) -> Iterator[Path]:
    """A temporary name beside it, that takes its place at the end; a file that was there stays until then."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise explain(path, error) from error
    finally:
        with contextlib.suppress(OSError):  # the place may be no folder at all
            temporary.unlink()


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, study: str, run: str) -> Path:
        return self.folder / study / f"{run}.json"

    def write(self, record: Record) -> Path:
        path = self.path(record.study, record.run)
        _keep_old(path, record)
        write_atomically(path, record.model_dump_json(exclude_defaults=True) + "\n")
        return path

    def keep_machine(self, fingerprint: str, inventory: dict[str, Any]) -> None:
        path = self.folder / "machines" / f"{fingerprint}.json"
        if not path.exists():
            write_atomically(path, json.dumps(inventory, indent=1, default=str) + "\n")

    def keep_session(self, study: str, name: str, content: dict[str, Any]) -> None:
        write_atomically(self.folder / study / SESSIONS / f"{name}.json", json.dumps(content, indent=1) + "\n")

    def sessions(self, study: str, part: str = "limits") -> dict[str, Any]:
        """A part of each session (the machine's limits), None where there is none; what cannot be read is left out."""
        found = {}
        for path in sorted((self.folder / study / SESSIONS).glob("*.json")):
            try:
                found[path.stem] = json.loads(path.read_text(encoding="utf-8")).get(part)
            except (OSError, ValueError, AttributeError):
                continue
        return found

    def machine(self, fingerprint: str) -> dict[str, Any] | None:
        path = self.folder / "machines" / f"{fingerprint}.json"
        try:
            content: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):
            return None
        return content

    def scan(self, study: str | None = None) -> Iterator[Record | Unreadable]:
        """Every record, in a fixed order, and every file that should be one and is not."""
        for path in self._files(study):
            try:
                yield self._read(path)
            except (ValueError, OSError) as error:
                yield Unreadable(path, _reason(error))

    def records(self, study: str | None = None) -> list[Record]:
        return [item for item in self.scan(study) if isinstance(item, Record)]

    def unreadable(self, study: str | None = None) -> list[Unreadable]:
        return [item for item in self.scan(study) if isinstance(item, Unreadable)]

    def runs(self, study: str) -> dict[str, Record]:
        return {record.run: record for record in self.records(study)}

    def studies(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        folders = (path.name for path in self.folder.iterdir() if path.is_dir())
        return sorted(name for name in folders if name != "machines" and not name.startswith("."))

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """SQL over the view `runs`, one row a record: `SELECT cell.engine, median(…) FROM runs GROUP BY ALL`."""
        import duckdb

        connection = duckdb.connect()
        paths = [str(path) for path in self._files(None) if _looks_like_one(path)]
        if not paths:
            raise StoreError(f"{self.folder}: there are no records to query yet")
        connection.execute(
            "CREATE TABLE runs AS SELECT * FROM read_json(?, union_by_name = true, sample_size = -1)", [paths]
        )
        return connection.sql(sql)

    def frame(self, study: str | None = None) -> pandas.DataFrame:
        """One row a run, nested fields flattened with dots."""
        import pandas

        return pandas.json_normalize([record.model_dump(mode="json") for record in self.records(study)])

    def _files(self, study: str | None) -> list[Path]:
        folders = [study] if study else self.studies()
        return [path for name in folders for path in sorted((self.folder / name).glob("*.json"))]

    @staticmethod
    def _read(path: Path) -> Record:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except RecursionError:
            raise ValueError("not whole JSON: nested too deeply") from None
        if not isinstance(content, dict) or "run" not in content or "cell" not in content:
            raise ValueError("not a record of a run")
        version = content.get("schema_version", SCHEMA)
        if isinstance(version, int) and version > SCHEMA:
            raise ValueError("written by a newer version of timetrial; update this one to read it")
        return Record.model_validate(content)


def _keep_old(path: Path, record: Record) -> None:
    """What the record takes the place of, under a name made from its content: no two collide, none is there twice."""
    try:
        old = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_write(path, error) from error
    kept = path.parent / REPLACED / f"{path.stem}.{hashlib.sha256(old).hexdigest()[:16]}.json"
    if not (_says_the_same(old, record) or kept.exists()):
        write_atomically(kept, old)


def _says_the_same(old: bytes, record: Record) -> bool:
    """Whatever the start of the study that it was written in: an engine may be missing again and again."""
    when = {"session": record.session, "started": record.started}
    try:
        return Record.model_validate_json(old).model_copy(update=when) == record
    except ValueError:
        return False


def _looks_like_one(path: Path) -> bool:
    try:
        return isinstance(Store._read(path), Record)
    except (ValueError, OSError):
        return False


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "not whole JSON: half written or damaged"
    if isinstance(error, UnicodeDecodeError):
        return "not text"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if type(error) is ValueError:
        return str(error)
    return "not a record of this version"
