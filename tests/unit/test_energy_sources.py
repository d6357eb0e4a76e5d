"""Where energy is read: powercap trees, NVIDIA's library, replays and models; and what becomes of a counter's readings."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.made_energy import (
    CORE,
    DRAM,
    LIBRARY_IN_C,
    NAMES,
    PACKAGE,
    PSYS,
    RANGE,
    SECOND,
    Clock,
    Library,
    Powercap,
)
from timetrial.meters import nvml, rapl, stand_ins
from timetrial.meters.energy_sources import Choice, find
from timetrial.meters.power_source import PowerSource, Tally, Unreadable, seconds_between_updates

NOWHERE = "libnothing-of-the-kind.so"


def sources(root: Path) -> dict[str, PowerSource]:
    return {one.domain: one for one in find(Choice(sysfs=str(root), nvml=NOWHERE)).found}


# --- RAPL --------------------------------------------------------------------------------------------------------------


def test_two_packages_their_memory_and_their_parts_are_told_apart(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, {**NAMES, "intel-rapl:1:0": "dram"})
    tree.set(PACKAGE, 12.5)
    tree.set("intel-rapl:1:0", 3.0)
    found = sources(tmp_path)
    assert set(found) == {"package-0", "package-0/core", "package-0/dram", "package-1", "package-1/dram", "psys"}
    assert found["package-0"].read() == 12.5
    assert found["package-1/dram"].read() == 3.0
    assert all((one.kind, one.device, one.source) == ("counter", "cpu", "RAPL") for one in found.values())


def test_parts_of_a_package_and_the_platform_are_not_added_to_the_packages(tmp_path: Path) -> None:
    Powercap(tmp_path, NAMES)
    added = {name for name, one in sources(tmp_path).items() if not one.inside}
    assert added == {"package-0", "package-0/dram", "package-1"}


def test_a_platform_without_packages_counts_itself(tmp_path: Path) -> None:
    Powercap(tmp_path, {"intel-rapl:0": "psys"})
    assert not sources(tmp_path)["psys"].inside


def test_a_package_that_is_shown_twice_counts_once(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, {"intel-rapl-mmio:0": "package-0", PACKAGE: "package-0"})
    tree.set(PACKAGE, 5.0)
    assert [(name, one.read()) for name, one in sources(tmp_path).items()] == [("package-0", 5.0)]


def test_a_domain_that_may_not_be_read_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Powercap(tmp_path, {PACKAGE: "package-0", SECOND: "package-1"})
    forbidden, read = tree.base / SECOND / "energy_uj", Path.read_text

    def guarded(path: Path, *given: str, **named: str) -> str:
        if path == forbidden:
            raise PermissionError(13, "Permission denied")
        return read(path, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", guarded)
    found, problems = rapl.find(tmp_path)
    assert [one.domain for one in found] == ["package-0"]
    assert problems == [
        f"RAPL {SECOND}: {forbidden} may not be read; run as root, or give the right to read it: "
        f"sudo chmod a+r {forbidden}"
    ]


def test_rubbish_in_a_counter_is_no_energy(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, {PACKAGE: "package-0"})
    (tree.base / PACKAGE / "energy_uj").write_text("many\n")
    found, problems = rapl.find(tmp_path)
    assert found == []
    assert "holds no number but 'many'" in problems[0]


def test_a_machine_that_tells_nothing_is_not_measured_and_says_why(tmp_path: Path) -> None:
    found = find(Choice(sysfs=str(tmp_path), nvml=NOWHERE))
    assert found.found == ()
    assert found.words == (
        f"Energy: not measured (no RAPL domains under {tmp_path}/class/powercap; no NVIDIA driver ({NOWHERE} is not "
        "there)): measure on a machine whose kernel or driver shows them (a virtual machine mostly does not), or leave "
        "energy out."
    )


# --- NVIDIA ------------------------------------------------------------------------------------------------------------


def test_a_gpu_has_a_counter_or_else_a_power() -> None:
    library = Library((5000, 150_000), (None, 30_000))
    found, problems = nvml.ask(library)
    assert problems == []
    assert [(one.domain, one.device, one.kind, one.read()) for one in found] == [
        ("cuda:0", "cuda:0", "counter", 5.0),
        ("cuda:1", "cuda:1", "power", 30.0),
    ]
    library.gpus[0] = (7000, 150_000)
    assert found[0].read() == 7.0


def test_a_gpu_that_tells_nothing_is_named() -> None:
    found, problems = nvml.ask(Library((None, None), (1, 1)))
    assert [one.domain for one in found] == ["cuda:1"]
    assert problems == ["GPU 0: nvmlDeviceGetPowerUsage says not supported"]


@pytest.mark.parametrize(
    ("library", "problem"),
    [
        (Library(init=9), "NVIDIA driver: nvmlInit_v2 says no driver is loaded"),
        (Library(init=77), "NVIDIA driver: nvmlInit_v2 says error 77"),
        (Library(), "no NVIDIA GPU"),
        (object(), "NVIDIA driver: this driver has no nvmlInit_v2"),
    ],
)
def test_a_driver_without_a_gpu_says_so(library: object, problem: str) -> None:
    assert nvml.ask(library) == ([], [problem])


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to build a library with")
def test_a_library_in_c_is_called_as_its_functions_are_declared(tmp_path: Path) -> None:
    (tmp_path / "made.c").write_text(LIBRARY_IN_C)
    made = tmp_path / "libmade.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, tmp_path / "made.c"], check=True)
    found = find(Choice(sysfs=str(tmp_path), nvml=str(made))).found
    assert [(one.domain, one.kind) for one in found] == [("cuda:0", "counter"), ("cuda:1", "power")]
    assert found[1].read() == 30.0
    tally = Tally(found[0])
    tally.look()
    start = time.monotonic()
    time.sleep(0.1)
    tally.look()
    assert tally.joules == pytest.approx(150 * (time.monotonic() - start), rel=0.1)


# --- stand-ins ---------------------------------------------------------------------------------------------------------


def test_a_replay_begins_with_its_first_reading_and_ends_with_its_file(tmp_path: Path) -> None:
    file, clock = tmp_path / "energy.csv", Clock()
    file.write_text("time,domain,joules\n100,package-0,7\n110,package-0,107\n100,cuda:0,0\n120,cuda:0,60\n")
    package, gpu = stand_ins.replay(file, clock)
    clock.now = 1000.0
    assert (package.read(), gpu.read()) == (7.0, 0.0)
    clock.now = 1005.0
    assert (package.read(), gpu.read()) == (57.0, 15.0)
    assert (package.source, package.device, gpu.device) == ("replay", "cpu", "cuda:0")
    clock.now = 1015.0
    assert gpu.read() == 45.0
    with pytest.raises(Unreadable, match="ends after 10 s of package-0"):
        package.read()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "should begin with the line time,domain,joules"),
        ("time,domain,joules\n", "and go on"),
        ("time,joules\n1,2\n", "should begin with the line"),
        ("time,domain,joules\n1,package-0,many\n", "line 2: time and joules must be numbers"),
        ("time,domain,joules\n1,a,1\n1,a,2\n", "line 3: the times of a domain must rise"),
    ],
)
def test_a_file_that_cannot_be_replayed_says_where(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "energy.csv"
    file.write_text(text)
    found = find(Choice(replay=str(file)))
    assert found.found == ()
    assert problem in found.words
    assert str(file) in found.words


def test_a_replay_that_is_not_there_is_not_measured(tmp_path: Path) -> None:
    assert "cannot be replayed" in find(Choice(replay=str(tmp_path / "nothing.csv"))).words


def test_a_model_counts_idle_time_and_busy_cores(tmp_path: Path) -> None:
    stat, clock = tmp_path / "stat", Clock()
    stat.write_text("cpu 100 0 0 5000 400 0 0 0 50 0\n")
    source = stand_ins.modelled(10.0, 8.0, stat, clock)
    assert source.source == "model"
    before = source.read()
    clock.now = 3.0
    stat.write_text("cpu 300 0 100 9000 900 0 0 0 250 0\n")  # three seconds of a core, at 100 ticks a second
    assert source.read() - before == pytest.approx(3 * 10.0 + 3 * 8.0)


def test_a_stand_in_is_used_only_where_it_is_asked_for(tmp_path: Path) -> None:
    tree = Powercap(tmp_path, {PACKAGE: "package-0"})
    asked = Choice(sysfs=str(tree.root), nvml=NOWHERE)
    assert [one.source for one in find(asked).found] == ["RAPL"]
    model = Choice.from_json({**asked.as_json(), "model": [10.0, 8.0]})
    assert [one.source for one in find(model).found] == ["model"]


# --- what becomes of readings ------------------------------------------------------------------------------------------


def tally(root: Path, clock: Clock, domain: str = "package-0") -> Tally:
    made = Tally(sources(root)[domain], clock)
    made.look()
    return made


def test_a_counter_that_begins_again_goes_on(tmp_path: Path) -> None:
    tree, clock = Powercap(tmp_path, {PACKAGE: "package-0"}), Clock()
    tree.set(PACKAGE, RANGE - 10)
    seen, parts = tally(tmp_path, clock), []
    for joules in (RANGE - 4, RANGE + 2, RANGE + 9):
        clock.now += 1
        tree.set(PACKAGE, joules)
        before = seen.joules
        seen.look()
        parts.append(seen.joules - before)
    assert parts == pytest.approx([6, 6, 7], abs=1e-5)  # none of them negative, none of them a whole range
    assert (seen.wraps, seen.broken) == (1, "")


def test_a_counter_that_was_read_too_late_is_not_believed(tmp_path: Path) -> None:
    tree, clock = Powercap(tmp_path, {PACKAGE: "package-0"}), Clock()
    seen = tally(tmp_path, clock)
    clock.now = 300.0  # at the worst power that is reckoned with, 262 s fill it
    tree.set(PACKAGE, 50.0)
    seen.look()
    assert "may have begun again more than once" in seen.broken


def test_a_counter_without_an_end_that_runs_backwards_is_not_believed(tmp_path: Path) -> None:
    tree, clock = Powercap(tmp_path, {PACKAGE: "package-0"}), Clock()
    (tree.base / PACKAGE / "max_energy_range_uj").unlink()
    tree.set(PACKAGE, 50.0)
    seen = tally(tmp_path, clock)
    clock.now = 1.0
    tree.set(PACKAGE, 20.0)
    seen.look()
    assert "ran backwards" in seen.broken
    assert seen.joules == 0.0


def test_a_counter_that_vanishes_is_not_believed_from_then_on(tmp_path: Path) -> None:
    tree, clock = Powercap(tmp_path, {PACKAGE: "package-0"}), Clock()
    seen = tally(tmp_path, clock)
    tree.vanish(PACKAGE)
    seen.look()
    assert "cannot be read (No such file or directory)" in seen.broken
    tree.set(PACKAGE, 60.0)
    seen.look()
    assert seen.joules == 0.0


def test_a_power_is_integrated_over_the_time_between_its_samples() -> None:
    library, clock = Library((None, 100_000)), Clock()
    (source,), _ = nvml.ask(library)
    seen = Tally(source, clock)
    for now, milliwatts in ((0.0, 100_000), (1.0, 200_000), (4.0, 200_000)):
        clock.now, library.gpus[0] = now, (None, milliwatts)
        seen.look()
    assert seen.joules == pytest.approx(150 + 600)  # a mean of the samples would have made 667 of it
    assert seen.looks == 3


def test_how_often_a_counter_changes_is_seen_and_not_believed(tmp_path: Path) -> None:
    tree, clock = Powercap(tmp_path, {PACKAGE: "package-0", DRAM: "dram", CORE: "core", PSYS: "psys"}), Clock()
    clock.beside = lambda now: tree.set(PACKAGE, round(now / 0.02))
    found = sources(tmp_path)
    every = seconds_between_updates(list(found.values()), 1.0, clock, clock.sleep)
    assert every["package-0"] == pytest.approx(0.02, rel=0.05)
    assert every["psys"] is None
    clock.beside = lambda now: tree.vanish(CORE) if (tree.base / CORE / "energy_uj").exists() else None
    assert seconds_between_updates([found["package-0/core"]], 1.0, clock, clock.sleep) == {"package-0/core": None}
