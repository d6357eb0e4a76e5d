"""Operations as we count them, against what the frameworks themselves count, to the last multiply-add.

Where the counts differ by definition the test says by how much: PyTorch's counter does not look into fused operations,
XLA counts what works element by element too, leaves out taps on padding, and counts the body of a loop once.
"""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import engines
from tests.contract.cases import Case
from tests.contract.prepare import clean_environment, write
from timetrial.spec.layers import Node
from timetrial.spec.operations import operations

PROBE = Path(__file__).with_name("probe_operations.py")
ROOT = Path(tempfile.mkdtemp(prefix="timetrial-operations-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)

BATCH = 6
HEAD: list[Any] = [{"dense": {"units": 10, "activation": "softmax"}}]
SEQUENCE = {"shape": [12, 32]}
CASES = [
    Case("mlp", {"shape": [64]}, [{"dense": {"units": 96, "activation": "relu"}}, {"dense": {"units": 48, "activation": "tanh"}}, *HEAD]),
    Case("cnn", {"shape": [16, 16, 3]}, [
        {"conv2d": {"filters": 16, "kernel": 3, "activation": "relu"}}, "max_pool",
        {"conv2d": {"filters": 32, "kernel": 3, "padding": 1, "stride": 2}}, "relu", "flatten", *HEAD,
    ]),
    Case("residual", {"shape": [12, 12, 8]}, [
        {"residual": {"body": [{"conv2d": {"filters": 8, "kernel": 3, "padding": "same"}}, "batch_norm"], "activation": "relu"}},
        {"residual": {"body": [{"conv2d": {"filters": 24, "kernel": 3, "padding": "same"}}], "shortcut": [{"conv2d": {"filters": 24, "kernel": 1}}]}},
        "global_avg_pool", *HEAD,
    ]),
    Case("rnn", SEQUENCE, [{"rnn": {"units": 40}}, *HEAD]),
    Case("lstm", SEQUENCE, [{"lstm": {"units": 40}}, *HEAD]),
    Case("gru", SEQUENCE, [{"gru": {"units": 40}}, *HEAD]),
    Case("two-lstms", SEQUENCE, [{"lstm": {"units": 40, "layers": 2, "steps": "all"}}, "flatten", *HEAD]),
    Case("attention", SEQUENCE, [{"attention": {"heads": 4}}, "flatten", *HEAD]),
    Case("transformer", {"shape": [16], "tokens": 50}, [
        {"embedding": {"vocabulary": 50, "units": 32}}, "positions",
        {"residual": {"body": ["layer_norm", {"attention": {"heads": 4, "causal": True}}]}},
        {"residual": {"body": ["layer_norm", {"dense": {"units": 64, "activation": "gelu"}}, {"dense": {"units": 32}}]}},
        "global_avg_pool", *HEAD,
    ]),
]  # fmt: skip


@cache
def counted(engine: str) -> dict[str, dict[str, Any]]:
    located = engines.find(engine)
    folder = ROOT / engine
    for case in CASES:
        write(folder, case, "float32", "step")
    subprocess.run(
        [str(located.interpreter), str(PROBE), engine, str(folder)],
        check=True, env=clean_environment(located.variables), stdin=subprocess.DEVNULL, timeout=600,
    )  # fmt: skip
    return {case.name: json.loads((folder / case.name / f"{engine}.json").read_text()) for case in CASES}


FUSED = ("lstm", "two-lstms", "attention", "transformer")
# In narrow networks much of the work is element by element: activations, normalisations, the softmax of attention.
ELEMENTWISE = {"transformer": 1.35}


@pytest.mark.engines
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_torch_counts_the_same_once_nothing_is_fused(case: Case) -> None:
    ours, theirs = operations(case.network, BATCH), counted("torch")[case.name]
    assert (theirs["infer_apart"], theirs["train_apart"]) == (ours.infer, ours.train)


@pytest.mark.engines
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_torch_as_it_is_leaves_out_what_it_fuses(case: Case) -> None:
    """The whole of an LSTM, and the two products of attention that are no projections."""
    ours, theirs = operations(case.network, BATCH), counted("torch")[case.name]
    left_out = {"infer": 0, "train": 0}
    for layer in (layer for layer in ours.layers if layer.op == "lstm"):
        left_out["infer"] += layer.forward
        left_out["train"] += layer.train
    for node in (node for node in case.network.nodes if node.op == "attention"):
        steps, width = node.shape
        square = 2 * BATCH * steps**2 * width
        left_out["infer"] += 2 * square
        left_out["train"] += 6 * square
    assert bool(left_out["infer"]) == (case.name in FUSED)
    assert ours.infer - theirs["infer"] == left_out["infer"]
    assert ours.train - theirs["train"] == left_out["train"]


def as_xla_counts(case: Case) -> tuple[float, float]:
    """Products in prediction and training as XLA sees them."""
    nodes = {node.name: node for node in case.network.nodes}
    infer = train = 0.0
    for layer in operations(case.network, BATCH).layers:
        node, forward, whole = nodes[layer.layer], layer.forward, layer.train
        if node.op == "conv2d":
            infer, train = infer + forward * real_taps(node), train + whole * real_taps(node)
        elif node.op in ("rnn", "lstm", "gru"):
            units = node.attrs["units"]
            step = 2 * BATCH * units * node.parameters[1].shape[1]
            others = node.in_shapes[0][0] - 1
            # One step of the loop instead of all; its gradient by the state is there at the first step as well.
            infer, train = infer + forward - others * step, train + whole - 3 * others * step + step
        else:
            infer, train = infer + forward, train + whole
    return infer, train


def real_taps(node: Node) -> float:
    """The share of a convolution's taps that fall on the image and not on its padding."""
    share = 1.0
    for side, out, taps, stride, (before, _) in zip(
        node.in_shapes[0], node.shape, node.attrs["kernel"], node.attrs["stride"], node.attrs["pads"], strict=False
    ):
        places = (at * stride + tap - before for at in range(out) for tap in range(taps))
        share *= sum(0 <= place < side for place in places) / (out * taps)
    return share


@pytest.mark.engines
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_xla_counts_the_same_products_and_what_works_element_by_element(case: Case) -> None:
    theirs, (infer, train) = counted("jax")[case.name], as_xla_counts(case)
    assert 1 <= theirs["infer"] / infer < ELEMENTWISE.get(case.name, 1.1)
    assert 1 <= theirs["train"] / train < ELEMENTWISE.get(case.name, 1.1)
