"""Contention: what is read from a made-up /proc and /sys, what differs between two looks, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetrial.meters import contention
from timetrial.meters.contention import Difference, Snapshot, Throttling, Ticks, difference, snapshot
from timetrial.meters.remarks import judge
from timetrial.records.record import Effort

STAT = """cpu  1000 100 300 8000 200 10 20 70 50 0
cpu0 600 50 150 4000 100 5 10 35 0 0
cpu1 400 50 150 4000 100 5 10 35 0 0
intr 1 2 3
"""
PRESSURE = """some avg10=2.34 avg60=3.11 avg300=2.53 total=13033385
full avg10=0.00 avg60=0.00 avg300=0.00 total=7
"""
MACHINE = {
    "proc/stat": STAT,
    "proc/loadavg": "0.87 0.63 0.28 3/104 5675\n",
    "proc/vmstat": "nr_free_pages 5\npswpin 3\npswpout 4\n",
    "proc/pressure/cpu": PRESSURE,
    "proc/pressure/memory": PRESSURE.replace("13033385", "2000000"),
    "proc/self/cgroup": "0::/user/me\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "sys/fs/cgroup/user/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1500000\n",
    "sys/fs/cgroup/user/me/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 2\nthrottled_usec 500000\n",
    "sys/fs/cgroup/user/me/io.pressure": PRESSURE.replace("13033385", "500000"),
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "3600000\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "1200000\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "2\n",
}


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return put(tmp_path, MACHINE)


def still(**changes: object) -> Snapshot:
    """A machine on which nothing happens."""
    values: dict[str, object] = {
        "seconds": 100.0, "own_seconds": 5.0, "machine": Ticks(50.0, 0.0, 200.0),
        "cores": {0: Ticks(25.0, 0.0, 100.0), 1: Ticks(25.0, 0.0, 100.0)},
        "stalls": {"cpu": 1.0, "memory": 0.0, "io": 2.0}, "group_stalls": {}, "throttling": Throttling(4, 1.0),
        "load": 0.5, "running": 2, "mhz": {0: 3000.0, 1: 2000.0}, "too_hot": 7, "swapped": 10,
    }  # fmt: skip
    return Snapshot(**{**values, **changes})  # type: ignore[arg-type]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_what_is_read(root: Path) -> None:
    found = snapshot(root=root)
    assert found.load == 0.87
    assert found.running == 3
    assert found.swapped == 7
    assert found.stalls == pytest.approx({"cpu": 13.033385, "memory": 2.0})  # there is no file for io
    assert found.group_stalls == pytest.approx({"io": 0.5})
    assert found.throttling == Throttling(4, 1.5)  # a quota on any group above holds
    assert found.mhz == {0: 3600.0, 1: 1200.0}
    assert found.too_hot == 5
    assert sorted(found.cores) == [0, 1]


def test_only_the_cores_of_the_run_are_read(root: Path) -> None:
    found = snapshot([1], root)
    assert list(found.cores) == [1]
    assert found.mhz == {1: 1200.0}
    assert found.too_hot is None


def test_busy_is_neither_idle_nor_waiting_nor_stolen_and_guests_are_not_counted_twice() -> None:
    machine, cores = contention.parse_stat(STAT, 100)
    assert machine is not None
    assert machine.busy == pytest.approx(14.3)  # user, nice, system, irq, softirq
    assert machine.stolen == pytest.approx(0.7)
    assert machine.total == pytest.approx(97.0)
    assert cores[1].busy == pytest.approx(6.15)


def test_an_old_kernel_has_fewer_columns() -> None:
    machine, _ = contention.parse_stat("cpu 100 0 50 800\n", 100)
    assert machine == Ticks(1.5, 0.0, 9.5)


def test_a_machine_that_shows_nothing_is_not_measured(tmp_path: Path) -> None:
    found = snapshot(root=tmp_path)
    assert (found.machine, found.load, found.running, found.throttling, found.too_hot, found.swapped) == (None,) * 6
    assert (found.cores, found.stalls, found.group_stalls, found.mhz) == ({}, {}, {}, {})
    nothing = difference(found, found)
    assert (nothing.stolen, nothing.others, nothing.throttled, nothing.mhz_after) == (None,) * 4
    assert judge(nothing) == ()


def test_throttling_of_a_version_1_group(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/m\n2:cpu,cpuacct:/box\n",
            "sys/fs/cgroup/cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
            "sys/fs/cgroup/cpu/box/cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n",
        },
    )
    assert snapshot(root=tmp_path).throttling == Throttling(3, 2.5)


def test_frequency_from_cpuinfo_where_there_is_no_driver(tmp_path: Path) -> None:
    blocks = "\n\n".join(f"processor\t: {i}\nmodel\t: 1\ncpu MHz\t\t: {2000 + i}.5\nflags\t: a" for i in range(12))
    put(tmp_path, {"proc/stat": "".join(f"cpu{i} 1 1 1 1\n" for i in range(12)), "proc/cpuinfo": blocks})
    assert snapshot([1, 11], tmp_path).mhz == {1: 2001.5, 11: 2011.5}


@pytest.mark.parametrize("text", ["", "full avg10=0 total=3", "some avg10=0", "garbage"])
def test_pressure_that_is_not_there(text: str) -> None:
    assert contention.parse_pressure(text) is None


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    contention.parse_stat(text, 100)
    contention.parse_pressure(text)
    contention.parse_load(text)
    contention.parse_throttling(text)
    contention.parse_swapped(text)


def test_this_machine() -> None:
    before = snapshot()
    sum(range(200_000))
    found = difference(before, snapshot())
    assert found.seconds > 0
    assert found.stolen is None or 0 <= found.stolen <= 1
    assert found.others is None or found.others >= 0


# --- differences ------------------------------------------------------------------------------------------------------


def test_what_the_run_itself_used_is_not_others() -> None:
    after = still(seconds=110.0, own_seconds=24.0, machine=Ticks(70.5, 0.0, 220.0))
    found = difference(still(), after)
    assert found.seconds == 10.0
    assert found.others == pytest.approx(0.15)  # 20.5 s busy, 19 of them the run's


def test_counters_that_lag_behind_are_not_negative() -> None:
    found = difference(still(), still(seconds=101.0, own_seconds=9.0, swapped=9, too_hot=6))
    assert (found.others, found.swapped, found.too_hot) == (0.0, 0, 0)


def test_shares_are_of_the_time_between() -> None:
    after = still(
        seconds=104.0,
        cores={0: Ticks(25.0, 0.4, 104.0), 1: Ticks(25.0, 0.0, 104.0)},
        stalls={"cpu": 3.0, "memory": 0.1, "io": 2.0},
        throttling=Throttling(6, 1.4),
    )
    found = difference(still(), after)
    assert found.stolen == pytest.approx(0.05)
    assert found.stalls == pytest.approx({"cpu": 0.5, "memory": 0.025, "io": 0.0})
    assert found.throttled == pytest.approx(0.1)
    assert found.throttled_periods == 2
    assert found.running == 1  # without this process
    assert (found.mhz_before, found.mhz_after) == (2500.0, 2500.0)


# --- judgement --------------------------------------------------------------------------------------------------------


def effort(**changes: float) -> Effort:
    values = {"cpu_seconds": 2.0, "wall_seconds": 1.0, "threads": 4, "involuntary_switches": 3,
              "idle_step_seconds": 1e-7, "clock_resolution": 1e-9}  # fmt: skip
    return Effort(**{**values, **changes})  # type: ignore[arg-type]


def test_a_quiet_machine_gets_no_remark() -> None:
    assert judge(difference(still(), still(seconds=110.0)), effort()) == ()
    assert judge(Difference(seconds=1.0, stolen=0.0, others=0.02, throttled=0.0, swapped=0, too_hot=0)) == ()


@pytest.mark.parametrize(
    ("found", "finding", "remedy"),
    [
        (Difference(1.0, stolen=0.12), "12 % of the time was stolen by the hypervisor", "a machine of your own"),
        (Difference(1.0, stolen=0.0061), "0.6 % of the time was stolen", "repeat at another hour"),
        (Difference(1.0, others=0.75), "other programs kept 0.75 cores busy", "repeat"),
        (Difference(1.0, throttled=0.996, throttled_periods=12), "stopped the run 12 times, 100 %", "fewer threads"),
        (Difference(1.0, stalls={"cpu": 0.3}), "waited for a core 30 %", "one core free"),
        (Difference(1.0, stalls={"memory": 0.02}), "waited for memory 2.0 %", "smaller batch"),
        (Difference(1.0, group_stalls={"io": 0.1}), "waited for a disk 10 %", "repeat"),
        (Difference(1.0, swapped=8), "8 pages", "swapoff"),
        (Difference(1.0, too_hot=2), "too hot", "pauses between runs"),
        (Difference(1.0, mhz_before=3000.0, mhz_after=2000.0), "from 3000 to 2000 MHz", "performance"),
    ],
)
def test_a_remark_says_what_was_and_ends_with_the_remedy(found: Difference, finding: str, remedy: str) -> None:
    (remark,) = judge(found)
    what, _, todo = remark.partition(": ")
    assert finding in what
    assert remedy in todo
    assert not remark.endswith(".")


def test_switches_are_judged_by_busy_core() -> None:
    nothing = Difference(1.0)
    assert judge(nothing, effort(involuntary_switches=99)) == ()
    (remark,) = judge(nothing, effort(involuntary_switches=400))
    assert "taken off its cores 200 times a second" in remark


def test_the_same_finding_is_not_told_twice() -> None:
    (remark,) = judge(Difference(1.0, others=1.0, stalls={"cpu": 0.5}))
    assert "other programs" in remark
