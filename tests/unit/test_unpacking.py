"""Archives of every kind: whole, cut off, and with entries that would be written elsewhere."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.unit import made_files as made
from timetrial.data.errors import DataError
from timetrial.data.fetching.unpacking import unpack

SIZE = 300_000
# --- archives ---------------------------------------------------------------------------------------------------------

FILES = {"a/one.txt": b"1", "a/b/two.txt": b"22", "three.bin": b"333"}


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("kind", ["tgz", "tar.xz", "zip", "deb"])
def test_every_kind_of_archive(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    if kind == "zip":
        zipped(path, FILES)
    elif kind == "deb":
        made.deb(path, FILES)
    else:
        made.tar(path, FILES, {"tgz": "w:gz", "tar.xz": "w:xz"}[kind])
    unpack(path, tmp_path / "all")
    found = {str(p.relative_to(tmp_path / "all")): p.read_bytes() for p in (tmp_path / "all").rglob("*") if p.is_file()}
    assert found == FILES
    assert [p.name for p in unpack(path, tmp_path / "some", ("a/*.txt",))] == ["one.txt", "two.txt"]
    with pytest.raises(DataError, match="has no file b"):
        unpack(path, tmp_path / "none", ("b",))


@pytest.mark.parametrize("kind", ["tgz", "zip", "deb"])
@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "/tmp/out-of-timetrial.txt", "a\\..\\out.txt"])
def test_an_entry_that_climbs_out_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    files = {name: b"bad"}
    path = tmp_path / f"x.{kind}"
    if kind == "deb" and name.startswith("/"):
        pytest.skip("a Debian package's names begin with ./")
    _ = zipped(path, files) if kind == "zip" else made.deb(path, files) if kind == "deb" else made.tar(path, files)
    with pytest.raises(DataError, match="outside of the folder"):
        unpack(path, tmp_path / "in")
    assert not (tmp_path / "out.txt").exists()


def test_links_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in (("soft", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    with pytest.raises(DataError, match="has no file"):
        unpack(path, tmp_path / "in")
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize("kind", ["tgz", "zip", "deb", "tar.xz"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_cut_archive_is_refused(tmp_path: Path, kind: str, share: float) -> None:
    path = tmp_path / f"x.{kind}"
    files = {f"{n}.bin": os.urandom(9000) for n in range(4)}
    if kind == "zip":
        zipped(path, files)
    elif kind == "deb":
        made.deb(path, files)
    else:
        made.tar(path, files, {"tgz": "w:gz", "tar.xz": "w:xz"}[kind])
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(DataError, match=str(path)):
        unpack(path, tmp_path / "in")


def test_a_zip_that_is_packed_in_an_unknown_way_says_so(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a": b"1"})
    data = bytearray(path.read_bytes())
    for place in (8, data.index(b"PK\x01\x02") + 10):  # the method, before the entry and in the list of entries
        data[place] = 97
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"{path}: .*compression.*unpack it yourself and give the folder"):
        unpack(path, tmp_path / "in")


@pytest.mark.parametrize("kind", ["tgz", "zip"])
@pytest.mark.parametrize(
    ("names", "entry"),
    [(("a", "a/b"), "'a/b' wants a folder"), (("a/b", "a"), "'a' is"), (("c" * 300,), f"'{'c' * 80}…' is too long")],
)
def test_entries_that_no_folder_can_hold_name_the_archive_and_the_entry(
    tmp_path: Path, kind: str, names: tuple[str, ...], entry: str
) -> None:
    path = tmp_path / f"x.{kind}"
    files = dict.fromkeys(names, b"1")
    _ = zipped(path, files) if kind == "zip" else made.tar(path, files, "w:gz")
    with pytest.raises(DataError) as found:
        unpack(path, tmp_path / "in")
    assert str(found.value).startswith(f"{path}: the entry {entry}")
    assert str(tmp_path / "in") not in str(found.value)
