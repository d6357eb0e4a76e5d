"""The canary: what it answers, what happens when it dies, and what counts as a change of the machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from timetrial.meters.canary import MOST_CORES, Canary, Drift, Noise, Reading, Song, drift, noise, spread, typical

CORES = sorted(os.sched_getaffinity(0))


def reading(*songs: tuple[int, float, float]) -> Reading:
    return Reading(tuple(Song(*song) for song in songs))


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    with Canary() as canary:
        yield canary


def fake(folder: Path, body: str) -> list[str | Path]:
    """A canary of the test's own."""
    script = folder / "child.py"
    script.write_text(f"import json, os, sys, time\nfor line in sys.stdin:\n    {body}\n", encoding="utf-8")
    return [script, folder]


def test_it_sings_on_the_cores_that_are_named(canary: Canary) -> None:
    found = canary.sing(CORES[:2])
    assert found is not None
    assert [song.core for song in found.songs] == CORES[:2]
    assert all(song.compute_seconds > 0 and song.copy_seconds > 0 for song in found.songs)
    assert found.compute_seconds == max(song.compute_seconds for song in found.songs)
    assert found.as_record()["cores"] == CORES[:2]


def test_it_is_one_process_with_one_thread_that_sleeps_between_songs(canary: Canary) -> None:
    assert canary.sing(CORES[:1]) is not None
    pid = canary.pid
    assert canary.sing(CORES[:1]) is not None
    assert canary.pid == pid
    assert len(os.listdir(f"/proc/{pid}/task")) == 1
    before = cpu_ticks(pid)
    time.sleep(0.2)
    assert cpu_ticks(pid) == before


def cpu_ticks(pid: int | None) -> int:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def test_a_canary_that_died_is_started_again() -> None:
    with Canary() as canary:
        first = canary.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert canary.sing(CORES[:1]) is not None
        assert canary.pid != first


def test_one_that_dies_twice_over_a_song_is_not_measured_and_not_asked_again(tmp_path: Path) -> None:
    child = fake(tmp_path, "open(os.path.join(sys.argv[1], str(os.getpid()) + '.died'), 'w'); os._exit(1)")
    with Canary(child) as canary:
        assert canary.sing([0]) is None
        assert canary.sing([0]) is None
    assert len(list(tmp_path.glob("*.died"))) == 2


@pytest.mark.parametrize("body", ["print('no json', flush=True)", "print('{', flush=True)", "print('[1]', flush=True)"])
def test_rubbish_is_no_reading(tmp_path: Path, body: str) -> None:
    with Canary(fake(tmp_path, body)) as canary:
        assert canary.sing([0]) is None


def test_one_that_hangs_is_given_up_and_killed(tmp_path: Path) -> None:
    with Canary(fake(tmp_path, "time.sleep(60)"), patience=0.2) as canary:
        pid = canary.pid
        assert canary.sing([0]) is None
    assert not Path(f"/proc/{pid}").exists()


def test_a_script_that_is_not_there_is_not_an_error(tmp_path: Path) -> None:
    with Canary([tmp_path / "nothing.py"]) as canary:
        assert canary.sing([0]) is None


def test_a_core_that_is_not_there_is_not_measured_and_costs_nothing_else(canary: Canary) -> None:
    assert canary.sing([2**12]) is None
    assert canary.sing(CORES[:1]) is not None


def test_no_cores_no_song(canary: Canary) -> None:
    assert canary.sing([]) is None


def test_it_leaves_with_its_campaign() -> None:
    with Canary() as canary:
        pid = canary.pid
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_of_many_cores_four_are_taken_with_both_ends() -> None:
    assert spread([3, 5]) == [3, 5]
    found = spread(range(64))
    assert len(found) == MOST_CORES
    assert (found[0], found[-1]) == (0, 63)
    assert found == sorted(set(found))


def test_drift_is_of_the_worst_core() -> None:
    found = drift(reading((0, 1.0, 2.0), (1, 1.0, 2.0)), reading((0, 1.01, 2.0), (1, 1.05, 1.9)))
    assert found is not None
    assert found.compute == pytest.approx(0.05)
    assert found.copy == pytest.approx(-0.05)


def test_a_slow_core_is_not_hidden_by_one_that_was_slower_from_the_start() -> None:
    """Core 1 is always the slowest; core 0 lost a fifth."""
    found = drift(reading((0, 1.0, 1.0), (1, 1.5, 1.0)), reading((0, 1.2, 1.0), (1, 1.5, 1.0)))
    assert found is not None
    assert found.compute == pytest.approx(0.2)


def test_drift_of_what_was_not_measured_is_not_measured() -> None:
    some = reading((0, 1.0, 1.0))
    assert drift(None, some) is None
    assert drift(some, None) is None
    assert drift(some, reading((1, 1.0, 1.0))) is None


@pytest.mark.parametrize(
    ("found", "floor", "noise", "flagged"),
    [
        (Drift(0.019, 0.0), 0.0, None, 0),
        (Drift(0.021, 0.0), 0.0, None, 1),
        (Drift(0.0, -0.03), 0.0, None, 1),  # faster than before is a change too
        (Drift(0.03, 0.03), 0.04, None, 0),  # within the session's own noise
        (Drift(0.03, 0.10), 0.0, Noise(0.01, 0.12), 1),  # copies vary that much by themselves here
        (Drift(0.03, 0.20), 0.0, Noise(0.01, 0.12), 2),
    ],
)
def test_what_is_flagged(found: Drift, floor: float, noise: Noise | None, flagged: int) -> None:
    assert len(found.remarks(floor, noise)) == flagged


def test_a_remark_says_what_changed_and_what_to_do() -> None:
    slower, faster = Drift(0.05, -0.04).remarks()
    assert "computes 5.0 % more slowly" in slower
    assert "copies memory 4.0 % faster" in faster
    assert slower.endswith("repeat the run")


def test_noise_is_how_far_songs_lie_apart() -> None:
    found = noise([reading((0, 1.0 + i / 100, 2.0)) for i in range(11)])
    assert found is not None
    assert found.compute == pytest.approx(0.08 / 1.05)
    assert found.copy == 0.0
    assert noise([reading((0, 1.0, 1.0))] * 4 + [None]) is None


def test_the_typical_reading_is_the_median_core_by_core() -> None:
    found = typical([reading((0, 1.0, 1.0)), None, reading((0, 3.0, 1.0), (1, 5.0, 5.0)), reading((0, 2.0, 9.0))])
    assert found == reading((0, 2.0, 1.0), (1, 5.0, 5.0))
    assert typical([None]) is None
