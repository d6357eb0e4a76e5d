"""Real traces of TensorFlow, JAX and Keras on both, from the collector through the record to the table."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest

from tests import engines
from tests.faults.bench import TINY, Mute
from timetrial.cli.loading import trials_of
from timetrial.profiling import times
from timetrial.profiling.profile import Profile, load
from timetrial.profiling.readers import hlo, xspace
from timetrial.records.record import Record
from timetrial.runner import profiles, session
from timetrial.runner.campaign import Campaign
from timetrial.runner.design import Member
from timetrial.runner.steps import Step
from timetrial.spec.operations import operations
from timetrial.spec.study import parse_study

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

ENGINES = ("tensorflow", "jax", "keras-tensorflow", "keras-jax")
STUDY = {
    "study": "traced",
    "models": ["quick/cnn"],
    "engines": list(ENGINES),
    "recipe": {"batch": 256},  # so that a step is long against waking a thread up
    "samples": 1024,
    "tasks": ["train", "infer"],
    "measure": ["profile"],
    "repeat": 1,
    "anchor": False,
    "profile": "quick",
    "limits": {"timeout": 120},
}


class Traced(Campaign):
    """The runs under the profiler alone."""

    def _block(self, members: Sequence[Member], number: int) -> list[Step]:
        return [one for one in super()._block(members, number) if one.role == "profile"]


Found = dict[tuple[str, str], tuple[Record, Profile]]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Found:
    for engine in ENGINES:
        engines.find(engine)
    folder = tmp_path_factory.mktemp("xplane")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Canary", Mute)
        patch.setattr(profiles, "_PLANS", dict.fromkeys(profiles._PLANS, TINY))
        study = parse_study(STUDY, "test")
        records = list(Traced(study, trials_of(study), folder).go())
    assert [(str(one.cell["engine"]), one.outcome) for one in records if not one.outcome.ok] == []
    return {(str(one.cell["engine"]), str(one.cell["task"])): (one, load(folder / "traced", one)) for one in records}


def best_coverage(profile: Profile) -> float:
    """Of the step in which others took the cores least: what the reader misses is missing there too."""
    start = profile.ops["start_ns"].to_numpy(np.int64)
    end = start + profile.ops["duration_ns"].to_numpy(np.int64)
    found = []
    for first, length in zip(profile.steps["start_ns"], profile.steps["duration_ns"], strict=True):
        near = (end > first) & (start < first + length)
        found.append(times.union(np.maximum(start[near], first), np.minimum(end[near], first + length)) / length)
    return max(found)


@pytest.mark.parametrize("task", ["train", "infer"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_real_step_is_covered_and_told_apart(everything: Found, engine: str, task: str) -> None:
    record, profile = everything[engine, task]
    assert record.equivalence is not None
    assert record.equivalence.passed
    assert profile.header.attributed >= 0.95
    assert best_coverage(profile) >= 0.9
    assert profile.header.steps == len(profile.steps) == 5 * record.profile.steps  # type: ignore[union-attr]
    placed = profile.ops.groupby(["layer", "phase"], observed=True)["wall_ns"].sum()
    for node in profile.workload.network.nodes:
        if node.parameters:
            assert placed[node.name, "forward"] > 0
            assert task == "infer" or placed[node.name, "backward"] > 0
    phases = set(profile.ops["phase"])
    assert ("optimiser" in phases) == (task == "train")
    assert ("backward" in phases) == (task == "train")
    peak = profile.header.facts["memory_peak"]
    assert peak["kind"] == ("plan" if engine.endswith("jax") else "allocator")
    assert peak["bytes"] > 1e6


@pytest.mark.parametrize("task", ["train", "infer"])
@pytest.mark.parametrize("engine", ["jax", "keras-jax"])
def test_xla_counts_the_operations_that_the_network_has(everything: Found, engine: str, task: str) -> None:
    profile = everything[engine, task][1]
    counted = operations(profile.workload.network, profile.workload.recipe.batch)
    expected = counted.train if task == "train" else counted.infer
    assert profile.header.facts["flops"]["kind"] == "xla_cost_analysis"
    # XLA counts the work on single elements too: of a step that trains so small a network, between 5 and 6 %.
    assert expected <= profile.header.facts["flops"]["value"] <= (1.06 if task == "train" else 1.05) * expected


def test_tensorflow_tells_what_each_operation_asked_for(
    everything: Found,
) -> None:
    ops = everything["tensorflow", "train"][1].ops
    first = ops[(ops["layer"] == "conv2d_1") & ops["type"].str.contains("Fused")]
    assert int(first["out_bytes"].min()) == 256 * 26 * 26 * 16 * 4


FIELDS = """
import json
from tensorflow.compiler.xla import xla_data_pb2 as data
from tensorflow.compiler.xla.service import hlo_pb2 as hlo
from tensorflow.tsl.profiler.protobuf import xplane_pb2 as xplane
messages = [xplane.XSpace, xplane.XPlane, xplane.XLine, xplane.XEvent, xplane.XStat, xplane.XEventMetadata]
messages += [hlo.HloProto, hlo.HloModuleProto, hlo.HloComputationProto, hlo.HloInstructionProto]
messages += [data.OpMetadata, data.ShapeProto]
print(json.dumps({m.DESCRIPTOR.name: {f.name: f.number for f in m.DESCRIPTOR.fields} for m in messages}))
"""
OURS = {
    "XSpace": {"planes": xspace.PLANES},
    "XPlane": xspace.PLANE,
    "XLine": xspace.LINE,
    "XEvent": xspace.EVENT,
    "XStat": {name if name == "metadata_id" else f"{name}_value": number for name, number in xspace.STAT.items()},
    "XEventMetadata": xspace.METADATA,
    "HloProto": {"hlo_module": hlo.MODULE_OF_PROTO},
    "HloModuleProto": hlo.MODULE,
    "HloComputationProto": hlo.COMPUTATION,
    "HloInstructionProto": hlo.INSTRUCTION,
    "OpMetadata": hlo.METADATA,
    "ShapeProto": hlo.SHAPE,
}


def test_field_numbers_are_those_that_tensorflow_ships() -> None:
    asked = [str(engines.interpreter("tensorflow")), "-c", FIELDS]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=True)
    theirs = json.loads(done.stdout)
    assert {name: {field: theirs[name][field] for field in fields} for name, fields in OURS.items()} == OURS
