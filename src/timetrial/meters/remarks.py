"""What a run's contention means for its figures: one sentence a point, each ending with what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from timetrial.meters.contention import Difference
from timetrial.records.record import Effort

# Beyond these a figure of one per cent cannot be trusted; each is a share of time unless it says otherwise.
STOLEN = 0.005
OTHERS = 0.1  # of one core
CPU_WAITS = 0.1  # the run's own threads wait for each other now and then
MEMORY_WAITS = 0.01
IO_WAITS = 0.05
THROTTLED = 0.001
SLOWER_CLOCK = 0.9  # of the frequency before
SWITCHES = 50.0  # a second and busy core; an undisturbed core has a few


@dataclass(frozen=True)
class Run:
    """What is judged: the contention of a run, and what its steady laps took where it came so far."""

    found: Difference
    effort: Effort | None = None


def judge(found: Difference, effort: Effort | None = None) -> tuple[str, ...]:
    """Nothing where nothing disturbed the run, or where it could not be measured."""
    run = Run(found, effort)
    return tuple(remark for rule in _RULES if (remark := rule(run)) is not None)


def _stolen(run: Run) -> str | None:
    share = run.found.stolen
    if share is None or share <= STOLEN:
        return None
    return (
        f"{_percent(share)} of the time was stolen by the hypervisor: take a machine of your own, "
        "or repeat at another hour"
    )


def _others(run: Run) -> str | None:
    cores = run.found.others
    if cores is None or cores <= OTHERS:
        return None
    return f"other programs kept {cores:.2g} cores busy meanwhile: end them, or wait until they are done, and repeat"


def _throttled(run: Run) -> str | None:
    share, periods = run.found.throttled, run.found.throttled_periods
    if share is None or share <= THROTTLED:
        return None
    return (
        f"the control group's quota stopped the run {periods} times, {_percent(share)} of the time: "
        "raise the quota of the container, or give the run fewer threads"
    )


def _waited_for_cores(run: Run) -> str | None:
    share = run.found.stalls.get("cpu")
    # Where others are named already, this is the same finding once more.
    if share is None or share <= CPU_WAITS or _others(run):
        return None
    return (
        f"something waited for a core {_percent(share)} of the time: give the run as many threads as it has cores, "
        "and leave one core free for the system"
    )


def _waited_for_memory(run: Run) -> str | None:
    share = _larger(run, "memory")
    if share is None or share <= MEMORY_WAITS:
        return None
    return (
        f"something waited for memory {_percent(share)} of the time: end what else uses memory, "
        "raise the control group's limit, or take a smaller batch"
    )


def _waited_for_disk(run: Run) -> str | None:
    share = _larger(run, "io")
    if share is None or share <= IO_WAITS:
        return None
    return (
        f"something waited for a disk {_percent(share)} of the time: let the copies and backups end, "
        "or put the records on another disk, and repeat"
    )


def _swapped(run: Run) -> str | None:
    if not run.found.swapped:
        return None
    return (
        f"{run.found.swapped} pages went to or came from swap: switch swap off (swapoff -a), "
        "or end what else uses memory, and repeat"
    )


def _too_hot(run: Run) -> str | None:
    if not run.found.too_hot:
        return None
    return (
        f"the cores were slowed down {run.found.too_hot} times because they were too hot: cool the machine better, "
        "switch turbo off, or leave pauses between runs"
    )


def _slower_clock(run: Run) -> str | None:
    before, after = run.found.mhz_before, run.found.mhz_after
    if not before or after is None or after >= SLOWER_CLOCK * before:
        return None
    return (
        f"the cores' frequency fell from {before:.0f} to {after:.0f} MHz: fix it (cpupower frequency-set "
        "--governor performance, turbo off), and repeat"
    )


def _switched(run: Run) -> str | None:
    if run.effort is None or not run.effort.wall_seconds:
        return None
    rate = run.effort.involuntary_switches / run.effort.wall_seconds / max(run.effort.cores_used, 1.0)
    if rate <= SWITCHES:
        return None
    return (
        f"the run was taken off its cores {rate:.0f} times a second: leave its cores to it alone, "
        "and give it no more threads than cores"
    )


def _larger(run: Run, name: str) -> float | None:
    shares = [stalls[name] for stalls in (run.found.stalls, run.found.group_stalls) if name in stalls]
    return max(shares, default=None)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


_RULES: tuple[Callable[[Run], str | None], ...] = (
    _stolen, _others, _throttled, _waited_for_cores, _waited_for_memory, _waited_for_disk, _swapped, _too_hot,
    _slower_clock, _switched,
)  # fmt: skip
