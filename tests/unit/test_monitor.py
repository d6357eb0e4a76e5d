"""How a training goes, while it goes: what the worker tells, what a person sees, and what TensorBoard reads."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import bench
from timetrial.cli.running import Scribe
from timetrial.records.store import StoreError
from timetrial.report import monitor, tensorboard
from timetrial_worker.training import Progress
from timetrial_worker.wire import Wire

PROGRESS = {"event": "progress", "epoch": 3, "epochs": 6, "step": 1200, "step_seconds": 0.0121, "loss": 0.824,
            "resident": 540 * 2**20}  # fmt: skip
EPOCH = {"event": "epoch", "epoch": 2, "epochs": 6, "step": 800, "loss": 0.9, "accuracy": 0.61}


class Heard(Wire):
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def tell(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})


# --- the worker ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 500), st.floats(1e-4, 3))
def test_the_pieces_of_an_epoch_are_all_of_it_and_last_about_a_second(steps: int, seconds: float) -> None:
    now = [0.0]
    progress = Progress(Heard(), {"epochs": 1}, clock=lambda: now[0])
    found: list[tuple[int, int]] = []
    for first, count in progress.pieces(steps):
        now[0] += count * seconds
        found.append((first, count))
    assert [first for first, _ in found] == [sum(c for _, c in found[:i]) for i in range(len(found))]
    assert sum(count for _, count in found) == steps == progress.done
    assert all(count * seconds <= 2.0 for _, count in found if count > 1)


def test_a_loop_of_the_frameworks_own_is_left_whole() -> None:
    assert list(Progress(Heard(), {"epochs": 1}, whole=True).pieces(390)) == [(0, 390)]


def test_a_training_is_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)
    (record,) = bench.run(tmp_path, "honest", accuracy="each-epoch", recipe={**bench.STUDY["recipe"], "epochs": 3})
    training = record.training
    assert training is not None
    assert training.progress[-1].step == 3 * 64 // 16
    assert [one.epoch for one in training.progress] == sorted(one.epoch for one in training.progress)
    assert [entry["epoch"] for entry in training.history] == [1, 2, 3]
    assert all(0 <= entry["accuracy"] <= 1 for entry in training.history)
    assert training.history[-1]["accuracy"] == training.accuracy
    assert tuple(entry["loss"] for entry in training.history) == training.losses
    assert record.phases["train"] < record.wall_seconds  # type: ignore[operator]


def test_without_a_test_after_each_epoch_there_is_a_loss_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)
    (record,) = bench.run(tmp_path, "honest", accuracy=True)
    assert record.training is not None
    assert set(record.training.history[0]) == {"epoch", "step", "loss"}


# --- the terminal -------------------------------------------------------------------------------------------------------


def test_the_line_says_where_it_stands() -> None:
    watched = monitor.Monitor()
    assert not watched.active and watched.line() == ""
    assert watched.hear(EPOCH) and watched.hear(PROGRESS)
    assert watched.line() == (
        "epoch 3 of 6, step 1,200: loss 0.824, 12.1 ms a step, 540 MiB; after epoch 2 accuracy 61.0 %"
    )
    assert not watched.hear({"event": "lap", "seconds": 1.0})
    watched.begin()
    assert not watched.active
    assert monitor.epoch_line(EPOCH) == "epoch 2 of 6: loss 0.9, accuracy 61.0 %"


@given(st.lists(st.floats(-1e6, 1e6), max_size=300), st.integers(1, 60))
def test_the_curve_fits_and_has_its_lowest_and_highest(values: list[float], width: int) -> None:
    drawn = monitor.sparkline(values, width)
    assert len(drawn) == min(width, len(values))
    if len(values) <= width and len(set(values)) > 1:
        assert drawn[int(np.argmin(values))] == "▁" and drawn[int(np.argmax(values))] == "█"


# --- TensorBoard --------------------------------------------------------------------------------------------------------


def test_the_checksum_is_castagnolis() -> None:
    """The vectors of RFC 3720, appendix B.4."""
    assert tensorboard.crc32c(bytes(32)) == 0x8A9136AA
    assert tensorboard.crc32c(b"\xff" * 32) == 0x62A8AB43
    assert tensorboard.crc32c(bytes(range(32))) == 0x46DD794E


def frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        (mark,) = struct.unpack_from("<I", data, at + 8)
        assert mark == tensorboard.masked(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == tensorboard.masked(body)
        yield body
        at += 16 + length


def test_events_are_written_as_they_come(tmp_path: Path) -> None:
    ticks = itertools.count(1000)
    file = tensorboard.EventFile(tmp_path / "run", clock=lambda: float(next(ticks)))
    assert next(frames(file.path.read_bytes())).endswith(b"brain.Event:2")
    file.hear(PROGRESS)
    found = list(frames(file.path.read_bytes()))  # before it is closed
    tags = (b"train/loss", b"train/step_seconds", b"memory/resident_bytes")
    assert all(tag in body for tag, body in zip(tags, found[1:], strict=True))
    assert struct.pack("<f", 0.824) in found[1]
    file.hear({**EPOCH, "accuracy": None})
    file.hear({"event": "lap"})
    file.close()
    assert len(list(frames(file.path.read_bytes()))) == 5


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        tensorboard.EventFile(tmp_path / "file" / "run")


def test_each_run_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.install(monkeypatch.setattr)
    scribe = Scribe(tmp_path / "events", "faults")
    list(bench.campaign(tmp_path / "records", "honest", accuracy=True).go(scribe.hear))
    (file,) = (tmp_path / "events").rglob("events.out.tfevents.*")
    assert file.parent.name.startswith("honest-tiny-")
    assert any(b"epoch/loss" in body for body in frames(file.read_bytes()))
