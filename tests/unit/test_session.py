"""What is seen of the machine around each run, and which runs are flagged for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from timetrial.meters.canary import Canary, Reading, Song
from timetrial.records.store import Store
from timetrial.runner.session import AT_REST, Session


class Scripted(Canary):
    """Sings what it is told; None where it cannot."""

    def __init__(self, *seconds: float | None) -> None:
        super().__init__()
        self._left: Iterator[float | None] = iter(seconds)
        self.sung = 0

    def __enter__(self) -> Canary:
        return self

    def sing(self, cores: Sequence[int]) -> Reading | None:
        self.sung += 1
        seconds = next(self._left)
        return None if seconds is None else Reading(tuple(Song(core, seconds, 2 * seconds) for core in cores))


REST = (1.0,) * AT_REST


def flags(tmp_path: Path, *seconds: float | None, runs: int = 1, floor: float = 0.01) -> list[tuple[str, ...]]:
    found = []
    with Session(Store(tmp_path), "made", "m", Scripted(*seconds)) as session:
        for _ in range(runs):
            with session.look([0], floor) as seen:
                pass
            found.append(seen.flags)
    return found


def test_a_steady_machine_flags_nothing(tmp_path: Path) -> None:
    assert flags(tmp_path, *REST, 1.0, 1.01, 0.99, 1.0, runs=2) == [(), ()]


def test_a_run_beside_a_slower_machine_is_flagged_with_the_reason(tmp_path: Path) -> None:
    steady, disturbed, calm = flags(tmp_path, *REST, 1.0, 1.0, 1.0, 1.06, 1.0, 1.0, runs=3)
    assert (steady, calm) == ((), ())
    assert len(disturbed) == 2  # computing and copying
    assert disturbed[0].startswith("after the run, the machine")
    assert "6.0 % more slowly" in disturbed[0]


def test_what_the_sessions_own_noise_explains_is_not_flagged(tmp_path: Path) -> None:
    assert flags(tmp_path, *REST, 1.04, 1.0, floor=0.05) == [()]
    assert flags(tmp_path, *REST, 1.04, 1.0, floor=0.01) != [()]


def test_what_the_canary_does_at_rest_is_not_flagged(tmp_path: Path) -> None:
    restless = (1.0, 0.95, 1.05, 1.0, 1.0) * (AT_REST // 5)
    assert flags(tmp_path, *restless, 1.045, 1.0) == [()]
    assert flags(tmp_path, *restless, 1.2, 1.0) != [()]


def test_a_machine_that_is_never_steady_is_not_flagged_for_every_run(tmp_path: Path) -> None:
    scatter = [1.0 + 0.05 * (-1) ** number for number in range(AT_REST + 40)]
    assert not any(flags(tmp_path, *scatter, runs=20))


def test_without_a_canary_nothing_is_flagged_and_nothing_is_claimed(tmp_path: Path) -> None:
    with Session(Store(tmp_path), "made", "m", Scripted(*[None] * 4)) as session, session.look([0], 0.01) as seen:
        pass
    about = seen.as_record(None)
    assert (about["flags"], about["canary"]) == ((), {})


def test_a_run_that_fails_leaves_the_session_whole(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        Session(Store(tmp_path), "made", "m", Scripted(*REST, 1.0)) as session,
        session.look([0], 0.01),
    ):
        raise KeyboardInterrupt
    (path,) = (tmp_path / "made" / "sessions").glob("*.json")
    kept = json.loads(path.read_text())
    assert (kept["study"], kept["machine"], kept["flagged"]) == ("made", "m", 0)
    assert [song["compute_seconds"] for song in kept["canary"]] == [1.0]
    assert Store(tmp_path).records("made") == []  # it is no record


def test_contention_and_canary_go_into_the_record(tmp_path: Path) -> None:
    with Session(Store(tmp_path), "made", "m", Scripted(*REST, 1.0, 1.0)) as session, session.look([0], 0.01) as seen:
        pass
    about = seen.as_record(None)
    assert about["canary"]["before"]["compute_seconds"] == 1.0
    assert about["contention"]["seconds"] > 0
    json.dumps(about)


def test_a_real_canary_sings_for_a_real_session(tmp_path: Path) -> None:
    with Session(Store(tmp_path), "made", "m") as session, session.look([0], 0.01) as seen:
        pass
    assert seen.before is not None and seen.after is not None
    assert seen.before.compute_seconds > 0
