"""The energy sampler beside a run: real processes over made counters, windows, idle power, and what is not known."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.made_energy import DRAM, LIBRARY_IN_C, NAMES, PACKAGE, PSYS, SECOND, Powercap
from timetrial.meters import energy as meters
from timetrial.meters.energy import EnergyMeter, EnergySampler, Readings
from timetrial.meters.energy_sources import Choice
from timetrial.records.energy import Energy
from timetrial.records.record import Laps

NOWHERE = "libnothing-of-the-kind.so"
BEGIN, END = {"event": "begin", "phase": "steady"}, {"event": "end", "phase": "steady"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(meters, "LOOK_SECONDS", 0.1)


def choice(root: Path, **changes: Any) -> Choice:
    return Choice(**{"sysfs": str(root), "nvml": NOWHERE, **changes})


def laps(seconds: float, steps: int) -> Laps:
    """Five of them, of so many seconds and steps together."""
    return Laps(seconds=(seconds / steps,) * 5, steps=steps // 5, warmup=(), stable=True)


def measured(asked: Choice, seconds: float = 0.5, steps: int = 10, device: str = "cpu") -> Energy:
    meter = EnergyMeter(asked)
    assert meter.window >= 5  # which also looks at how often the counters change
    with meter.sampler([]) as sampler:
        sampler.told({"event": "lap", "seconds": 1.0})
        sampler.told(BEGIN)
        time.sleep(seconds)
        sampler.told(END)
        seen = sampler.stop()
    return meter.energy(seen, laps(seconds, steps), device)


# --- the sampler ---------------------------------------------------------------------------------------------------------


def test_joules_of_the_steady_laps_are_the_counters_own(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, NAMES)
    with tree.running({PACKAGE: 100.0, SECOND: 60.0, DRAM: 6.0, PSYS: 300.0}):
        found = measured(choice(tmp_path))
    assert found.seconds == pytest.approx(0.5, abs=0.4)
    joules, by_name = found.joules(), {one.domain: one for one in found.domains}
    assert joules is not None and found.seconds is not None
    assert joules / found.seconds == pytest.approx(166, rel=0.3)
    added = [by_name[name].joules or 0 for name in ("package-0", "package-1", "package-0/dram")]
    assert joules == pytest.approx(sum(added))
    assert by_name["psys"].inside and by_name["psys"].joules is not None  # it holds the packages: shown, not added
    assert by_name["package-0/core"].reason == "it did not move during the steady laps"
    assert by_name["package-0"].idle_watts == pytest.approx((100, 100), rel=0.5)
    assert found.absent == (f"no NVIDIA driver ({NOWHERE} is not there)",)
    assert found.per_step(joules) == joules / 10


def test_a_counter_that_begins_again_many_times_is_followed(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, {PACKAGE: "package-0"}, wraps_at=600.0)  # full twice in the time
    with tree.running({PACKAGE: 900.0}):
        found = measured(choice(tmp_path), seconds=1.6)
    (package,) = found.domains
    assert package.reason == ""
    assert package.wraps >= 2
    assert package.joules == pytest.approx(900 * (found.seconds or 0), rel=0.2)


def test_a_domain_that_vanishes_meanwhile_is_not_measured_and_says_why(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, {PACKAGE: "package-0", SECOND: "package-1"})
    meter = EnergyMeter(choice(tmp_path))
    with tree.running({PACKAGE: 100.0, SECOND: 60.0}), meter.sampler([]) as sampler:
        sampler.told(BEGIN)
        time.sleep(0.1)
        tree.vanish(SECOND)
        sampler.told(END)
        found = meter.energy(sampler.stop(), laps(0.1, 10), "cpu")
    one, other = found.domains
    assert one.joules is not None and other.joules is None
    assert "cannot be read" in other.reason
    assert found.joules() is None  # of two processors one is not known: there is no sum
    assert found.active_joules() is None and found.edp() is None
    assert found.problem.startswith("package-1: ")


def test_a_window_that_is_too_short_is_marked(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, {PACKAGE: "package-0"})
    with tree.running({PACKAGE: 100.0}):
        found = measured(choice(tmp_path), seconds=0.2)
    assert found.short.startswith("window too short: 0.")
    assert found.joules() is not None


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to build a library with")
def test_a_power_is_sampled_from_another_process(tmp_path: Path) -> None:
    (tmp_path / "made.c").write_text(LIBRARY_IN_C)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "made.so", tmp_path / "made.c"], check=True)
    found = measured(choice(tmp_path, nvml=str(tmp_path / "made.so")), seconds=1.0, device="cuda:0")
    counter, power = found.domains
    assert counter.joules == pytest.approx(150 * (found.seconds or 0), rel=0.05)
    assert power.joules == pytest.approx(30 * (found.seconds or 0), rel=0.05)
    assert power.updates is not None
    assert 4 <= power.updates <= 10 * (found.seconds or 0) + 3  # ten times a second at most, and at both ends
    assert found.has_idle_devices
    with_idle, without = found.edp(with_idle=True), found.edp()
    assert with_idle is not None and without is not None
    assert with_idle / without == pytest.approx(180 / 150, rel=0.02)
    assert f"{power.updates} updates of cuda:1 where 100 are needed" in found.short


def test_a_model_says_that_it_is_one(tmp_path: Path) -> None:
    found = measured(choice(tmp_path, model=(10.0, 8.0)), seconds=0.3)
    assert [(one.source, one.domain) for one in found.domains] == [("model", "cpu")]
    assert (found.joules() or 0) >= 10 * (found.seconds or 0) * 0.99


def test_a_sampler_that_was_killed_is_not_measured(tmp_path: Path) -> None:
    Powercap(tmp_path, {PACKAGE: "package-0"})
    meter = EnergyMeter(choice(tmp_path))
    with meter.sampler([]) as sampler:
        assert sampler.pid is not None
        os.kill(sampler.pid, signal.SIGKILL)
        sampler.told(BEGIN)
        sampler.told(END)
        seen = sampler.stop()
    assert seen is None
    found = meter.energy(seen, laps(0.1, 10), "cpu")
    assert found.joules() is None
    assert found.problem.startswith("the sampler beside the run has died")


def test_a_sampler_that_cannot_start_is_not_measured(tmp_path: Path) -> None:
    with EnergySampler(choice(tmp_path), child=[tmp_path / "nothing.py"]) as sampler:
        sampler.told(BEGIN)
        assert sampler.stop() is None


def test_it_leaves_with_its_run_and_takes_no_time_where_nothing_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Powercap(tmp_path, {PACKAGE: "package-0"})
    with EnergySampler(choice(tmp_path)) as sampler:
        pid, start = sampler.pid, time.monotonic()
        monkeypatch.setattr(meters, "IDLE_SECONDS", 60.0)
        assert sampler.stop() is not None  # a run that failed before its laps has no idle window after it
        assert time.monotonic() - start < 30
    assert not Path(f"/proc/{pid}").exists()


# --- windows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("every", "window"), [((), 5.0), ((0.001,), 5.0), ((0.001, 0.1), 10.0), ((None,), 5.0), ((30.0,), 60.0)]
)
def test_a_window_lasts_five_seconds_and_a_hundred_updates(every: Sequence[float | None], window: float) -> None:
    meter = EnergyMeter(Choice(replay="nothing"))
    meter.__dict__["update_seconds"] = {str(i): one for i, one in enumerate(every)}
    assert meter.window == pytest.approx(1.05 * window)


def marks(**times: float) -> dict[str, tuple[float, dict[str, list[float]]]]:
    """Of one package that takes 20 W before the run, 100 W in it and 30 W after it."""
    watts = {"before": 20.0, "steady": 100.0, "after": 30.0}
    found: dict[str, tuple[float, dict[str, list[float]]]] = {}
    at = joules = 0.0
    for name, seconds in times.items():
        found[name] = (at, {"package-0": [joules, 1, 0]})
        at, joules = at + seconds, joules + seconds * watts[name]
        found[f"{name} end"] = (at, {"package-0": [joules, 2, 0]})
    return found


def known(tmp_path: Path, readings: Readings, every: float | None = 0.001, busy: float = 10.0) -> Energy:
    Powercap(tmp_path, {PACKAGE: "package-0"})
    meter = EnergyMeter(choice(tmp_path))
    meter.__dict__["update_seconds"] = {"package-0": every}
    return meter.energy(readings, laps(busy, 50), "cpu")


def test_idle_power_is_subtracted_and_shown(tmp_path: Path) -> None:
    found = known(tmp_path, Readings(marks(before=5, steady=10, after=5), {}))
    assert found.domains[0].idle_watts == pytest.approx((20, 30))
    assert found.domains[0].updates == 10_000
    assert found.joules() == pytest.approx(1000)
    assert found.active_joules() == pytest.approx(1000 - 25 * 10)
    assert found.short == ""
    assert found.edp() == pytest.approx(10 / 50 * 1000 / 50)


def test_without_an_idle_window_there_is_a_sum_and_nothing_above_idle(tmp_path: Path) -> None:
    found = known(tmp_path, Readings(marks(before=5, steady=10), {}))
    assert found.joules() == pytest.approx(1000)
    assert found.domains[0].idle_watts is None
    assert found.active_joules() is None


@pytest.mark.parametrize(("every", "words"), [(0.2, "50 updates"), (None, "an unknown number of updates")])
def test_too_few_updates_are_marked(tmp_path: Path, every: float | None, words: str) -> None:
    found = known(tmp_path, Readings(marks(before=5, steady=10, after=5), {}), every)
    assert found.short == f"window too short: {words} of package-0 where 100 are needed"


def test_laps_that_do_not_fill_the_window_are_marked(tmp_path: Path) -> None:
    found = known(tmp_path, Readings(marks(before=5, steady=10, after=5), {}), busy=9.0)
    assert found.short.startswith("the laps fill only 90 % of the window")


def test_a_run_without_steady_laps_has_no_energy_and_never_zero(tmp_path: Path) -> None:
    found = known(tmp_path, Readings(marks(before=5), {}))
    assert found.joules() is None
    assert found.problem == "package-0: it was not read at both ends of the steady laps"


def test_the_energy_of_a_gpu_that_tells_none_is_not_that_of_its_host(tmp_path: Path) -> None:
    Powercap(tmp_path, {PACKAGE: "package-0"})
    meter = EnergyMeter(choice(tmp_path))
    found = meter.energy(Readings(marks(before=5, steady=10, after=5), {}), laps(10, 50), "cuda:0")
    assert found.joules() is None
    assert found.problem == "nothing on this machine tells the energy of cuda:0"
