"""One step as lanes of bars: nesting goes down, nothing overlaps, and whatever is too narrow to draw is counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit import made_bottlenecks as known
from tests.unit import made_profiles as made
from timetrial.profiling.lanes import PIXEL, Timeline, timeline
from timetrial.profiling.profile import assemble


def drawn(*ops: known.Op, step: float = known.STEP) -> Timeline:
    return timeline(known.profile(ops, step=step))


def test_nested_operations_lie_below_those_that_called_them() -> None:
    found = timeline(made.profile())
    top, below = found.lanes
    assert [bar.name for bar in below.bars] == ["aten::mkldnn_convolution"]
    assert [bar.start for bar in top.bars] == pytest.approx([0.01, 0.21, 0.23, 0.53, 0.57, 0.58, 0.93])
    first = top.bars[0]
    assert (first.layer, first.phase, first.of_class, first.bytes) == ("conv1", "forward", "conv", 4096)
    assert first.seconds == pytest.approx(200e-6) and first.length == pytest.approx(0.2)
    assert found.phases == ("forward", "loss", "backward", "optimiser")


def test_each_thread_has_lanes_of_its_own_the_busiest_first() -> None:
    found = timeline(made.profile(threads=2))
    assert [(lane.thread, lane.depth) for lane in found.lanes] == [("thread 0", 0), ("thread 1", 0)]
    assert sum(len(lane.bars) for lane in found.lanes) == len(made.OPS)


def test_the_step_is_the_one_of_median_time() -> None:
    profile = made.profile()
    steps = profile.steps.assign(duration_ns=[3_000_000, 1_000_000, 2_000_000])
    assert timeline(replace(profile, steps=steps)).step == 2


def test_narrow_neighbours_stand_in_one_bar_that_counts_them() -> None:
    narrow = [("aten::add", "conv1", "forward", 100 + 0.2 * i, 0.15, 0) for i in range(10)]
    found = drawn(
        ("aten::convolution", "conv2", "forward", 0, 90, 0), *narrow, ("aten::mul", None, "loss", 500, 0.5, 0)
    )
    [lane] = found.lanes
    wide, others, alone = lane.bars
    assert (wide.count, others.count, alone.count) == (1, 10, 1)
    assert others.seconds == pytest.approx(1.5e-6) and others.layer == "conv1" and others.phase == "forward"
    assert (others.name, alone.name) == ("other", "aten::mul")
    assert (found.operations, found.merged) == (12, 10)


def test_a_bar_of_many_is_never_wide() -> None:
    found = drawn(*[("aten::add", "conv1", "forward", 0.5 * i, 0.49, 0) for i in range(2000)])
    assert max(bar.length for lane in found.lanes for bar in lane.bars) <= 5 * PIXEL
    assert sum(bar.count for lane in found.lanes for bar in lane.bars) == found.merged == 2000


def test_a_picture_stays_light_however_many_operations_there_are() -> None:
    profile = known.profile([("aten::add", "conv1", "forward", 2.0 * i, 1.9, 0) for i in range(500)])
    found = timeline(profile, most=100)
    assert sum(len(lane.bars) for lane in found.lanes) <= 100
    assert sum(bar.count for lane in found.lanes for bar in lane.bars) == 500


def test_spans_that_overlap_without_nesting_do_not_cover_each_other() -> None:
    found = drawn(("a", None, "forward", 0, 500, 0), ("b", None, "forward", 300, 500, 0))
    assert [(lane.depth, [bar.name for bar in lane.bars]) for lane in found.lanes] == [(0, ["a"]), (1, ["b"])]


def test_what_reaches_beyond_the_step_is_cut_off_and_what_lies_outside_is_counted() -> None:
    found = drawn(("late", None, "forward", 900, 300, 0), ("gone", None, "forward", 1200, 10, 0))
    [lane] = found.lanes
    assert [(bar.name, bar.length) for bar in lane.bars] == [("late", pytest.approx(0.1))]
    assert lane.bars[0].seconds == pytest.approx(300e-6)
    assert (found.operations, found.outside) == (1, 1)


def test_an_operation_split_over_layers_is_one_bar_with_all_of_them() -> None:
    raw = made.raw()
    rows = [int(row) for row in raw.ops.index[raw.ops["type"] == "aten::addmm"]]
    parts = pd.DataFrame(
        {"row": [row for row in rows for _ in (0, 1)], "layer": ["conv2", "dense"] * 3, "share": [0.75, 0.25] * 3}
    )
    found = timeline(assemble(replace(raw, parts=parts), made.workload(), made.record()))
    bars = [bar for lane in found.lanes for bar in lane.bars]
    assert len(bars) == len(made.OPS)
    assert [bar.layer for bar in bars if bar.name == "aten::addmm"] == ["conv2 + dense"]


SPANS = st.tuples(
    st.sampled_from(["a", "b", "c"]), st.sampled_from([None, "conv1"]), st.just("forward"),
    st.floats(0, 900), st.floats(0.1, 100), st.integers(0, 2),
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.lists(SPANS, min_size=1, max_size=60), st.integers(1, 60))
def test_every_operation_is_in_one_bar_and_bars_of_a_lane_do_not_overlap(ops: list[known.Op], most: int) -> None:
    found = timeline(known.profile(ops), most=most)
    assert sum(bar.count for lane in found.lanes for bar in lane.bars) == found.operations == len(ops)
    for lane in found.lanes:
        assert all(a.end <= b.start + 1e-9 for a, b in pairwise(lane.bars))
        assert all(bar.start >= 0 and bar.end <= 1 + 1e-9 for bar in lane.bars)
