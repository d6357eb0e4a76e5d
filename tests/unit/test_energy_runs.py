"""Energy in a study: runs of its own, a replay from end to end, machines that tell nothing, and what reports say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.faults import bench
from tests.unit import made_records as made
from tests.unit.test_adaptive import NARROW, Played, play
from timetrial.cli.loading import trials_of
from timetrial.cli.running import present
from timetrial.meters import energy as meters
from timetrial.records.choice import floor_of
from timetrial.records.digest import digests
from timetrial.records.energy import Domain, Energy
from timetrial.records.record import Laps, Record
from timetrial.records.store import Store
from timetrial.report import notes
from timetrial.report.comparison import side
from timetrial.report.energy import why_not
from timetrial.report.html import page
from timetrial.report.spending import HEADS, bills
from timetrial.report.summary import summarise
from timetrial.report.tables import COLUMNS, table
from timetrial.report.terminal import group_table
from timetrial.runner.steps import step
from timetrial.spec.study import StudyError

WATTS = 50.0


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With windows of a quarter of a second."""
    bench.install(monkeypatch.setattr)
    for name, value in (
        ("WINDOW_SECONDS", 0.2),
        ("UPDATES", 10),
        ("FILLED", 0.0),
        ("IDLE_SECONDS", 0.1),
        ("LOOK_SECONDS", 0.1),
    ):
        monkeypatch.setattr(meters, name, value)


@pytest.fixture
def nothing_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIMETRIAL_SYSFS", str(tmp_path / "sys"))
    monkeypatch.setenv("TIMETRIAL_NVML", "libnothing-of-the-kind.so")


def replay(folder: Path, name: str = "energy.csv", watts: float = WATTS) -> dict[str, str]:
    file = folder / name
    file.write_text(f"time,domain,joules\n0,package-0,0\n600,package-0,{600 * watts}\n0,cuda:0,0\n600,cuda:0,6000\n")
    return {"replay": str(file)}


def asked(**changes: Any) -> dict[str, Any]:
    return {"repeat": 2, "measure": ["time", "energy"], **changes}


# --- runs ---------------------------------------------------------------------------------------------------------------


