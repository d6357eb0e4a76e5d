"""Two measurements against each other: what belongs together, what is refused, and what a gate shows."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import Result

from tests.unit import made_records as made
from timetrial.records.digest import digests
from timetrial.records.record import Outcome, Record
from timetrial.records.store import Store
from timetrial.report import comparison_words
from timetrial.report.comparison import Ambiguous, Side, side
from timetrial.report.comparison_gate import BadCondition, check, parse
from timetrial.report.comparison_rules import Compared, Incomparable, NotAxis, compare

Call = Callable[..., Result]
Make = Callable[[str, Sequence[Record]], Side]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A side, read back from files as the command reads it."""

    def write(name: str, records: Sequence[Record]) -> Side:
        for one in records:
            Store(tmp_path / name).write(one)
        return side(name, digests(tmp_path / name))

    return write


def states(compared: Compared) -> list[str]:
    return [line.state for line in compared.found.lines]


def twin(engine: str, block: int, seconds: float) -> Record:
    return made.record(engine, block, seconds, role="twin", run=f"{engine}-twin-{block}")


# --- direction, verdicts, noise ----------------------------------------------------------------------------------------


def test_the_speed_up_is_the_time_of_base_over_the_time_of_new(make: Make) -> None:
    found = compare(make("base", made.runs("jax", 2e-3)), make("new", made.runs("jax", 1e-3)))
    assert states(found) == ["faster"]
    verdict = found.found.lines[0].verdict
    assert verdict is not None and verdict.speedup.value == pytest.approx(2.0)
    assert verdict.speedup.low is not None and 1.9 < verdict.speedup.low < 2.0
    back = compare(make("slow", made.runs("jax", 1e-3)), make("fast", made.runs("jax", 2e-3)))
    assert states(back) == ["slower"]


def test_the_same_records_are_the_same_or_undecided_never_faster(make: Make) -> None:
    base = make("base", made.study())
    found = compare(base, base)
    assert set(states(found)) == {"undecided", "not measured"}
    assert found.found.counts == {"undecided": 4, "not measured": 3}
    exact = [made.record("jax", block, 1e-3) for block in range(3)]
    assert states(compare(make("a", exact), make("b", exact))) == ["same"]


def test_a_cell_measured_twice_tells_the_noise_and_is_no_line(make: Make) -> None:
    slow = [made.record("jax", block, 1.02e-3) for block in range(3)]
    quick = [made.record("jax", block, 1.00e-3) for block in range(3)]
    plain = compare(make("base", slow), make("new", quick))
    assert (states(plain), plain.found.floor, plain.found.floors) == (["faster"], 0.01, ())
    noisy = compare(make("noisy", [*slow, *(twin("jax", block, 0.98e-3) for block in range(3))]), make("new", quick))
    assert (states(noisy), len(noisy.found.floors)) == (["same"], 1)
    assert noisy.found.floor == pytest.approx(1.02 / 0.98 - 1)
    assert any("Noise floor: 4.1 % (from 1 cell measured" in text for text in comparison_words.notes(noisy))


def test_the_floor_of_a_comparison_stands_in_markdown_and_on_the_terminal(make: Make) -> None:
    slow = [made.record("jax", block, 1.02e-3) for block in range(3)]
    found = compare(make("noisy", [*slow, *(twin("jax", block, 0.98e-3) for block in range(3))]), make("new", slow))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(comparison_words.terminal(found, []))
    for text in (comparison_words.markdown(found, []), console.export_text()):
        assert "Noise floor: 4.1 %" in text


def test_a_quiet_session_does_not_lower_the_least_difference(make: Make) -> None:
    one = [made.record("jax", block, 1e-3) for block in range(3)]
    found = compare(make("a", [*one, *(twin("jax", block, 1e-3) for block in range(3))]), make("b", one))
    assert (found.found.floor, len(found.found.floors)) == (0.01, 1)


def test_many_claims_share_the_error(make: Make) -> None:
    """What is shown alone need not be among twenty, of which one would be shown by chance."""
    processes = (0.99e-3, 1e-3, 1.01e-3)

    def sides(cells: int) -> list[Side]:
        return [
            make(f"{name}-{cells}", [
                made.record("jax", block, seconds * scale, run=f"jax-{batch}-{block}", cell={"batch": batch})
                for batch in range(1, cells + 1) for block, seconds in enumerate(processes)
            ])
            for name, scale in (("base", 1.05), ("new", 1.0))
        ]  # fmt: skip

    assert states(compare(*sides(1))) == ["faster"]
    many = compare(*sides(20))
    assert set(states(many)) == {"undecided"}
    said = "of 99.75 %, so that of 20 verdicts with 95 % confidence not one is wrong (Holm)."
    assert any(said in text for text in comparison_words.notes(many))


