"""The harness's own share of a lap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetrial.meters.overhead import ALLOWED, remark, share_of_lap
from timetrial.records.record import Effort
from timetrial_worker import laps


def effort(idle: float = 1e-7, resolution: float = 1e-9) -> Effort:
    return Effort(
        cpu_seconds=1.0, wall_seconds=1.0, threads=1, involuntary_switches=0, idle_step_seconds=idle,
        clock_resolution=resolution,
    )  # fmt: skip


def test_the_loop_counts_by_step_and_the_clock_by_lap() -> None:
    assert share_of_lap(effort(1e-7, 0.0), 1e-3, 100) == pytest.approx(1e-4)
    assert share_of_lap(effort(0.0, 1e-3), 0.1, 1) == pytest.approx(0.02)
    assert share_of_lap(effort(0.0, 1e-3), 0.1, 10) == pytest.approx(0.002)


@given(st.floats(1e-6, 10), st.integers(1, 10**6))
def test_longer_laps_never_show_more(seconds: float, steps: int) -> None:
    one, more = (share_of_lap(effort(), seconds, count) for count in (steps, 2 * steps))
    assert one is not None and more is not None
    assert 0 < more <= one


def test_what_was_not_measured_has_no_share() -> None:
    assert share_of_lap(None, 1.0, 1) is None
    assert share_of_lap(effort(), None, 1) is None
    assert share_of_lap(effort(), 0.0, 1) is None
    assert share_of_lap(effort(), 1.0, 0) is None


def test_only_what_is_too_much_is_remarked() -> None:
    assert remark(None) is None
    assert remark(ALLOWED) is None
    found = remark(0.02)
    assert found is not None
    assert "2.0 % of a lap" in found
    assert "larger batch" in found


def test_an_empty_step_is_a_negligible_part_of_a_short_lap() -> None:
    """A step of a tenth of a millisecond, which is as small as networks get."""
    share = share_of_lap(effort(laps.idle_step_seconds(2000)), 1e-4, 1000)
    assert share is not None
    assert share < 0.1
