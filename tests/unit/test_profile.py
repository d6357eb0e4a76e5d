"""From raw operations to a profile: what adds up, what is charged to whom, and when it proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from tests.unit import made_profiles as made
from timetrial.profiling.profile import assemble, derive
from timetrial.spec.operations import operations


def test_shares_of_the_wall_add_up_and_nested_time_counts_once() -> None:
    found = made.profile()
    assert found.header.steps == made.STEPS
    assert found.ops["wall_ns"].sum() == pytest.approx(made.STEPS * 980_000)
    assert found.header.coverage == pytest.approx(0.98)
    by_type = found.per_step("type").set_index("type")["wall_ns"]
    assert by_type["aten::conv2d"] == pytest.approx(20_000 + 300_000)
    assert found.header.enough


def test_operations_of_a_layer_are_charged_to_those_that_do_its_work() -> None:
    found = made.profile()
    known = {layer.layer: layer for layer in operations(made.NETWORK, 32).layers}
    table = found.per_step("layer", "phase").set_index(["layer", "phase"])["flops"]
    assert table["conv1", "forward"] == pytest.approx(known["conv1"].forward)
    assert table["conv2", "backward"] == pytest.approx(known["conv2"].input_gradient + known["conv2"].weight_gradient)
    assert table["conv1.relu", "forward"] == 0


def test_a_fused_operation_is_split_by_its_parts_and_loses_no_time() -> None:
    raw = made.raw()
    row = int(raw.ops.index[raw.ops["layer"] == "conv2"][0])
    parts = pd.DataFrame({"row": [row, row], "layer": ["conv2", "dense"], "share": [0.75, 0.25]})
    whole, _ = derive(raw, made.workload())
    split, lost = derive(replace(raw, parts=parts), made.workload())
    assert len(split) == len(whole) + 1
    assert split["wall_ns"].sum() == pytest.approx(whole["wall_ns"].sum())
    assert lost == pytest.approx(300_000 / (made.STEPS * 980_000))
    assert set(split.loc[split["share"] < 1, "layer"]) == {"conv2", "dense"}


@pytest.mark.parametrize(
    ("run", "word"),
    [
        ({"profiled": (0.0012,) * 5}, "slows a step"),
        ({"switches": 100_000}, "took its cores"),
        ({"plain_cpu": (0.0007,) * 5, "profiled_cpu": (0.0007,) * 5}, "had its core for only"),
        ({"plain": (0.001, 0.002, 0.002), "profiled": (0.001, 0.002, 0.002)}, "times their best"),
    ],
)
def test_what_proves_nothing_says_why(run: dict[str, object], word: str) -> None:
    record = made.record(cell={"placement": "cpu"})
    assert record.profile is not None
    changed = record.model_copy(update={"profile": record.profile.model_copy(update=run)})
    header = assemble(made.raw(), made.workload(), changed).header
    assert not header.enough
    assert any(word in problem for problem in header.problems)


def test_operations_without_layer_or_phase_are_not_attributed() -> None:
    raw = made.raw()
    lost = raw.ops.assign(layer=pd.Categorical([None] * len(raw.ops)), phase=pd.Categorical(["unknown"] * len(raw.ops)))
    header = assemble(replace(raw, ops=lost), made.workload(), made.record()).header
    assert header.attributed == 0
    assert not header.enough


def test_threads_that_put_each_other_aside_are_no_others() -> None:
    """A thread pool on one core switches all the time and has its core all the same."""
    record = made.record(cell={"placement": "cpu"})
    assert record.profile is not None
    run = {"switches": 100_000, "plain_cpu": record.profile.plain, "profiled_cpu": record.profile.profiled}
    changed = record.model_copy(update={"profile": record.profile.model_copy(update=run)})
    assert assemble(made.raw(), made.workload(), changed).header.enough