def test_a_replay_goes_from_its_file_to_the_table(installed: None, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    records = bench.run(folder, "honest", **asked(energy=replay(tmp_path)))
    assert Counter(record.role for record in records) == {"cell": 2, "energy": 2}
    assert all(record.energy is None for record in records if record.role == "cell")
    for record in (record for record in records if record.role == "energy"):
        found = record.energy
        assert found is not None and record.laps is not None and found.seconds is not None
        assert found.steps == len(record.laps.seconds) * record.laps.steps
        assert record.phases["steady"] >= 0.2
        assert found.seconds == pytest.approx(record.phases["steady"], abs=0.1)  # told over two pipes, on a busy core
        assert found.joules() == pytest.approx(WATTS * found.seconds, rel=0.02)
        assert found.joules(with_idle=True) == pytest.approx((WATTS + 10) * found.seconds, rel=0.02)
        assert found.active_joules() == pytest.approx(0, abs=0.05 * WATTS * found.seconds)  # it never does anything
        assert (found.short, found.problem) == ("", "")
    kept = Store(folder).records("faults")
    assert sorted(r.model_dump_json() for r in kept) == sorted(r.model_dump_json() for r in records)
    (row,) = summarise(kept)[0].rows
    assert row.step is not None and row.energy is not None
    assert row.step.processes == 2
    assert row.energy.joules.processes == 2
    assert row.energy.marks == ("replayed",)


def test_a_stand_in_that_is_changed_is_measured_anew_and_nothing_else_is(installed: None, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    first = asked(energy=replay(tmp_path))
    assert len(bench.run(folder, "honest", **first)) == 4
    assert bench.run(folder, "honest", **first) == []
    again = bench.run(folder, "honest", **asked(energy=replay(tmp_path, "other.csv", 70.0)))
    assert [record.role for record in again] == ["energy", "energy"]


def test_where_nothing_tells_energy_no_runs_are_spent_on_it_and_it_is_said_once(
    installed: None, nothing_there: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "records"
    going = bench.campaign(folder, "honest", **asked())
    assert {one.role for one in going.all_steps} == {"cell"}
    records = list(going.go())
    assert [record.role for record in records] == ["cell", "cell"]
    assert going.without_energy.startswith(f"Energy: not measured (no RAPL domains under {tmp_path}/sys/class/powercap")
    assert why_not(Store(folder), "faults") == going.without_energy
    present(going.study, records, folder, as_json=False, report=tmp_path / "report.html")
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("not measured (no RAPL domains") == 1
    assert "energy a step" not in out
    assert "no RAPL domains under" in (tmp_path / "report.html").read_text()


def test_a_study_that_does_not_ask_for_energy_says_nothing_of_it(installed: None, tmp_path: Path) -> None:
    going = bench.campaign(tmp_path, "honest")
    list(going.go())
    assert (going.without_energy, why_not(Store(tmp_path), "faults")) == ("", "")


def test_energy_has_runs_of_its_own_among_the_others(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW, slowlaps=[9.0])
    going = play(played, tmp_path, "honest", "slowlaps", **asked(repeat=5, seed=3, energy=replay(tmp_path)))
    records = list(going.go())
    runs = Counter((record.cell["engine"], record.role, record.block) for record in records)
    assert set(runs.values()) == {1}
    assert {block for _, role, block in runs if role == "energy"} == {0, 1, 2}
    assert {block for _, role, block in runs if role == "cell"} == {0, 1, 2, 3, 4}
    orders = {tuple(r.role for r in records if r.block == block) for block in (0, 1, 2)}
    assert orders != {("cell", "cell", "energy", "energy")}  # drawn, and not one after the other
    assert going.expected_seconds() == 0


def test_a_run_of_energy_is_reckoned_with_its_windows(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "IDLE_SECONDS", 100.0)
    without = bench.campaign(tmp_path, "honest", repeat=2).expected_seconds()
    going = bench.campaign(tmp_path, "honest", **asked(energy=replay(tmp_path)))
    assert going.expected_seconds() == pytest.approx(2 * without + 2 * 200.21, rel=0.01)


def test_the_time_of_a_run_of_energy_counts_for_nothing(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, honest=NARROW)
    records = list(play(played, tmp_path, "honest", **asked(repeat=3, anchor=True, energy=replay(tmp_path))).go())
    slow = Laps(seconds=(99.0,) * 10, steps=1, warmup=(), stable=True)
    moved = [r.model_copy(update={"laps": slow}) if r.role == "energy" else r for r in records]
    assert Counter(r.role for r in moved) == {"cell": 3, "twin": 3, "energy": 3}
    assert summarise(moved)[0].rows[0].step == summarise(records)[0].rows[0].step
    assert floor_of(moved) == floor_of(records)
    store = Store(tmp_path / "again")
    for one in moved:
        store.write(one)
    (cell,) = side("a", digests(tmp_path / "again")).cells
    assert len(cell.runs) == 3


def test_the_name_of_a_run_of_energy_is_its_own(installed: None) -> None:
    going = bench.study("honest")
    model = bench.study("honest", energy={"model": {"idle": 10, "core": 8}})
    (trial,) = trials_of(going)
    names = {step(one, trial, 0, role).run for one in (going, model) for role in ("cell", "energy")}
    assert len(names) == 3  # of a cell the stand-in changes nothing


@pytest.mark.parametrize(
    ("energy", "words"),
    [
        ({"replay": "a.csv", "model": {"idle": 1, "core": 1}}, "not both"),
        ({"model": {"idle": 1}}, "core"),
        ({"model": {"idle": -1, "core": 2}}, "idle"),
        ({"guess": True}, "guess"),
    ],
)
def test_what_a_study_asks_of_energy_is_checked(energy: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        bench.study("honest", energy=energy)


# --- reports ------------------------------------------------------------------------------------------------------------


def spending(
    engine: str, seconds: float, watts: float, block: int = 0, gpu: float | None = None, **changes: Any
) -> Record:
    """A run of energy of 1000 steps; the processor takes 20 W while idle, a second device takes no part."""
    window = 1000 * seconds
    package = Domain(
        domain="package-0", device="cpu", source="RAPL", kind="counter", joules=watts * window, idle_watts=(19, 21),
        updates=5000,
    )  # fmt: skip
    other = Domain(domain="cuda:0", device="cuda:0", source="NVML", kind="counter", joules=(gpu or 0) * window)
    domains = (package, other) if gpu else (package,)
    found = Energy(**{"seconds": window, "steps": 1000, "domains": domains, **changes})
    return made.record(engine, block, seconds, role="energy", run=f"{engine}-{block}-e", energy=found)


def study(gpu: float | None = None) -> list[Record]:
    """jax is twice as fast as torch, and takes half as much power again."""
    return [
        record
        for engine, seconds, watts in (("torch", 0.02, 60.0), ("jax", 0.01, 90.0))
        for block in range(3)
        for record in (
            made.record(engine, block, seconds),
            spending(engine, seconds, watts * (1 + 0.01 * block), block, gpu),
        )
    ]


def by_name(group: Any) -> list[dict[str, Any]]:
    found = table(group)
    return [dict(zip((name for name, *_ in found.columns), cells, strict=True)) for cells in found.rows]


def test_a_table_has_energy_and_its_product_against_the_fastest() -> None:
    (group,) = summarise(study())
    jax, torch = by_name(group)
    assert jax["energy a step"].text.startswith("909 mJ ± ")
    assert jax["energy a step"].small[0].startswith("709 mJ ± ")
    assert jax["energy a step"].small[1:] == ("idle 19 W before, 21 W after", "window of 10 s")
    assert jax["EDP"].text == "1.00x"
    assert torch["EDP"].text == "2.67x"  # twice as long with 4/3 of the energy
    low, high = torch["EDP"].small[0].split(" to ")
    assert low < "2.67x" < high
    notes_ = table(group).footnotes
    assert notes_[jax["energy a step"].note - 1].startswith("Energy: RAPL counters (package-0).")
    assert notes_[torch["EDP"].note - 1].startswith(
        "EDP: time of a step times its energy, as a multiple of that of jax"
    )


def test_the_product_with_idle_devices_stands_beside_it() -> None:
    (group,) = summarise(study(gpu=30.0))
    jax, torch = by_name(group)
    assert jax["energy a step"].text.startswith("909 mJ")  # of what takes part alone
    assert torch["EDP"].text == "2.67x"
    assert torch["EDP"].small[-1] == "3.00x with idle devices"


def test_the_columns_are_there_only_where_something_was_measured() -> None:
    plain = [name for name, *_ in table(summarise(made.study())[0]).columns]
    assert plain == [name for name, *_ in COLUMNS if name != "of the limit"]
    one_of_two = [record for record in study() if record.role == "cell" or record.cell["engine"] == "jax"]
    jax, torch = by_name(summarise(one_of_two)[0])
    assert jax["EDP"].text == "1.00x"
    assert (torch["energy a step"].text, torch["EDP"].text) == ("-", "-")


def test_the_terminal_says_what_is_above_idle_and_what_is_no_measurement() -> None:
    console = Console(width=250)
    with console.capture() as seen:
        console.print(group_table(summarise(study())[0]))
    assert "mJ above idle)" in seen.get()
    short = [
        made.record("jax", 0, 0.01),
        spending("jax", 0.01, 90.0, short="window too short: 1 s where 5 s are needed"),
    ]
    with console.capture() as seen:
        console.print(group_table(summarise(short)[0]))
    assert "900 mJ (700 mJ above idle, window too short)" in seen.get()


def test_placements_are_held_against_each_other(tmp_path: Path) -> None:
    """Six times as fast with twice the power; the second device is idle on the first placement and works on the other."""
    runs = []
    for placement, seconds, gpu in (("cpu:2", 0.06, 20.0), ("cuda:0", 0.01, 80.0)):
        for block in range(2):
            place = {"cell": made.cell("torch", placement=placement), "trial": placement, "block": block}
            taken = spending("torch", seconds, 60.0, gpu=gpu, device=placement.partition(":2")[0])
            plain = made.record("torch", block, seconds)
            runs += [
                one.model_copy(update={**place, "run": f"{one.run}-{placement}-{block}"}) for one in (plain, taken)
            ]
    (bill,) = bills(summarise(runs))
    fast, slow = (dict(zip(HEADS, row, strict=True)) for row in bill.rows)
    assert (fast["placement"], fast["energy a step"], fast["EDP"]) == ("cuda:0", "1.4 J ± 0 %", "1.00x")
    assert (slow["placement"], slow["energy a step"]) == ("cpu:2", "3.6 J ± 0 %")
    assert slow["EDP"].startswith("15.43x")  # 0.06 * 3.6 / (0.01 * 1.4)
    assert slow["with idle devices"] == fast["with idle devices"] == "-"  # on the GPU nothing is idle: no reference
    assert bill.answer.startswith("torch on cuda:0 takes least energy, 1.4 J a step")
    assert "What it takes in energy" in page("made", "", summarise(runs), runs, tmp_path)
    assert bills(summarise(study())) == []


def test_what_was_not_measured_is_a_dash_and_a_sentence(tmp_path: Path) -> None:
    lost = Domain(domain="package-0", device="cpu", source="RAPL", kind="counter", reason="the file cannot be read")
    runs = [made.record("jax", 0, 0.01), spending("jax", 0.01, 90.0, domains=(lost,), absent=("no NVIDIA GPU",))]
    groups = summarise(runs)
    assert groups[0].rows[0].energy is None
    said = notes.shortcomings(groups, runs, [])
    assert "jax (made/cnn, cpu:2): energy not measured in a run, package-0: the file cannot be read." in said
    assert "energy a step" not in page("made", "", groups, runs, tmp_path)


def test_the_page_says_how_energy_was_measured(tmp_path: Path) -> None:
    runs = study()
    text = page("made", "", summarise(runs), runs, tmp_path)
    for part in ("energy a step", "EDP", "counters are read when these begin and end", "709 mJ"):
        assert part in text
    assert dict(notes.method(made.study())).get("Energy") is None