def test_two_sessions_are_said_to_be_two(make: Make) -> None:
    one, same, other = (make(f"{i}", made.runs("jax", 1e-3, session=name)) for i, name in enumerate(("a", "a", "b")))
    said = "measured in sessions of their own"
    assert any(said in text for text in comparison_words.notes(compare(one, other)))
    assert not any(said in text for text in comparison_words.notes(compare(one, same)))


def test_of_a_run_that_was_made_again_the_last_attempt_counts(make: Make) -> None:
    first = made.runs("jax", 2e-3)
    again = [
        made.record("jax", run.block, 1e-3, run=f"{run.run}-again1", attempt=1, flags=("after the run: slow",))
        for run in first
    ]
    new = make("new", [*first, *again])
    assert new.cells[0].seconds == (1e-3,) * 3
    found = compare(make("base", made.runs("jax", 1e-3)), new)
    assert "NEW: the machine was not steady during 3 of 3 runs." in list(comparison_words.notes(found))


# --- what belongs together ---------------------------------------------------------------------------------------------


def test_no_cell_is_dropped(make: Make) -> None:
    base = [*made.runs("jax", 1e-3), *made.runs("torch", 1e-3), made.missing(), made.wrong()]
    new = [*made.runs("jax", 1e-3), *made.runs("keras-torch", 1e-3), made.failed("torch", Outcome(kind="oom"))]
    found = compare(make("base", base), make("new", new))
    named = {line.coordinates["engine"]: line.state for line in found.found.lines}
    assert named == {
        "jax": "undecided", "torch": "not measured", "tensorflow": "only in BASE", "keras-tensorflow": "only in BASE",
        "keras-torch": "only in NEW",
    }  # fmt: skip
    assert comparison_words.answer(found) == "1 undecided, 1 not measured, 2 only in BASE, 1 only in NEW."


def test_a_cell_with_one_failed_run_has_no_ratio(make: Make) -> None:
    broken = [*made.runs("jax", 1e-3)[:2], made.failed("jax", Outcome(kind="crash", reason="died"), run="jax-2")]
    found = compare(make("base", made.runs("jax", 1e-3)), make("new", broken))
    assert states(found) == ["not measured"]
    assert list(comparison_words.failures(found, ["engine"])) == ["jax, NEW: crash: died"]


def test_a_version_of_an_engine_answers_the_engine(make: Make) -> None:
    old = made.runs("torch@2.9.1", 2e-3, cell={"version": "2.9.1"}, versions={"torch": "2.9.1", "numpy": "1.26"})
    new = made.runs("torch", 1e-3, cell={"version": "2.13.0"}, versions={"torch": "2.13.0", "numpy": "2.4"})
    found = compare(make("base", old), make("new", new))
    assert states(found) == ["faster"]
    assert ("packages", "numpy 1.26, torch 2.9.1", "numpy 2.4, torch 2.13.0") in found.differs


def test_versions_as_an_axis_stay_apart(make: Make) -> None:
    both = [*made.runs("torch@2.9.1", 2e-3), *made.runs("torch@2.13.0", 1e-3)]
    base = make("base", both)
    assert [line.coordinates["engine"] for line in compare(base, base).found.lines] == ["torch@2.13.0", "torch@2.9.1"]


def test_several_cells_that_could_be_meant_are_named_with_the_remedy(make: Make) -> None:
    base = make("base", [*made.runs("jax", 1e-3), *made.runs("torch", 1e-3)])
    with pytest.raises(Ambiguous, match=r"differ in engine jax and torch; take one of them with 'base\?engine=jax'"):
        compare(base, base, across=["engine"])


def test_what_only_one_side_records_is_no_coordinate(make: Make) -> None:
    newer = made.runs("jax", 1e-3, cell={"fused": False})
    found = compare(make("base", made.runs("jax", 1e-3)), make("new", newer))
    assert states(found) == ["undecided"]
    assert "fused" not in found.found.lines[0].coordinates


# --- what is refused ---------------------------------------------------------------------------------------------------

