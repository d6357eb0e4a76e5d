"""The definition that engines are held against is itself held against finite differences and hand-computed examples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.contract.cases import ALL, HEAD, IMAGE, SEQUENCE, SMALL, Case
from timetrial.runner.batches import proof_batches
from timetrial.spec.weights import initial_weights
from timetrial_worker.adapters.base import Unsupported
from timetrial_worker.adapters.reference import Reference
from timetrial_worker.adapters.reference_functions import (
    FUNCTIONS,
    binary_cross_entropy,
    cross_entropy,
    erf,
    mae,
    mse,
    sigmoid,
    softmax,
)
from timetrial_worker.adapters.reference_ops import OPS, Mode
from timetrial_worker.adapters.reference_optimisers import OPTIMISERS

Array = np.ndarray[Any, Any]
TRAINING = Mode(True, np.random.RandomState(0), {})
INFERENCE = Mode(False, None, {})

# What the contract's cases leave out: the gradient that these layers send back, and rare options.
EXTRA = [
    Case("rnn-stacked", SEQUENCE, [{"rnn": {"units": 4, "layers": 2, "bias_init": SMALL}}, *HEAD]),
    Case("lstm-odd-functions", SEQUENCE, [{"lstm": {"units": 4, "layers": 2, "activation": "gelu", "recurrent_activation": "softmax"}}, *HEAD]),
    Case("gru-odd-functions", SEQUENCE, [{"gru": {"units": 4, "layers": 2, "activation": "leaky_relu", "bias": False}}, *HEAD]),
    Case("conv-after-conv", IMAGE, [
        {"conv2d": {"filters": 3, "kernel": 2}}, "tanh",
        {"conv2d": {"filters": 4, "kernel": [3, 2], "padding": [[2, 0], [1, 2]], "stride": [3, 2]}}, "flatten", *HEAD,
    ]),
    Case("pool-gaps", IMAGE, [{"conv2d": {"filters": 2, "kernel": 1}}, {"max_pool": {"window": 2, "stride": 3}}, "flatten", *HEAD]),
    Case("attention-after-dense", {"shape": [5, 8]}, [{"dense": {"units": 8}}, {"attention": {"heads": 2}}, "flatten", *HEAD]),
    Case("parallel-after-conv", IMAGE, [
        {"conv2d": {"filters": 3, "kernel": 2}},
        {"parallel": {"branches": [[{"conv2d": {"filters": 2, "kernel": 1}}], []], "merge": "concat"}}, "flatten", *HEAD,
    ]),
    Case("shared-input-added", {"shape": [8]}, [{"dense": {"units": 4}}, {"parallel": {"branches": [["tanh"], ["relu"], []], "merge": "add"}}, *HEAD]),
]  # fmt: skip


def make(
    case: Case, dropout: bool = False, traits: dict[str, str] | None = None, precision: str = "float32"
) -> tuple[Reference, dict[str, Array], Array, Array]:
    """The built reference, its starting weights, and one batch."""
    recipe = case.make_recipe()
    batches = proof_batches(case.network, recipe, 1, seed=5)
    weights = {name: values.astype(np.float64) for name, values in initial_weights(case.network, seed=3).items()}
    adapter = Reference({"seed": 1, "precision": precision})
    adapter.traits = traits or {}
    adapter.start()
    adapter.build(case.network.lowered(recipe.loss, dropout=dropout), recipe.model_dump(mode="json"), weights)
    return adapter, weights, batches["x0"], batches["y0"]


def directions(values: Array, rng: np.random.Generator) -> list[Array]:
    """Two random ones, all entries at once, and three that move a single entry."""
    found = [rng.standard_normal(values.shape) for _ in range(2)]
    for index in rng.choice(values.size, min(3, values.size), replace=False):
        single = np.zeros(values.size)
        single[index] = 1.0
        found.append(single.reshape(values.shape))
    return [d / np.linalg.norm(d) for d in found]


def check_gradients(case: Case, dropout: bool = False) -> None:
    adapter, weights, x, y = make(case, dropout)
    _, gradients = adapter.gradients(x, y)
    assert list(gradients) == [p.name for p in case.network.parameters if p.trainable]
    largest = max(float(np.abs(g).max()) for g in gradients.values())
    rng, width = np.random.default_rng(11), 1e-5

    def loss(name: str, moved: Array) -> float:
        adapter.load({**weights, name: moved})
        return float(adapter.gradients(x, y)[0])

    for name, gradient in gradients.items():
        for d in directions(weights[name], rng):
            ahead, behind = loss(name, weights[name] + width * d), loss(name, weights[name] - width * d)
            slope, ours = (ahead - behind) / (2 * width), float((gradient * d).sum())
            size = max(abs(slope), float(np.linalg.norm(gradient)) / math.sqrt(gradient.size), 1e-3 * largest)
            assert abs(ours - slope) / size < 1e-6, f"{name}: {ours} instead of {slope}"


@pytest.mark.parametrize("case", [*ALL, *EXTRA], ids=lambda case: case.name)
def test_gradients_are_the_slopes_of_the_loss(case: Case) -> None:
    check_gradients(case)


def test_gradients_with_dropout_are_those_of_what_was_kept() -> None:
    check_gradients(next(case for case in ALL if case.name == "dropout"), dropout=True)


def test_gradients_change_nothing() -> None:
    case = Case(
        "all-state", {"shape": [8]}, ["batch_norm", {"dropout": {"rate": 0.5}}, *HEAD], {"optimiser": {"kind": "adam"}}
    )
    adapter, weights, x, y = make(case, dropout=True)
    batch = adapter.place(x, y)
    adapter.step(batch)
    plain = adapter.weights()
    adapter.load(weights)
    first, second = adapter.gradients(x, y), adapter.gradients(x, y)
    assert first[0] == second[0]
    for name, values in adapter.weights().items():
        np.testing.assert_array_equal(values, weights[name])
    adapter.step(batch)
    for name, values in adapter.weights().items():
        np.testing.assert_array_equal(values, plain[name])


# --- forward, against loops -------------------------------------------------------------------------------------------


def run(op: str, x: Array, weights: dict[str, Array] | None = None, **attrs: Any) -> tuple[Array, Any]:
    return OPS[op](attrs).forward(weights or {}, [x], INFERENCE)


def test_convolution_is_a_cross_correlation_with_the_padding_where_it_was_asked() -> None:
    rng = np.random.default_rng(0)
    x, kernel, bias = rng.standard_normal((2, 5, 4, 3)), rng.standard_normal((3, 2, 3, 4)), rng.standard_normal(4)
    y, _ = run(
        "conv2d", x, {"kernel": kernel, "bias": bias}, kernel=[3, 2], stride=[2, 1], pads=[[2, 0], [1, 2]], bias=True
    )
    padded = np.zeros((2, 7, 7, 3))
    padded[:, 2:, 1:5] = x
    assert y.shape == (2, 3, 6, 4)
    for n, i, j, f in np.ndindex(y.shape):
        expected = (padded[n, 2 * i : 2 * i + 3, j : j + 2] * kernel[..., f]).sum() + bias[f]
        assert y[n, i, j, f] == pytest.approx(expected, rel=1e-12)


def test_average_leaves_padding_out() -> None:
    x = np.arange(1.0, 5.0).reshape(1, 2, 2, 1)
    y, _ = run("avg_pool", x, window=[2, 2], stride=[1, 1], pads=[[1, 0], [1, 0]])
    np.testing.assert_allclose(y[0, :, :, 0], [[1, 1.5], [2, 2.5]])


def test_maximum_never_takes_padding() -> None:
    y, _ = run("max_pool", np.full((1, 2, 2, 1), -3.0), window=[2, 2], stride=[2, 2], pads=[[1, 1], [1, 1]])
    np.testing.assert_array_equal(y, np.full((1, 2, 2, 1), -3.0))


def test_of_equal_values_the_first_takes_the_gradient() -> None:
    x = np.array([[1.0, 2.0], [2.0, 2.0]]).reshape(1, 2, 2, 1)
    for op, attrs in (
        ("max_pool", {"window": [2, 2], "stride": [2, 2], "pads": [[0, 0], [0, 0]]}),
        ("global_max_pool", {}),
    ):
        layer = OPS[op](attrs)
        y, cache = layer.forward({}, [x], INFERENCE)
        (dx,), _ = layer.backward({}, cache, np.full_like(y, 5.0))
        np.testing.assert_array_equal(dx.reshape(2, 2), [[0, 5], [0, 0]])


def test_a_diverged_value_is_not_hidden_by_a_maximum() -> None:
    x = np.array([[1.0, np.nan], [2.0, 0.0]]).reshape(1, 2, 2, 1)
    y, _ = run("max_pool", x, window=[2, 2], stride=[2, 2], pads=[[0, 0], [0, 0]])
    assert np.isnan(y).all()


def test_response_normalisation_sums_neighbours_without_dividing() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0]).reshape(1, 1, 1, 4)
    y, _ = run("lrn", x, radius=1, bias=2.0, alpha=0.5, beta=0.75)
    sums = np.array([5.0, 14.0, 29.0, 25.0])
    np.testing.assert_allclose(y[0, 0, 0], x[0, 0, 0] / (2 + 0.5 * sums) ** 0.75, rtol=1e-14)


def test_flatten_is_in_the_order_rows_columns_channels() -> None:
    x = np.arange(24.0).reshape(1, 2, 3, 4)
    np.testing.assert_array_equal(run("flatten", x)[0][0], np.arange(24.0))


def _weights(rng: np.random.Generator, gates: int, bias_rows: int) -> dict[str, Array]:
    shapes = {"kernel": (3, 2 * gates), "recurrent": (2, 2 * gates), "bias": (bias_rows, 2 * gates)}
    return {role: rng.standard_normal(shape) for role, shape in shapes.items()}


def _case(kind: str) -> Reference:
    case = Case(kind, {"shape": [4, 3]}, [{kind: {"units": 2, "name": "cell"}}], {"loss": "mse"})
    return make(case)[0]


def _last(adapter: Reference, x: Array, **weights: Array) -> Array:
    adapter.load({"cell/" + role: values for role, values in weights.items()})
    return adapter.output(adapter.predict(adapter.place(x)))


def test_lstm_gates_are_input_forget_candidate_output() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((5, 4, 3)), _weights(rng, 4, 1)
    h = c = np.zeros((5, 2))
    for t in range(4):
        i, f, g, o = np.split(x[:, t] @ w["kernel"] + h @ w["recurrent"] + w["bias"][0], 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    found = _last(_case("lstm"), x, kernel=w["kernel"], recurrent=w["recurrent"], bias=w["bias"][0])
    np.testing.assert_allclose(found, h, rtol=1e-12)


def test_gru_resets_after_the_product_and_keeps_by_z() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((5, 4, 3)), _weights(rng, 3, 2)
    h = np.zeros((5, 2))
    for t in range(4):
        fed, turned = x[:, t] @ w["kernel"] + w["bias"][0], h @ w["recurrent"] + w["bias"][1]
        z, r = (1 / (1 + np.exp(-(fed + turned)[:, part])) for part in (slice(0, 2), slice(2, 4)))
        h = z * h + (1 - z) * np.tanh(fed[:, 4:] + r * turned[:, 4:])
    np.testing.assert_allclose(_last(_case("gru"), x, **w), h, rtol=1e-12)


def test_causal_attention_sees_nothing_of_what_comes_later() -> None:
    adapter, _, x, _ = make(next(case for case in ALL if case.name == "attention-causal"))
    changed = x.copy()
    changed[:, 3:] += 1.0
    before, after = adapter.activations(x)["attention_1"], adapter.activations(changed)["attention_1"]
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any()


def test_attention_is_scaled_by_the_width_of_a_head() -> None:
    case = Case(
        "one-head", {"shape": [2, 4]}, [{"attention": {"heads": 1, "bias": False, "name": "a"}}], {"loss": "mse"}
    )
    adapter, x = make(case)[0], np.array([[[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 0.0]]])
    adapter.load({f"a/{part}_kernel": np.eye(4) for part in ("query", "key", "value", "output")})
    scores = np.exp(x[0] @ x[0].T / 2)
    np.testing.assert_allclose(adapter.activations(x)["a"][0], scores / scores.sum(1, keepdims=True) @ x[0], rtol=1e-12)


# --- activations and losses -------------------------------------------------------------------------------------------


def test_activations_at_known_points() -> None:
    points = np.array([-2.0, 0.0, 1.0])
    expected = {
        "identity": points,
        "relu": [0, 0, 1],
        "leaky_relu": [-0.02, 0, 1],
        "tanh": np.tanh(points),
        "scaled_tanh": 1.7159 * np.tanh(2 * points / 3),
        "sigmoid": 1 / (1 + np.exp(-points)),
        "hard_sigmoid": [0.1, 0.5, 0.7],
        "gelu": [-2 * 0.022750131948179, 0, 0.841344746068543],
        "softmax": np.exp(points) / np.exp(points).sum(),
    }
    assert set(expected) == set(FUNCTIONS)
    for name, values in expected.items():
        np.testing.assert_allclose(FUNCTIONS[name]().forward(points), values, rtol=1e-12, err_msg=name)


def test_relu_has_no_slope_at_zero() -> None:
    relu, zero = FUNCTIONS["relu"](), np.zeros(1)
    assert relu.backward(zero, relu.forward(zero), np.ones(1)) == 0


def test_error_function_is_that_of_the_standard_library() -> None:
    points = np.linspace(-6, 6, 7)
    np.testing.assert_array_equal(erf(points), [math.erf(p) for p in points])


def test_huge_logits_neither_overflow_nor_lose_the_loss() -> None:
    with np.errstate(over="raise", invalid="raise"):
        np.testing.assert_array_equal(softmax(np.array([[1e4, -1e4, 0.0]])), [[1, 0, 0]])
        loss, gradient = cross_entropy(np.array([[1e4, -1e4, 0.0]]), np.array([1]))
        assert loss == 2e4
        np.testing.assert_array_equal(gradient, [[1, -1, 0]])
        np.testing.assert_array_equal(sigmoid(np.array([1e4, -1e4])), [1, 0])
        loss, gradient = binary_cross_entropy(np.array([1e4, -1e4, 1e4]), np.array([1.0, 1.0, 0.0]))
        assert loss == pytest.approx(2e4 / 3)
        np.testing.assert_allclose(gradient, np.array([0, -1, 1]) / 3)
    assert binary_cross_entropy(np.array([40.0]), np.array([1.0]))[0] == pytest.approx(math.exp(-40), rel=1e-12)


def test_losses_are_means_over_everything() -> None:
    logits, classes = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]]])), np.array([[0, 1]])
    expected = -(math.log(0.5) + math.log(0.75)) / 2
    assert cross_entropy(logits, classes)[0] == pytest.approx(expected)
    assert cross_entropy(logits, np.eye(2)[classes])[0] == pytest.approx(expected)
    output, wanted = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [4.0, 4.0]])
    assert mse(output, wanted)[0] == 5 / 4
    assert mae(output, wanted)[0] == 3 / 4
    np.testing.assert_array_equal(mae(output, wanted)[1], np.array([[0, 1], [-1, 0]]) / 4)


def test_labels_that_numpy_would_broadcast_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        mse(np.zeros((3, 1)), np.zeros(3))


# --- optimisers: two steps by hand ------------------------------------------------------------------------------------


def two_steps(
    traits: dict[str, str] | None = None, rates: tuple[float, float] = (0.1, 0.1), **spec: Any
) -> list[float]:
    """The weight 1 after gradients of 2 and then -1."""
    optimiser = OPTIMISERS[spec["kind"]]({"rate": 0.1, **spec}, traits or {})
    weights, seen = {"w": np.array([1.0])}, []
    for rate, gradient in zip(rates, (2.0, -1.0), strict=True):
        optimiser.set_rate(rate)
        weights = optimiser.step(weights, {"w": np.array([gradient])})
        seen.append(float(weights["w"][0]))
    return seen


ADAM = {"kind": "adam", "beta1": 0.5, "beta2": 0.75, "epsilon": 0.1}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"kind": "sgd"}, [0.8, 0.9]),
        ({"kind": "sgd", "weight_decay": 0.5}, [0.75, 0.8125]),  # g = 2.5, then -1 + 0.375
        ({"kind": "sgd", "momentum": 0.5}, [0.8, 0.8]),  # v = 2, then 0
        ({"kind": "sgd", "momentum": 0.5, "nesterov": True}, [0.7, 0.8]),  # g + v/2 = 3, then -1 + 0
        ({"kind": "rmsprop", "rho": 0.75, "epsilon": 0.5}, [1 - 0.2 / 1.5, 1 - 0.2 / 1.5 + 0.1 / 1.5]),  # v = 1, 1
        # m = 1, v = 1: full 2 and 4. Then m = 0, v = 1
        (ADAM, [1 - 0.2 / 2.1, 1 - 0.2 / 2.1]),
    ],
)
def test_two_steps_by_hand(spec: dict[str, Any], expected: list[float]) -> None:
    assert two_steps(**spec) == pytest.approx(expected, rel=1e-14)


def test_adam_corrects_with_the_number_of_steps_and_decays_before_the_moments() -> None:
    first, second = two_steps(**ADAM, weight_decay=1.0)  # gradients 3 and -1 + first
    assert first == pytest.approx(1 - 0.3 / 3.1, rel=1e-14)
    g = first - 1
    m, v = (0.5 * 1.5 + 0.5 * g) / 0.75, (0.75 * 2.25 + 0.25 * g * g) / (1 - 0.75**2)
    assert second == pytest.approx(first - 0.1 * m / (math.sqrt(v) + 0.1), rel=1e-14)


@pytest.mark.parametrize("nesterov", [False, True])
def test_where_the_rate_is_kept_matters_only_while_it_changes(nesterov: bool) -> None:
    spec, inside = {"kind": "sgd", "momentum": 0.5, "nesterov": nesterov}, {"sgd_velocity": "rate_inside"}
    assert two_steps(inside, **spec) == pytest.approx(two_steps(**spec), rel=1e-14)
    falling = two_steps(inside, (0.1, 0.01), **spec)
    # velocity in weights: -0.2, then -0.1 + 0.01
    expected = [0.7, 0.7 + 0.01 - 0.045] if nesterov else [0.8, 0.8 - 0.09]
    assert falling == pytest.approx(expected, rel=1e-14)
    assert two_steps(rates=(0.1, 0.01), **spec) != pytest.approx(falling, rel=1e-3)


def test_momentum_can_be_changed_for_sgd_alone() -> None:
    sgd = OPTIMISERS["sgd"]({"kind": "sgd", "rate": 0.1, "momentum": 0.5}, {})
    weights = sgd.step({"w": np.ones(1)}, {"w": np.full(1, 2.0)})
    sgd.set_rate(0.1, momentum=0.25)
    assert sgd.step(weights, {"w": np.zeros(1)})["w"] == pytest.approx(0.8 - 0.05)
    with pytest.raises(Unsupported, match="no momentum"):
        OPTIMISERS["rmsprop"]({"kind": "rmsprop", "rate": 0.1}, {}).set_rate(0.1, momentum=0.5)


def test_loading_forgets_moments_steps_rate_and_moving_values() -> None:
    case = Case("forget", {"shape": [8]}, ["batch_norm", *HEAD], {"optimiser": {"kind": "adam"}})
    adapter, weights, x, y = make(case)
    batch = adapter.place(x, y)
    adapter.step(batch)
    once = adapter.weights()
    adapter.set_rate(0.5)
    adapter.step(batch)
    adapter.load(weights)
    adapter.step(batch)
    for name, values in adapter.weights().items():
        np.testing.assert_array_equal(values, once[name])


# --- equal maxima -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("traits", "expected"), [({}, [1, 0, 0, 0]), ({"max_pool_ties": "all"}, [1, 1, 0, 1])])
@pytest.mark.parametrize("op", ["max_pool", "global_max_pool"])
def test_the_gradient_of_equal_maxima(op: str, traits: dict[str, str], expected: list[int]) -> None:
    x = np.array([5.0, 5.0, 3.0, 5.0]).reshape(1, 2, 2, 1)
    layer = OPS[op]({"window": [2, 2], "stride": [2, 2], "pads": [[0, 0], [0, 0]]})
    y, cache = layer.forward({}, [x], TRAINING._replace(traits=traits))
    (dx,), _ = layer.backward({}, cache, np.ones_like(y))
    assert y.ravel().tolist() == [5.0]
    assert dx.ravel().tolist() == expected


# --- batch normalisation and dropout ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("traits", "divisor"), [({}, 6), ({"bn_variance": "unbiased"}, 5)])
def test_moving_values_follow_the_batch(traits: dict[str, str], divisor: int) -> None:
    case = Case("bn", {"shape": [3]}, [{"batch_norm": {"momentum": 0.9, "name": "bn"}}, *HEAD])
    adapter, _, x, y = make(case, traits=traits)
    adapter.step(adapter.place(x, y))
    mean = x.astype(np.float64).mean(axis=0)
    variance = ((x - mean) ** 2).sum(axis=0) / divisor
    np.testing.assert_allclose(adapter.weights()["bn/mean"], 0.1 * mean, rtol=1e-12)
    np.testing.assert_allclose(adapter.weights()["bn/variance"], 0.9 + 0.1 * variance, rtol=1e-12)


def test_training_normalises_by_the_biased_variance_whatever_is_kept() -> None:
    x = np.random.default_rng(0).standard_normal((4, 3, 3, 2))
    w = {"gamma": np.ones(2), "beta": np.zeros(2), "mean": np.full(2, 9.0), "variance": np.full(2, 9.0)}
    for traits in ({}, {"bn_variance": "unbiased"}):
        y, _ = OPS["batch_norm"]({"epsilon": 1e-12, "momentum": 0.9}).forward(w, [x], TRAINING._replace(traits=traits))
        np.testing.assert_allclose(y.mean(axis=(0, 1, 2)), 0, atol=1e-14)
        np.testing.assert_allclose(y.std(axis=(0, 1, 2)), 1, rtol=1e-9)
    y, _ = run("batch_norm", np.full((1, 2), 12.0), w, epsilon=0.0, momentum=0.9)
    np.testing.assert_allclose(y, 1.0)


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    layer, x = OPS["dropout"]({"rate": 0.3}), np.ones((200, 500))
    y, cache = layer.forward({}, [x], Mode(True, np.random.RandomState(4), {}))
    spread = math.sqrt(0.3 * 0.7 / x.size)
    assert abs((y == 0).mean() - 0.3) < 4 * spread
    assert abs(y.mean() - 1) < 4 * spread / 0.7
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.7])
    np.testing.assert_array_equal(layer.backward({}, cache, x)[0][0], y)
    same, _ = layer.forward({}, [x], Mode(True, np.random.RandomState(4), {}))
    other, _ = layer.forward({}, [x], Mode(True, np.random.RandomState(5), {}))
    np.testing.assert_array_equal(same, y)
    assert (other != y).any()
    np.testing.assert_array_equal(layer.forward({}, [x], INFERENCE)[0], x)


# --- what it says of itself -------------------------------------------------------------------------------------------


def test_what_it_lacks_is_said_to_be_unsupported() -> None:
    case = ALL[0]
    recipe = case.make_recipe()
    network = case.network.lowered(recipe.loss)
    network["nodes"][0]["op"] = "origami"
    with pytest.raises(Unsupported, match="the reference has no layer 'origami'"):
        Reference({}).build(network, recipe.model_dump(mode="json"), {})
    with pytest.raises(Unsupported, match="cpu only"):
        Reference({"device": "cuda:0"}).start()


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_it_works_in_double_precision_whatever_is_asked(precision: str) -> None:
    adapter, _, x, _ = make(ALL[0], precision=precision)
    assert adapter.output(adapter.predict(adapter.place(x))).dtype == np.float64
    assert adapter.readback()["dtype"] == "float64"


def test_saved_weights_come_back(tmp_path: Any) -> None:
    adapter = make(ALL[0])[0]
    with np.load(adapter.save(str(tmp_path / "weights"))) as saved:
        assert sorted(saved.files) == sorted(adapter.weights())
        for name, values in adapter.weights().items():
            np.testing.assert_array_equal(saved[name], values)
