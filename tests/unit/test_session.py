"""Canary and contention around a run, with a canary whose songs are written down."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from timetrial.meters.canary import Canary, Reading, Song
from timetrial.meters.contention import Difference
from timetrial.meters.session import SETTLING_SONGS, Around, Session


class Score(Canary):
    """Sings what is written; None is a song that could not be measured."""

    def __init__(self, *seconds: float | None) -> None:
        Canary.__init__(self)
        self.left = list(seconds)
        self.asked: list[Sequence[int]] = []

    def __enter__(self) -> Score:
        return self

    def sing(self, cores: Sequence[int]) -> Reading | None:
        self.asked.append(cores)
        value = self.left.pop(0)
        return None if value is None else Reading((Song(0, value, 1.0),))


def one_run(*seconds: float | None, floor: float = 0.0, settle: bool = False) -> tuple[Session, Around]:
    with Session(Score(*seconds), floor) as session:
        if settle:
            session.settle([0])
        with session.around([0]) as around:
            pass
    return session, around


def test_a_machine_that_stays_what_it_was() -> None:
    _, around = one_run(1.0, 1.01)
    assert around.drifted == ()
    assert around.before == Reading((Song(0, 1.0, 1.0),))
    assert around.contention is not None and around.contention.seconds > 0


def test_a_change_over_the_run_is_told() -> None:
    _, around = one_run(1.0, 1.1)
    (remark,) = around.drifted
    assert "computes 10.0 % more slowly" in remark
    assert remark in around.remarks()


def test_a_change_within_the_sessions_floor_is_none() -> None:
    assert one_run(1.0, 1.1, floor=0.12)[1].drifted == ()


def test_a_canary_that_varies_by_itself_needs_more() -> None:
    restless = [1.0 + i / 100 for i in range(SETTLING_SONGS)]
    session, around = one_run(*restless, 1.0, 1.05, settle=True)
    assert session.noise is not None and session.noise.compute > 0.05
    assert around.drifted == ()


def test_a_slow_drift_shows_against_the_sessions_usual() -> None:
    """Each run alone changes by 1 %; after some of them the machine is another."""
    songs = [value for run in range(8) for value in (1.0 + run / 100, 1.01 + run / 100)]
    with Session(Score(*songs)) as session:
        found = []
        for _ in range(8):
            with session.around([0]) as around:
                pass
            found.append(bool(around.drifted))
    assert not any(found[:2])
    assert found[-1]


def test_what_the_canary_did_not_measure_is_no_drift() -> None:
    for songs in ((None, 1.0), (1.0, None), (None, None)):
        _, around = one_run(*songs)
        assert around.drifted == ()


def test_settling_without_a_canary_knows_no_noise() -> None:
    session, _ = one_run(*[None] * SETTLING_SONGS, 1.0, 1.0, settle=True)
    assert session.noise is None


def test_an_interrupted_run_leaves_what_there_was() -> None:
    with Session(Score(1.0)) as session:
        with pytest.raises(KeyboardInterrupt), session.around([0]) as around:
            raise KeyboardInterrupt
        assert around.before is not None
        assert (around.after, around.contention, around.remarks()) == (None, None, ())


def test_the_record_is_plain() -> None:
    _, around = one_run(1.0, 1.1)
    around.contention = Difference(2.0, stolen=0.1, stalls={"cpu": 0.1})
    kept = json.loads(json.dumps(around.as_record()))
    assert kept["canary_after"]["compute_seconds"] == 1.1
    assert kept["contention"]["stolen"] == 0.1
    assert kept["canary_usual"] is None
    assert len(kept["drifted"]) == 1
    assert any("stolen" in remark for remark in around.remarks())