OTHER: list[tuple[dict[str, Any], str]] = [
    ({"machine": "another"}, "machine: 0123456789abcdef in BASE, another in NEW; if that is what you want to compare: --across machine"),
    ({"cell": {"placement": "cpu:4"}}, "placement: cpu:2 in BASE, cpu:4 in NEW; if that is what you want to compare: --across placement"),
    ({"cell": {"batch": 64}}, "batch: 32 in BASE, 64 in NEW; this is other work"),
    ({"cell": {"model": "made/mlp"}}, "model: made/cnn in BASE, made/mlp in NEW; this is other work"),
    ({"cell": {"allocator": "as-shipped"}}, "allocator: tuned in BASE, as-shipped in NEW"),
    ({"includes": "the whole call"}, "timed region: forward, loss, backward, update, wait in BASE, the whole call in NEW"),
    ({"schema_version": 0}, "schema: 1 in BASE, 0 in NEW"),
    ({"versions": {"jax": "1.0", "numpy": "1.9"}}, "numpy: 2.0 in BASE, 1.9 in NEW; the engine's version does not differ"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), OTHER)
def test_what_is_not_comparable_is_refused_and_named(make: Make, changes: dict[str, Any], said: str) -> None:
    base, new = make("base", made.runs("jax", 2e-3)), make("new", made.runs("jax", 1e-3, **changes))
    with pytest.raises(Incomparable) as refused:
        compare(base, new)
    assert said in str(refused.value)
    forced = compare(base, new, force=True)
    assert states(forced) == ["faster"]
    assert forced.banner.startswith("FORCED: these are not comparable")


@pytest.mark.parametrize("what", ["network", "recipe"])
def test_other_work_under_the_same_name_is_refused(make: Make, what: str) -> None:
    sides = [make(name, made.runs("jax", 1e-3, hashes={"adapter": "a", what: name})) for name in ("base", "new")]
    with pytest.raises(Incomparable, match=rf"{what} of made/cnn: base in BASE, new in NEW; the same names, but other"):
        compare(*sides)


def test_a_cell_of_mixed_software_is_refused(make: Make) -> None:
    mixed = [made.record("jax", block, 1e-3, hashes={"adapter": str(block)}) for block in range(3)]
    with pytest.raises(Incomparable, match=r"adapter code of NEW: - in BASE, 3 different ones in a cell in NEW"):
        compare(make("base", made.runs("jax", 1e-3)), make("new", mixed))


def test_other_adapter_code_and_another_day_are_allowed_and_said(make: Make) -> None:
    later = made.runs("jax", 1e-3, hashes={"adapter": "b"}, started="2026-02-03T00:00:00+00:00")
    found = compare(make("base", made.runs("jax", 1e-3)), make("new", later))
    assert found.differs == (("adapter code", "a", "b"), ("measured on", "2026-01-02", "2026-02-03"))


@pytest.mark.parametrize(
    ("axis", "changes"),
    [
        ("machine", {"machine": "another"}),
        ("placement", {"cell": {"placement": "cpu:4"}}),
        ("precision", {"cell": {"precision": "float64"}, "hashes": {"recipe": "other"}}),
        ("version", {"versions": {"jax": "1.0", "numpy": "1.9"}}),
    ],
)
def test_a_difference_that_is_wanted_is_compared(make: Make, axis: str, changes: dict[str, Any]) -> None:
    base = made.runs("jax", 2e-3, hashes={"recipe": "one"})
    found = compare(make("base", base), make("new", made.runs("jax", 1e-3, **changes)), across=[axis])
    assert (states(found), found.banner, found.across) == (["faster"], "", (axis,))


def test_engines_are_compared_where_that_is_asked_for(make: Make) -> None:
    base, new = make("base", made.runs("torch", 2e-3)), make("new", made.runs("jax", 1e-3))
    with pytest.raises(Incomparable, match=r"engine: torch in BASE, jax in NEW; if that is .*: --across engine"):
        compare(base, new)
    found = compare(base, new, across=["engine"])
    assert states(found) == ["faster"]
    assert ("engine", "torch", "jax") in found.differs


def test_other_work_cannot_be_asked_for_but_forced(make: Make) -> None:
    base, new = make("base", made.runs("jax", 1e-3)), make("new", made.runs("jax", 2e-3, cell={"batch": 64}))
    with pytest.raises(NotAxis, match="with another batch it is other work; --force"):
        compare(base, new, across=["batch"])
    forced = compare(base, new, across=["batch"], force=True)
    assert "batch: 32 in BASE, 64 in NEW" in forced.banner
    with pytest.raises(NotAxis, match=r"--across colour: there is no such coordinate in both; use model, "):
        compare(base, new, across=["colour"])


# --- memory ------------------------------------------------------------------------------------------------------------


