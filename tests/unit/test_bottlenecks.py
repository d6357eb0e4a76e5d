"""What holds a step up: profiles whose bottleneck is known, and that every instant of a step goes to one kind."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit import made_bottlenecks as known
from tests.unit import made_profiles as made
from timetrial.meters.limits import MachineLimits
from timetrial.profiling.bottleneck_words import answer
from timetrial.profiling.bottlenecks import KINDS, Diagnosis, Kind, diagnose, together
from timetrial.profiling.profile import assemble
from timetrial.profiling.roofline import own, points, roof

ROOMY = known.limits(1.0, 1.0)  # a corner at one operation a byte: the convolutions are above it


def share(found: Diagnosis, kind: Kind) -> float:
    finding = found.of(kind)
    assert finding is not None and finding.share is not None
    return finding.share


@pytest.mark.parametrize(
    ("ops", "limits", "kind", "part", "words"),
    [
        (known.COMPUTING, ROOMY, "compute", 0.7, "operations whose limit is arithmetic: 0.421 GFLOP/s, 42 % of"),
        (known.COMPUTING, known.limits(100.0, 0.2), "memory", 0.9, "operations whose limit is memory bandwidth"),
        (known.STARTING, ROOMY, "dispatch", 1.0, "gaps between operations 4.0 %, 40 operations below 50 µs"),
        (known.WAITING, ROOMY, "input", 0.5, "50 % of a step goes to waiting for batches: nothing else runs meanwhile"),
        (known.COPYING, ROOMY, "layout", 0.6, "60 % of a step goes to copies and transposes"),
        (known.COMPUTING, None, "work", 0.9, "0.328 GFLOP/s and 0.081 GB/s"),
    ],
)  # fmt: skip
def test_a_known_bottleneck_comes_first(
    ops: tuple[known.Op, ...], limits: MachineLimits | None, kind: Kind, part: float, words: str
) -> None:
    found = diagnose(known.profile(ops), limits)
    assert found.first is not None
    assert (found.first.kind, found.first.share) == (kind, pytest.approx(part))
    assert words in answer(found)


def test_a_batch_fetched_ahead_holds_up_nobody() -> None:
    found = diagnose(known.profile(known.FETCHING_AHEAD), ROOMY)
    assert share(found, "input") == 0
    assert share(found, "compute") == pytest.approx(0.98)


def test_a_short_operation_near_the_limit_is_work_and_not_its_start() -> None:
    """294,912 operations in 40 µs are 7.4 GFLOP/s."""
    ops = (("aten::convolution", "conv2", "forward", 0, 40, 0), ("aten::relu", "conv1.relu", "forward", 40, 950, 0))
    near = diagnose(known.profile(ops), known.limits(10.0, 10.0))
    far = diagnose(known.profile(ops), known.limits(100.0, 100.0))
    assert (share(near, "compute"), share(far, "compute")) == (pytest.approx(0.04), 0)
    assert share(far, "dispatch") - share(near, "dispatch") == pytest.approx(0.04)


def test_what_an_operation_does_itself_decides_whether_it_is_short() -> None:
    """One that only calls another is a call, however long the other takes."""
    ops = (
        ("aten::conv2d", "conv2", "forward", 0, 960, 0),
        ("aten::convolution", "conv2", "forward", 20, 940, 0),
    )
    found = diagnose(known.profile(ops), ROOMY)
    assert share(found, "dispatch") == pytest.approx(0.04 + 0.02)
    assert share(found, "compute") == pytest.approx(0.94)


def test_far_from_the_limit_is_told_with_what_the_limit_would_allow() -> None:
    found = diagnose(known.profile(known.COMPUTING), ROOMY)
    finding = found.of("compute")
    assert finding is not None
    seen = finding.evidence
    assert seen.flops_rate == pytest.approx(294_912 / 700e-6)
    assert seen.attained == pytest.approx(294_912 / 700e-6 / 1e9)
    assert seen.intensity == pytest.approx(294_912 / 36_000)
    assert seen.places == (("conv2 forward", pytest.approx(0.7)),)
    assert (
        "so it is how they are done that holds them up: at the limit they would take 295 µs instead of 700 µs"
        in answer(found)
    )
    near = diagnose(known.profile(known.COMPUTING), known.limits(0.5, 1.0))
    assert "84 % of this machine's limit, so less work helps" in answer(near)


@pytest.mark.parametrize(
    ("run", "word"), [({"switches": 100_000}, "took its cores"), ({"profiled": (0.0013,) * 5}, "slows a step 1.30x")]
)
def test_below_the_gates_nothing_is_ranked(run: dict[str, object], word: str) -> None:
    found = diagnose(known.profile(known.COMPUTING, run=run), ROOMY)
    assert found.findings == () and found.first is None
    assert answer(found).startswith("Not enough evidence: ") and word in answer(found)


def test_steps_with_holes_are_not_enough_evidence() -> None:
    found = diagnose(known.profile(known.COMPUTING[:1]), ROOMY)
    assert answer(found) == "Not enough evidence: operations cover 70% of the steps, 90% are wanted."


def test_kinds_that_need_limits_are_not_measured_without_them_and_the_remedy_is_told() -> None:
    found = diagnose(known.profile(known.COMPUTING))
    for kind in ("compute", "memory"):
        finding = found.of(kind)  # type: ignore[arg-type]
        assert finding is not None and finding.share is None
        assert "measure: [time, profile, limits]" in finding.note
    assert "use measure: [time, profile, limits]" in answer(found)


def test_communication_is_a_kind_that_one_device_does_not_measure() -> None:
    finding = diagnose(made.profile(), ROOMY).of("communication")
    assert finding is not None and finding.share is None and "one device" in finding.note
    assert {"compute", "memory", "input", "dispatch", "communication", "optimiser", "layout"} < set(KINDS)


def test_kinds_over_their_thresholds_are_named_beside_the_first() -> None:
    said = answer(diagnose(known.profile(known.COMPUTING), ROOMY))
    assert said.endswith("Also: operations whose limit is memory bandwidth, 20 %; the optimiser, 6.0 %.")


def test_the_largest_share_comes_first_and_what_was_not_measured_last() -> None:
    shares = [one.share for one in diagnose(made.profile(threads=2)).findings]
    measured = [one for one in shares if one is not None]
    assert measured == sorted(measured, reverse=True)
    assert shares[len(measured) :] == [None] * (len(shares) - len(measured))


PARTS = st.tuples(
    st.sampled_from(["aten::convolution", "aten::relu", "aten::copy_", "DataLoader", "weird", "Execute"]),
    st.sampled_from([None, "conv1", "conv2", "dense", "no such layer"]),
    st.sampled_from(["forward", "backward", "loss", "optimiser", "input", "runtime", "unknown"]),
    st.floats(0, 900), st.floats(0.1, 900), st.integers(0, 3),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=20), st.sampled_from([None, ROOMY, known.limits(100.0, 0.1)]))
def test_every_instant_goes_to_one_kind(ops: list[known.Op], limits: MachineLimits | None) -> None:
    """With gaps at the end, and one operation below all others, so that they cover enough."""
    profile = known.profile([*ops, ("aten::fill_", "conv1", "loss", 0.0, 1900.0, 9)], step=2000)
    told = replace(profile, header=replace(profile.header, attributed=1.0))
    assert told.header.coverage == pytest.approx(0.95) and told.header.enough
    found = diagnose(told, limits)
    assert together(found.findings) == pytest.approx(1.0)
    assert all(one.share is None or one.share >= 0 for one in found.findings)


# The roof


def test_a_roof_has_two_slopes() -> None:
    found, why = roof(known.limits(100.0, 10.0), made.profile().header)
    assert found is not None and why == ""
    assert found.product.engine == "jax" and found.sweep.kind == "add"  # the best of each
    assert found.ridge == pytest.approx(10.0)
    assert (found.at(1.0), found.at(10.0), found.at(1000.0)) == (
        pytest.approx(10e9), pytest.approx(100e9), pytest.approx(100e9),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "limits", "word"),
    [
        ({}, None, "measure: [time, profile, limits]"),
        ({}, known.limits(1.0, 1.0, threads=4), "no matrix product in float32 was measured on cpu with 2 threads"),
        ({}, MachineLimits((), ("torch on cpu: crash: it broke",)), "it broke"),
        ({}, MachineLimits(ROOMY.attempts[:2]), "no memory bandwidth was measured"),
        ({"cell": {"threads": "as-shipped"}}, ROOMY, "threads were not limited"),
    ],
)
def test_without_a_roof_it_says_why(changes: dict[str, object], limits: MachineLimits | None, word: str) -> None:
    found, why = roof(limits, made.profile(**changes).header)
    assert found is None and word in why


def test_only_the_limits_of_its_own_session_count() -> None:
    header = made.profile(session="s").header
    assert own({"s": ROOMY}, header) is ROOMY
    assert own({"t": ROOMY}, header) is None and own(None, header) is None
    assert own({header.run: ROOMY}, header) is ROOMY


def test_a_point_has_what_is_counted_and_what_was_measured() -> None:
    found = {(point.layer, point.phase): point for point in points(known.profile(known.COMPUTING))}
    conv, relu, unseen = found["conv2", "forward"], found["conv1.relu", "forward"], found["conv2", "backward"]
    limit, _ = roof(ROOMY, made.profile().header)
    assert limit is not None
    assert conv.rate == pytest.approx(294_912 / 700e-6)
    assert (conv.bound(limit), relu.bound(limit)) == ("compute", "memory")
    assert conv.attained(limit) == pytest.approx(0.4213, rel=1e-3)
    assert relu.attained(limit) == pytest.approx(36_864 / 200e-6 / 1e9)
    assert unseen.flops == 2 * conv.flops and unseen.seconds is None
    assert unseen.rate is None and unseen.bandwidth is None and unseen.attained(limit) is None


def test_an_activation_done_within_a_convolution_moves_nothing_of_its_own() -> None:
    raw = known.raw([("fused", "conv2", "forward", 0, 500, 0), ("fused", "conv2", "forward", 500, 450, 0)])
    parts = pd.DataFrame({"row": [0, 0, 2, 2], "layer": ["conv2", "conv1.relu"] * 2, "share": [0.9, 0.1] * 2})
    profile = assemble(replace(raw, parts=parts), made.workload(), made.record())
    relu = next(point for point in points(profile) if (point.layer, point.phase) == ("conv1.relu", "forward"))
    limit, _ = roof(ROOMY, profile.header)
    assert limit is not None and relu.merged and relu.seconds == pytest.approx(50e-6)
    assert relu.bandwidth is None and relu.attained(limit) is None
    memory = diagnose(profile, ROOMY).of("memory")
    assert memory is not None and memory.evidence.bytes_rate == 0
    alone = assemble(
        replace(raw, parts=parts.assign(layer=["dense.softmax", "conv1.relu"] * 2)), made.workload(), made.record()
    )
    assert not any(point.merged for point in points(alone))


def test_inference_has_no_backward_points() -> None:
    profile = made.profile()
    assert {point.phase for point in points(replace(profile, workload=made.workload(task="infer")))} == {"forward"}
