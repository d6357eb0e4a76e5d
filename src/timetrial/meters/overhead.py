"""What the harness itself takes of a lap. Nothing is subtracted: it is shown, and has to stay small."""

from __future__ import annotations

from timetrial.records.record import Effort

ALLOWED = 0.005  # of a lap


def share_of_lap(effort: Effort | None, seconds_per_step: float | None, steps_per_lap: int) -> float | None:
    """The loop around the steps, as an empty step showed it, and the clock's resolution at both edges, over the lap."""
    if effort is None or not seconds_per_step or steps_per_lap < 1:
        return None
    own = steps_per_lap * effort.idle_step_seconds + 2 * effort.clock_resolution
    return own / (steps_per_lap * seconds_per_step)


def remark(share: float | None) -> str | None:
    if share is None or share <= ALLOWED:
        return None
    return (
        f"the loop around the steps takes {100 * share:.1f} % of a lap: "
        "compare engines with a larger batch or network, where a step takes longer"
    )