def test_memory_is_compared_where_it_was_measured_in_the_same_way(make: Make) -> None:
    base = make("base", made.runs("jax", 1e-3))
    more = compare(base, make("more", made.runs("jax", 1e-3, memory={"resident_after_steady": 330 * 2**20})))
    line = more.found.lines[0]
    assert line.memory is not None and line.memory.value == pytest.approx(1.1)
    assert line.memory_note == "kernel's high-water mark of the process"
    other = compare(base, make("other", made.runs("jax", 1e-3, memory={"allocator_live_peak": 330 * 2**20})))
    assert other.found.lines[0].memory is None
    assert other.found.lines[0].memory_note.startswith("not comparable: kernel's high-water mark")


# --- the gate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds", "failed"),
    [
        ("slower > 3%", 1.10e-3, True),
        ("slower > 3%", 1.03e-3, False),  # about at the limit: not shown
        ("slower > 3%", 1.00e-3, False),
        ("slower > 3%", 0.50e-3, False),
        ("slower>=3 %", 1.10e-3, True),
        ("faster > 3%", 0.90e-3, True),
        ("faster > 3%", 1.10e-3, False),
        ("faster < 50%", 0.90e-3, True),
        ("faster < 5%", 0.90e-3, False),
        ("memory > 10%", 1.00e-3, False),
        ("undecided", 1.01e-3, True),
        ("undecided", 1.10e-3, False),
        ("failed", 1.10e-3, False),
        ("gone", 1.10e-3, False),
    ],
)
def test_a_gate_fails_on_what_is_shown(make: Make, text: str, seconds: float, failed: bool) -> None:
    found = compare(make("base", made.runs("jax", 1e-3)), make("new", made.runs("jax", seconds)))
    (checked,) = check(found.found.lines, [parse(text)])
    assert checked.passed is not failed


def test_beyond_the_limit_but_within_the_noise_is_not_shown(make: Make) -> None:
    one = [made.record("jax", block, 1.00e-3) for block in range(3)]
    new = [made.record("jax", block, 1.03e-3) for block in range(3)]
    noisy = [*one, *(twin("jax", block, 0.95e-3) for block in range(3))]
    (sure,) = check(compare(make("base", one), make("new", new)).found.lines, [parse("slower > 2%")])
    (noise,) = check(compare(make("noisy", noisy), make("new", new)).found.lines, [parse("slower > 2%")])
    assert (sure.passed, noise.passed) == (False, True)


@pytest.mark.parametrize(
    ("outcome", "failed", "gone"), [("oom", True, True), ("wrong", True, True), ("missing", False, True)]
)
def test_what_broke_and_what_is_gone(make: Make, outcome: Any, failed: bool, gone: bool) -> None:
    bad = made.failed("jax", Outcome(kind=outcome))
    found = compare(make("base", made.runs("jax", 1e-3)), make("new", [bad]))
    passed = [one.passed for one in check(found.found.lines, [parse("failed"), parse("gone")])]
    assert passed == [not failed, not gone]


def test_a_cell_that_is_not_there_any_more_is_gone(make: Make) -> None:
    base = [*made.runs("jax", 1e-3), *made.runs("torch", 1e-3)]
    found = compare(make("base", base), make("new", made.runs("jax", 1e-3)))
    failed, gone = check(found.found.lines, [parse("failed"), parse("gone")])
    assert failed.passed and [line.coordinates["engine"] for line in gone.lines] == ["torch"]


def test_more_memory_is_shown_by_its_interval(make: Make) -> None:
    fat = made.runs("jax", 1e-3, memory={"resident_after_steady": 400 * 2**20})
    found = compare(make("base", made.runs("jax", 1e-3)), make("new", fat))
    more, less = check(found.found.lines, [parse("memory > 10%"), parse("memory > 50%")])
    assert (more.passed, less.passed) == (False, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("slowr > 3%", "there is no 'slowr'"),
        ("slower", "'slower' needs a limit"),
        ("slower > 3", "cannot be read"),
        ("slower 3%", "cannot be read"),
        ("failed > 3%", "'failed' has no limit"),
        ("", "cannot be read"),
        ("slower > -3%", "cannot be read"),
    ],
)
def test_what_is_no_condition_says_what_is_allowed(text: str, problem: str) -> None:
    with pytest.raises(BadCondition) as refused:
        parse(text)
    assert f"--fail-if '{text}': {problem}; write slower, faster or memory with a limit" in str(refused.value)
    assert "failed, gone, undecided alone" in str(refused.value)


@given(st.text(max_size=30))
def test_whatever_stands_in_a_condition_it_is_read_or_refused_in_words(text: str) -> None:
    try:
        word = parse(text).word
    except BadCondition as refused:
        word = text
        said = str(refused)
    else:
        said = "slower, faster, memory, failed, gone, undecided"
    assert word in text and "slower, faster" in said
