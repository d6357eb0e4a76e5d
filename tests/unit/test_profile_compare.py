"""Two profiles against each other: the changes add up, and gates and other work are said before anything else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from rich.console import Console

from tests.unit import made_profiles as made
from tests.unit import random_profiles as drawn
from timetrial.profiling.compare import PARTS, TYPES, Difference, compare, same_engine, shortened
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.schema import Raw
from timetrial.report import profile_sentences as said
from timetrial.report.profiles import difference_table


def without(layer: str) -> Profile:
    raw = made.raw()
    ops = raw.ops[raw.ops["layer"] != layer].reset_index(drop=True)
    return assemble(replace(raw, ops=ops), made.workload(), made.record())


def printed(found: Difference, top: int | None = None) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(difference_table([found], top))
    console.file.close()
    return console.export_text()


@settings(deadline=None, max_examples=20)
@given(raw=drawn.RAWS, other=drawn.RAWS)
def test_changes_add_up_to_the_difference_of_the_totals(raw: Raw, other: Raw) -> None:
    base, new = drawn.profile(raw), drawn.profile(other, "jax")
    expected = (new.ops["wall_ns"].sum() - base.ops["wall_ns"].sum()) / 2 / 1e9
    for by in (PARTS, TYPES):
        found = compare(base, new, by)
        assert found.operations == pytest.approx(expected, abs=1e-15)
        shown, rest, total = shortened(found, 2)
        assert sum(one.delta for one in shown) + (rest.delta if rest else 0) == pytest.approx(expected, abs=1e-15)
        assert total.delta == pytest.approx(expected, abs=1e-15)


def test_what_got_slower_and_how_much_that_explains() -> None:
    found = compare(made.profile(), made.profile("jax", 1.3))
    assert found.changes[0].key == ("conv2", "backward", "conv")
    assert found.counts == {"slower": 4, "about the same": 3}
    assert found.explained == pytest.approx(0.98)
    assert found.differs == (("engine", "torch", "jax"),)
    words = said.difference(found)
    assert words.startswith("NEW takes 1.3 ms a step, BASE 1 ms: speed-up 0.77x. Operations explain 98.0 %")
    assert "conv2 backward (conv) +105 µs" in words


def test_what_appeared_and_what_vanished() -> None:
    gone = compare(made.profile(), without("conv1"))
    assert [one.key[0] for one in gone.changes if one.state == "vanished"] == ["conv1"]
    come = compare(without("conv1"), made.profile())
    assert [(one.key[0], one.base) for one in come.changes if one.state == "appeared"] == [("conv1", None)]
    assert "conv1" in printed(come) and "appeared" in printed(come)


def test_steps_that_hardly_differ_explain_nothing() -> None:
    found = compare(made.profile(), made.profile())
    assert found.explained is None
    assert "there is hardly anything to explain" in said.difference(found)
    assert "-" in printed(found, top=1)


def test_other_work_is_said() -> None:
    raw = made.raw()
    recipe = made.workload().recipe.model_copy(update={"batch": 64})
    found = compare(made.profile(), assemble(raw, made.workload(recipe=recipe), made.record()))
    assert found.other_work == ("batch",)
    assert "They do not do the same work (batch differs)" in printed(found)


def test_without_enough_evidence_the_table_stands_under_a_banner() -> None:
    weak = made.profile()
    weak = replace(weak, header=replace(weak.header, coverage=0.5))
    found = compare(weak, made.profile("jax", 1.3))
    assert found.problems == ("BASE: operations cover 50% of the steps, 90% are wanted",)
    text = printed(found)
    assert "Not enough evidence: BASE: operations cover 50% of the steps" in text
    assert "conv2" in text


def test_versions_of_one_engine_name_operations_alike() -> None:
    old, new = (
        replace(one, header=replace(one.header, engine=name))
        for one, name in ((made.profile(), "torch@2.9.1"), (made.profile(), "torch"))
    )
    assert same_engine(old, new)
    assert not same_engine(made.profile(), made.profile("jax"))


def test_a_setting_in_which_they_differ_is_named() -> None:
    plain, other = made.profile(), made.profile(cell={"layout": "channels_last"})
    assert ("layout", "None", "channels_last") in compare(plain, other).differs
