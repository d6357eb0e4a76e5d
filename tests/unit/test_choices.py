"""Settings that not every engine has: in the id where they are used, in the surroundings, refused where there are none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.made_records import record
from tests.unit.test_study import trials
from timetrial.report.summary import summarise
from timetrial.runner.surroundings import surroundings
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Settings
from timetrial_worker import adapters
from timetrial_worker.adapters.base import Unsupported

CHOICES: dict[str, Any] = {
    "wait": "active", "layout": "channels_last", "update": "fused", "xla_flags": "--xla_cpu_use_xnnpack=false",
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_part_of_the_id_where_it_is_used(name: str) -> None:
    (plain,), (same,) = trials(), trials(settings={name: Settings.model_fields[name].default})
    (changed,) = trials(settings={name: CHOICES[name]})
    assert plain.id == same.id != changed.id
    assert changed.coordinates[name] == CHOICES[name]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, "PASSIVE"), ({"allocator": "as-shipped"}, None), ({"wait": "active"}, "ACTIVE"),
        ({"wait": "passive", "allocator": "as-shipped"}, "PASSIVE"), ({"wait": "active", "allocator": "as-shipped"}, "ACTIVE"),
    ],
)  # fmt: skip
def test_waiting_is_set_apart_from_the_allocator(settings: dict[str, str], wanted: str | None) -> None:
    found = surroundings(Placement(), Settings.model_validate(settings), {}, {})
    assert found.get("OMP_WAIT_POLICY") == wanted
    assert ("MALLOC_TRIM_THRESHOLD_" in found) is (settings.get("allocator") != "as-shipped")


@pytest.mark.parametrize(
    ("engine", "settings", "words"),
    [
        ("tensorflow", {"layout": "channels_first"}, "tensorflow has no layout: channels_first; it has channels_last"),
        ("keras-tensorflow", {"layout": "channels_first"}, "keras-tensorflow has no layout"),
        ("theano", {"layout": "channels_last"}, "theano has no layout: channels_last; leave it out"),
        ("sklearn", {"update": "fused"}, "sklearn has no update: fused"),
        ("keras-torch", {"update": "fused"}, "keras-torch has no update"),
        ("torch", {"xla_flags": "--a"}, "torch does not run through XLA"),
        ("tensorflow", {"xla_flags": "--a"}, "tensorflow does not run through XLA with these settings"),
        ("keras-tensorflow", {"xla_flags": "--a", "compile": "graph"}, "does not run through XLA"),
    ],
)  # fmt: skip
def test_an_engine_refuses_what_it_has_not(engine: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        adapters.load(engine, settings)


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("torch", {"layout": "channels_last", "update": "foreach"}), ("keras-jax", {"layout": "channels_first", "xla_flags": "--a"}),
        ("tensorflow", {"xla_flags": "--a", "compile": "xla"}), ("keras-tensorflow", {"xla_flags": "--a", "compile": "xla"}),
        ("jax", {"layout": "default", "update": "default", "xla_flags": ""}),
    ],
)  # fmt: skip
def test_an_engine_takes_what_it_has(engine: str, settings: dict[str, str]) -> None:
    assert adapters.load(engine, settings).settings == settings


def test_cells_of_another_choice_stand_in_another_table_and_older_records_with_the_default() -> None:
    old, new = record("torch", 0, 1e-3), record("jax", 0, 1e-3, cell={"layout": "default", "xla_flags": ""})
    last = record("torch", 1, 1e-3, trial="other", cell={"layout": "channels_last"})
    assert [len(group.rows) for group in summarise([old, new, last])] == [2, 1]
