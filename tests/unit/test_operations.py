"""Operations of a step, by closed forms written out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.chains import networks
from timetrial.spec.network import Network
from timetrial.spec.operations import LayerOperations, operations


def network(shape: list[int], *layers: Any, **source: Any) -> Network:
    return Network.model_validate({"name": "n", "input": {"shape": shape, **source}, "layers": list(layers)})


def layer(net: Network, op: str, batch: int = 1) -> LayerOperations:
    (found,) = (one for one in operations(net, batch).layers if one.op == op)
    return found


def test_a_perceptron() -> None:
    net = network([64], {"dense": {"units": 96, "activation": "relu"}}, {"dense": {"units": 10}})
    found = operations(net, batch=32)
    first, second = 2 * 32 * 64 * 96, 2 * 32 * 96 * 10
    assert found.infer == first + second
    assert found.train == 2 * first + 3 * second  # nobody asks for a gradient by the data
    assert [(one.forward, one.input_gradient, one.weight_gradient) for one in found.layers] == [
        (first, 0, first),
        (second, second, second),
    ]


def test_a_dense_layer_over_a_sequence_works_at_every_place() -> None:
    assert layer(network([7, 5], {"dense": {"units": 3}}), "dense").forward == 2 * 7 * 5 * 3


@pytest.mark.parametrize(
    ("fields", "outputs"),
    [
        ({"kernel": 3}, 14 * 14),
        ({"kernel": 3, "padding": "same"}, 16 * 16),
        ({"kernel": 5, "padding": 2, "stride": 2}, 8 * 8),
        ({"kernel": [1, 3]}, 16 * 14),
    ],
)
def test_a_convolution_is_its_outputs_times_its_taps(fields: dict[str, Any], outputs: int) -> None:
    net = network([16, 16, 3], {"conv2d": {"filters": 8, **fields}})
    kernel = fields["kernel"]
    taps = kernel[0] * kernel[1] if isinstance(kernel, list) else kernel**2
    found = layer(net, "conv2d", batch=4)
    assert found.forward == 2 * 4 * outputs * 8 * taps * 3
    assert found.train == 2 * found.forward


@pytest.mark.parametrize(("kind", "gates"), [("rnn", 1), ("lstm", 4), ("gru", 3)])
@pytest.mark.parametrize("steps", ["last", "all"])
def test_a_recurrent_layer(kind: str, gates: int, steps: str) -> None:
    """Input and state times their kernels at every step; no gradient goes back to the state before the first."""
    net = network([12, 32], {kind: {"units": 40, "steps": steps}})
    found = layer(net, kind)
    by_input, by_state = 32 * gates * 40, 40 * gates * 40
    assert found.forward == 2 * 12 * (by_input + by_state)
    assert found.weight_gradient == found.forward
    assert found.input_gradient == 2 * 11 * by_state


def test_stacked_recurrent_layers_hand_a_gradient_down() -> None:
    net = network([12, 32], {"lstm": {"units": 40, "layers": 2}})
    first, second = operations(net).layers
    assert first.input_gradient == 2 * 11 * 40 * 160
    assert second.input_gradient == 2 * (12 * 40 * 160 + 11 * 40 * 160)


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_does_not_depend_on_its_heads_or_mask(heads: int, causal: bool) -> None:
    steps, width = 12, 32
    found = layer(network([steps, width], {"attention": {"heads": heads, "causal": causal}}), "attention")
    projection, square = 2 * steps * width**2, 2 * steps**2 * width
    assert found.forward == 4 * projection + 2 * square
    assert found.weight_gradient == 4 * projection
    assert found.input_gradient == projection + 4 * square  # by the output's input, and by both factors of each square


def test_a_table_is_no_product_but_is_trained() -> None:
    net = network([7], {"embedding": {"vocabulary": 11, "units": 5}}, {"dense": {"units": 3}}, tokens=11)
    assert [one.op for one in operations(net).layers] == ["dense"]
    assert layer(net, "dense").input_gradient == 2 * 7 * 5 * 3


def test_a_normalisation_before_the_first_product_is_trained_too() -> None:
    plain, normed = (network([8], *before, {"dense": {"units": 4}}) for before in ([], ["batch_norm"]))
    assert layer(plain, "dense").input_gradient == 0
    assert layer(normed, "dense").input_gradient == 2 * 8 * 4


def test_a_shortcut_brings_the_gradient_back_on_both_ways() -> None:
    body = [{"conv2d": {"filters": 4, "kernel": 3, "padding": "same"}}]
    net = network([6, 6, 4], {"residual": {"body": body}}, {"residual": {"body": body}})
    first, second = operations(net).layers
    assert first.input_gradient == 0
    assert second.input_gradient == second.forward == 2 * 36 * 4 * 9 * 4


def test_a_network_without_a_product() -> None:
    found = operations(network([6], "relu"))
    assert (found.infer, found.train, found.layers) == (0, 0, ())


@settings(deadline=None)
@given(networks(), st.integers(1, 64))
def test_what_holds_for_every_network(net: Network, batch: int) -> None:
    found, one = operations(net, batch), operations(net)
    assert found.infer == 2 * batch * net.multiply_adds
    assert (found.infer, found.train) == (batch * one.infer, batch * one.train)
    # Every factor of a product has a gradient as large as the product, except by the data and by the first state.
    assert 2 * found.infer <= found.train <= 3 * found.infer
    for layer in found.layers:
        assert layer.forward > 0
        assert 0 <= layer.weight_gradient <= layer.forward
        assert layer.train == layer.forward + layer.input_gradient + layer.weight_gradient
