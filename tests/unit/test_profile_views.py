"""Views of profiles: they add up whatever is asked for, and say what there is where something else is asked for."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit import made_profiles as made
from tests.unit import random_profiles as drawn
from timetrial.profiling import times
from timetrial.profiling.filters import ViewError, parse
from timetrial.profiling.profile import Profile, assemble
from timetrial.profiling.schema import Raw
from timetrial.profiling.views import COLUMNS, SORTS, VIEWS, View, choose, view


def show(by: str = "layer", **asked: object) -> View:
    return view({"torch": made.profile()}, choose(by, **asked))  # type: ignore[arg-type]


def union(profile: Profile) -> float:
    """Of the operations as they were read, a mean step, in seconds: worked out apart from the views."""
    ops = profile.ops.drop_duplicates(["thread", "start_ns", "duration_ns", "name", "step"])
    start, length = (ops[name].to_numpy("int64") for name in ("start_ns", "duration_ns"))
    return times.union(start, start + length) / profile.header.steps / 1e9


@settings(deadline=None, max_examples=40)
@given(
    raw=drawn.RAWS,
    by=st.sampled_from(sorted(VIEWS)),
    sort=st.sampled_from(SORTS),
    filters=st.lists(st.sampled_from(["conv", "phase=forward", "layer=conv*", "class=matmul", "share>20%", "7"]), max_size=2),
    top=st.one_of(st.none(), st.integers(1, 4)),
)  # fmt: skip
def test_rows_always_add_up_to_the_union(raw: Raw, by: str, sort: str, filters: list[str], top: int | None) -> None:
    profile = drawn.profile(raw)
    found = view({"torch": profile}, choose(by, sort, (), filters, top))
    expected = union(profile)
    cells = [row.cells[0] for row in found.rows if row.cells[0]]
    total = found.total.cells[0]
    assert total is not None
    assert total.time == pytest.approx(expected)
    assert sum(cell.time for cell in cells) == pytest.approx(expected)
    assert sum(cell.count for cell in cells) == pytest.approx(total.count)
    assert sum(cell.share for cell in cells) == pytest.approx(1 if expected else 0)
    if expected and cells:
        assert cells[0].cumulative == pytest.approx(1)


@settings(deadline=None, max_examples=40)
@given(raw=drawn.RAWS, other=drawn.RAWS, by=st.sampled_from(["layer", "class", "phase"]))
def test_each_of_several_profiles_adds_up(raw: Raw, other: Raw, by: str) -> None:
    profiles = {"torch": drawn.profile(raw), "jax": drawn.profile(other, "jax")}
    found = view(profiles, choose(by, top=2))
    for number, profile in enumerate(profiles.values()):
        cells = [row.cells[number] for row in found.rows]
        assert sum(cell.time for cell in cells if cell) == pytest.approx(union(profile))


def test_the_published_order_and_the_sum_of_all_below() -> None:
    found = show("type")
    assert [row.key[0] for row in found.rows[:2]] == ["aten::convolution_backward", "aten::conv2d"]
    first, second = (row.cells[0] for row in found.rows[:2])
    assert first and second
    assert first.share == pytest.approx(350 / 980)
    assert second.cumulative == pytest.approx(1 - 350 / 980)


def test_what_is_left_out_stands_in_rows_of_its_own() -> None:
    found = show("layer", filters=["phase=forward", "share>5%"], top=1)
    assert [(row.kind, row.key[0]) for row in found.rows] == [
        ("row", "conv2"),
        ("rest", "3 others"),
        ("left out", "left out by the filter"),
    ]
    only = show("layer", filters=["share>5%"])
    assert [row.key[0] for row in only.rows] == ["conv2", "conv2", "conv1", "", "3 others"]


def test_what_is_not_known_is_none_and_never_zero() -> None:
    cells = {row.key: row.cells[0] for row in show("layer").rows}
    relu, optimiser, conv = cells["conv1.relu", "forward"], cells["", "optimiser"], cells["conv1", "forward"]
    assert relu and optimiser and conv
    assert (relu.flops, relu.flop_rate, relu.alloc) == (None, None, None)
    assert (optimiser.bytes, optimiser.byte_rate) == (None, None)
    assert conv.alloc == 8192
    assert conv.flop_rate == pytest.approx(conv.flops / 200e-6)  # type: ignore[operator]


@pytest.mark.parametrize("sort", sorted(set(SORTS) - {"name"}))
def test_sorted_by_any_figure_what_has_none_comes_last(sort: str) -> None:
    values = [COLUMNS[sort].of(row.cells[0]) for row in show("layer", sort=sort).rows if row.cells[0]]
    known = [value for value in values if value is not None]
    assert values[: len(known)] == sorted(known, key=float, reverse=True)  # type: ignore[arg-type]


def test_sorted_by_name() -> None:
    names = [row.key for row in show("operation", sort="name").rows]
    assert names == sorted(names)


def test_several_engines_stand_in_one_table_by_layer_and_phase() -> None:
    raw = made.raw()
    fewer = replace(raw, ops=raw.ops[raw.ops["layer"] != "dense"].reset_index(drop=True))
    jax = assemble(fewer, made.workload(engine="jax"), made.record("jax"))
    found = view({"torch": made.profile(), "jax": jax}, choose("layer"))
    assert (found.labels, found.columns) == (("torch", "jax"), ("time", "share"))
    cells = {row.key: row.cells for row in found.rows}
    assert cells["dense", "forward"][0] and cells["dense", "forward"][1] is None


def test_how_time_was_attributed() -> None:
    raw = made.raw()
    row = int(raw.ops.index[raw.ops["layer"] == "conv2"][0])
    raw.ops.loc[row, "attribution"] = "sequence"
    cells = {row.key: row.cells[0] for row in view({"": assemble(raw, made.workload(), made.record())}, choose()).rows}
    found = cells["conv2", "forward"]
    assert found and found.attributed == "exact, sequence"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"by": "layers"}, "there is no view 'layers'; did you mean 'layer'?"),
        ({"by": "x"}, "there is no view 'x'; known: layer, type, class, operation, phase"),
        ({"columns": ["gflop"]}, "there is no column 'gflop'; did you mean 'gflops'?"),
        ({"sort": "attributed"}, "there is no sort 'attributed'"),
        ({"top": 0}, "at least one row"),
        ({"filters": ["colour=red"]}, "there is no 'colour' to choose by; known: name, type"),
        ({"filters": ["layer="]}, "is empty"),
        ({"filters": ["share=1"]}, "write the least share as share>1%"),
    ],
)
def test_what_there_is_not_is_said(asked: dict[str, object], said: str) -> None:
    with pytest.raises(ViewError, match=r".") as error:
        choose(**asked)  # type: ignore[arg-type]
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("layer=conv9", "no operation is so; did you mean 'conv"),
        ("zzz", "no operation is so in its name, type or layer"),
        ("phase=bakward", "did you mean 'backward'?"),
    ],
)
def test_a_filter_that_nothing_passes_is_a_mistake(text: str, said: str) -> None:
    with pytest.raises(ViewError) as error:
        parse([text]).check([made.profile().ops])
    assert said in str(error.value)


def test_filters_that_exclude_each_other_are_a_mistake() -> None:
    with pytest.raises(ViewError, match="the filters together leave no operation"):
        parse(["layer=conv1", "layer=conv2"]).check([made.profile().ops])


def test_a_layer_that_nobody_has_is_no_trouble() -> None:
    raw = made.raw()
    nobody = replace(raw, ops=raw.ops.assign(layer=pd.Categorical([None] * len(raw.ops))))
    found = view({"": assemble(nobody, made.workload(), made.record())}, choose("layer"))
    assert {row.key[0] for row in found.rows} == {""}
    with pytest.raises(ViewError, match="none has a layer"):
        parse(["layer=conv1"]).check([nobody.ops])
