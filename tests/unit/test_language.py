"""The network language: round trips, shapes, parameters, errors in words, and starting weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.contract.cases import ALL
from tests.unit.chains import networks
from timetrial.spec import initialisers as init
from timetrial.spec.layers import Conv2d, Layer, layers
from timetrial.spec.network import Network
from timetrial.spec.shapes import ShapeError, same_pads
from timetrial.spec.weights import initial_weights

IMAGE = {"shape": [8, 8, 3]}


def make(items: list[Any], shape: dict[str, Any] | None = None) -> Network:
    return Network.model_validate({"input": shape or IMAGE, "layers": items})


def refusal(items: list[Any], shape: dict[str, Any] | None = None) -> str:
    with pytest.raises(ValidationError) as error:
        make(items, shape)
    return str(error.value)


# Chains


@given(networks())
@settings(deadline=None)
def test_a_network_survives_json(network: Network) -> None:
    again = Network.model_validate_json(network.model_dump_json())
    assert again == network
    assert again.nodes == network.nodes


@given(networks())
@settings(deadline=None)
def test_layers_declare_what_the_graph_has(network: Network) -> None:
    shape, work, sizes = network.input.shape, 0, []
    for layer in network.layers:
        sizes += [(p.role, p.shape, p.trainable) for p in layer.parameters(shape)]
        work += layer.multiply_adds(shape)
        shape = layer.output_shape(shape)
    assert shape == network.output_shape
    assert sizes == [(p.role, p.shape, p.trainable) for p in network.parameters]
    assert work == network.multiply_adds
    assert network.parameter_count() == sum(math.prod(size) for _, size, _ in sizes)


@given(networks())
@settings(deadline=None)
def test_nodes_read_only_what_is_there_before_them(network: Network) -> None:
    known = {"input": network.input.shape}
    for node in network.nodes:
        assert node.in_shapes == tuple(known[source] for source in node.inputs)
        assert node.name not in known
        assert all(size > 0 for size in node.shape)
        known[node.name] = node.shape
    names = [parameter.name for parameter in network.parameters]
    assert len(names) == len(set(names))


@given(networks())
@settings(deadline=None, max_examples=40)
def test_weights_have_the_declared_shapes_and_are_finite(network: Network) -> None:
    weights = initial_weights(network, seed=3)
    assert {name: values.shape for name, values in weights.items()} == {p.name: p.shape for p in network.parameters}
    assert all(values.dtype == np.float32 and np.isfinite(values).all() for values in weights.values())


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_contract_cases_survive_json(case: Any) -> None:
    network, recipe = case.network, case.make_recipe()
    assert Network.model_validate_json(network.model_dump_json()) == network
    assert type(recipe).model_validate_json(recipe.model_dump_json()) == recipe


# Padding


@given(size=st.integers(1, 200), window=st.integers(1, 20), stride=st.integers(1, 12))
def test_same_padding_gives_the_ceiling(size: int, window: int, stride: int) -> None:
    conv = Conv2d(filters=2, kernel=(window, window), stride=(stride, stride), padding="same")
    side = math.ceil(size / stride)
    assert conv.output_shape((size, size, 1)) == (side, side, 2)
    before, after = same_pads(size, window, stride)
    assert 0 <= after - before <= 1
    assert before + after == 0 or (side - 1) * stride + window == size + before + after


@given(
    size=st.integers(1, 60),
    window=st.integers(1, 9),
    stride=st.integers(1, 5),
    before=st.integers(0, 4),
    after=st.integers(0, 4),
)
def test_explicit_padding_counts_the_places_of_the_window(
    size: int, window: int, stride: int, before: int, after: int
) -> None:
    sides = ((before, after), (before, after))
    conv = Conv2d(filters=1, kernel=(window, window), stride=(stride, stride), padding=sides)
    places = len(range(0, size + before + after - window + 1, stride))
    if places:
        assert conv.output_shape((size, size, 1)) == (places, places, 1)
    else:
        with pytest.raises(ShapeError, match="does not fit"):
            conv.output_shape((size, size, 1))


@pytest.mark.parametrize(
    ("written", "sides"),
    [(2, ((2, 2), (2, 2))), ([1, 2], ((1, 1), (2, 2))), ([[0, 1], [2, 3]], ((0, 1), (2, 3))), ("same", "same")],
)
def test_paddings_as_they_are_written(written: Any, sides: Any) -> None:
    conv = make([{"conv2d": {"filters": 1, "kernel": 2, "padding": written}}]).layers[0]
    assert isinstance(conv, Conv2d)
    assert conv.padding == sides


# Ways of writing


def test_a_layer_may_be_written_in_three_ways() -> None:
    for written in ("flatten", {"flatten": None}, {"flatten": {}}, {"kind": "flatten"}):
        assert make([written]).layers[0].kind == "flatten"
    short, long = make(["relu"]), make([{"activation": {"function": "relu"}}])
    assert short == long


def test_layers_are_numbered_by_kind_or_named() -> None:
    conv = {"conv2d": {"filters": 2, "kernel": 1, "activation": "relu"}}
    network = make([conv, {"conv2d": {"filters": 2, "kernel": 1, "name": "eyes"}}, conv])
    assert [node.name for node in network.nodes] == ["conv2d_1", "conv2d_1.relu", "eyes", "conv2d_3", "conv2d_3.relu"]


def test_the_last_activation_belongs_to_its_loss() -> None:
    network = make(["flatten", {"dense": {"units": 4, "activation": "softmax"}}])
    with_logits, with_values = network.lowered("cross_entropy"), network.lowered("mse")
    assert (with_logits["head"], with_logits["output"]) == ("softmax", "dense_1")
    assert (with_values["head"], with_values["output"]) == ("identity", "dense_1.softmax")


def test_lowering_without_dropout_sets_every_rate_to_zero() -> None:
    network = make([{"dropout": {"rate": 0.3}}, "flatten"])
    rates = [network.lowered("mse", dropout=on)["nodes"][0]["attrs"]["rate"] for on in (True, False)]
    assert rates == [0.3, 0.0]


# Errors


@pytest.mark.parametrize(
    ("items", "shape", "layer", "reason"),
    [
        ([{"conv2d": {"filters": 2, "kernel": 9}}], IMAGE, "conv2d_1", "a window of 9 does not fit into a height of 8"),
        (["max_pool"] * 4, IMAGE, "max_pool_4", "a window of 2 does not fit into a height of 1"),
        ([{"max_pool": {"window": 2, "padding": 2}}], IMAGE, "max_pool_1", "with nothing in them; use less padding"),
        ([{"dense": {"units": 3}}], IMAGE, "dense_1", "put a flatten before it"),
        (["flatten", {"lstm": {"units": 3}}], IMAGE, "lstm_1", "needs a sequence (T, C), but its input is 192"),
        (["flatten", "global_avg_pool"], IMAGE, "global_avg_pool_1", "but its input is 192"),
        ([{"conv2d": {"filters": 2, "kernel": 1}}], {"shape": [8]}, "conv2d_1", "needs an image (H, W, C)"),
        ([{"attention": {"heads": 3}}], {"shape": [5, 8]}, "attention_1", "3 heads do not divide a width of 8; use other heads"),
        ([{"embedding": {"vocabulary": 9, "units": 2}}], IMAGE, "embedding_1", "needs a sequence of tokens (T)"),
        ([{"residual": {"body": ["max_pool"]}}], IMAGE, "residual_1", "cannot add branches of 4x4x3 and 8x8x3; give them one shape"),
        ([{"parallel": {"branches": [["max_pool"], []]}}], IMAGE, "parallel_1", "cannot concat branches"),
        (
            [{"residual": {"body": [{"conv2d": {"filters": 3, "kernel": 9}}]}}],
            IMAGE,
            "residual_1/conv2d_1",
            "a window of 9 does not fit",
        ),
        ([{"dropout": {"name": "a"}}, {"dropout": {"name": "a"}}], IMAGE, "a", "names must differ"),
        ([{"lrn": {"name": "quiet"}}], {"shape": [4, 4]}, "quiet", "needs an image (H, W, C)"),
    ],
)  # fmt: skip
def test_impossible_shapes_name_the_layer_and_the_reason(
    items: list[Any], shape: dict[str, Any], layer: str, reason: str
) -> None:
    message = refusal(items, shape)
    assert f"layer '{layer}': " in message
    assert reason in message


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("conv2", "there is no layer 'conv2'; did you mean 'conv2d'?"),
        ("rellu", "there is no layer 'rellu'; did you mean 'relu'?"),
        ({"max_pol": {}}, "there is no layer 'max_pol'; did you mean 'max_pool'?"),
        ("xyzxyz", "there is no layer 'xyzxyz'; known: "),
        ({"conv2d": {"filter": 3, "kernel": 3}}, "layer 'conv2d' has no field 'filter'; did you mean 'filters'?"),
        ({"kind": "dropout", "rat": 0.5}, "layer 'dropout' has no field 'rat'; did you mean 'rate'?"),
        ({"dense": {"units": 3, "kernel_init": "he_norm"}}, "no initialiser 'he_norm'; did you mean 'he_normal'?"),
        ({"dense": {"units": 3, "kernel_init": {"normal": {"sdt": 1}}}}, "has no field 'sdt'; did you mean 'std'?"),
        ({"dense": {"units": 3, "activation": "flatten"}}, "'flatten' is a layer, not an activation"),
        ({"residual": {"body": [{"dense": {"unit": 1}}]}}, "layer 'dense' has no field 'unit'; did you mean 'units'?"),
        (3, "write the layer as a name"),
        ({"conv2d": {"filters": 1}, "dense": {"units": 1}}, "write the layer as a name"),
    ],
)
def test_unknown_words_get_the_close_one(item: Any, message: str) -> None:
    assert message in refusal([item])


@pytest.mark.parametrize("field", ["filters", "kernel", "stride"])
@pytest.mark.parametrize("value", [0, -1, "three", 1.5])
def test_sizes_must_be_positive_whole_numbers(field: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        Conv2d.model_validate({"filters": 2, "kernel": 2, field: value})


def test_networks_and_layers_cannot_be_changed() -> None:
    network = make(["flatten"])
    with pytest.raises(ValidationError, match="frozen"):
        network.layers = ()
    with pytest.raises(ValidationError, match="frozen"):
        network.layers[0].name = "other"


# Starting weights


def draw(initialiser: init.Initialiser, shape: tuple[int, ...], seed: int = 5) -> np.ndarray[Any, Any]:
    reach = (math.prod(shape[:-1]), shape[-1])
    return initialiser.draw(np.random.default_rng(seed), shape, *reach)


@given(shape=st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12)), gain=st.floats(0.5, 3))
@settings(deadline=None)
def test_orthogonal_is_orthonormal(shape: tuple[int, ...], gain: float) -> None:
    matrix = draw(init.Orthogonal(gain=gain), shape).reshape(-1, shape[-1]) / gain
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    assert np.allclose(tall.T @ tall, np.eye(tall.shape[1]), atol=1e-10)


@given(fan_in=st.integers(1, 300), fan_out=st.integers(1, 300))
@settings(deadline=None, max_examples=40)
def test_glorot_and_he_stay_within_their_limits(fan_in: int, fan_out: int) -> None:
    glorot = draw(init.GlorotUniform(), (fan_in, fan_out))
    assert np.abs(glorot).max() <= math.sqrt(6 / (fan_in + fan_out))
    assert np.abs(draw(init.HeUniform(), (fan_in, fan_out))).max() <= math.sqrt(6 / fan_in)


@pytest.mark.parametrize(
    ("initialiser", "std"),
    [
        (init.GlorotUniform(), math.sqrt(2 / 700)),
        (init.GlorotNormal(), math.sqrt(2 / 700)),
        (init.HeNormal(), math.sqrt(2 / 400)),
        (init.HeUniform(), math.sqrt(2 / 400)),
        (init.Normal(std=0.3), 0.3),
        (init.Uniform(low=-1, high=1), 1 / math.sqrt(3)),
        # a normal cut at two deviations keeps 0.87963 of its deviation
        (init.Normal(std=0.3, truncated=True), 0.3 * 0.87963),
    ],
    ids=lambda value: str(getattr(value, "kind", "")),
)
def test_deviations_are_as_stated(initialiser: init.Initialiser, std: float) -> None:
    values = draw(initialiser, (400, 300))
    assert values.std() == pytest.approx(std, rel=0.01)  # 120,000 draws: 0.2 % is one standard error
    assert values.mean() == pytest.approx(0, abs=5 * std / math.sqrt(values.size))


def test_truncated_normal_ends_at_two_deviations() -> None:
    values = draw(init.Normal(mean=1.0, std=0.5, truncated=True), (300, 300))
    assert values.min() >= 0.0
    assert values.max() <= 2.0
    assert np.abs(values - 1).max() > 0.99  # and it does reach them


@pytest.mark.parametrize("name", sorted(init.initialisers.kinds))
def test_an_initialiser_is_fixed_by_its_seed(name: str) -> None:
    initialiser = init.initialisers.parse(name)
    first, again, other = (draw(initialiser, (6, 5), seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert np.array_equal(first, other) == (name in ("zeros", "constant"))


def test_the_same_seed_gives_the_same_weights() -> None:
    network = make([{"conv2d": {"filters": 4, "kernel": 3}}, "flatten", {"dense": {"units": 5}}])
    first, again, other = (initial_weights(network, seed) for seed in (1, 1, 2))
    for name, values in first.items():
        assert np.array_equal(values, again[name])
    assert not np.array_equal(first["dense_1/kernel"], other["dense_1/kernel"])
    assert not first["dense_1/bias"].any()


def test_one_layer_more_does_not_move_the_weights_of_the_others() -> None:
    conv, head = {"conv2d": {"filters": 3, "kernel": 3, "padding": "same"}}, ["flatten", {"dense": {"units": 5}}]
    before, after = (initial_weights(make([conv, *more, *head]), 1) for more in ([], [conv, "batch_norm"]))
    assert set(before) < set(after)
    assert all(np.array_equal(values, after[name]) for name, values in before.items())


def test_convolutions_reach_over_their_window() -> None:
    conv = Conv2d(filters=6, kernel=(5, 3))
    kernel, bias = conv.parameters((20, 20, 4))
    assert (kernel.shape, kernel.reach) == ((5, 3, 4, 6), (60, 90))
    assert (bias.shape, bias.role) == ((6,), "bias")


@pytest.mark.parametrize("kind", sorted(layers.kinds))
def test_every_kind_dumps_under_its_own_name(kind: str) -> None:
    needed = {
        "conv2d": {"filters": 1, "kernel": 1},
        "dense": {"units": 1},
        "embedding": {"vocabulary": 1, "units": 1},
        "attention": {"heads": 1},
        "residual": {"body": []},
        "parallel": {"branches": [[]]},
        **{key: {"units": 1} for key in ("rnn", "lstm", "gru")},
    }
    layer: Layer = layers.parse({kind: needed.get(kind, {})})
    dumped = layers.dump(layer)
    assert dumped["kind"] == kind
    assert layers.parse(dumped) == layer
