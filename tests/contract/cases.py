"""Small networks that together use every layer, option and optimiser of the language: every adapter passes them all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe


@dataclass(frozen=True)
class Case:
    name: str
    input: dict[str, Any]
    layers: list[Any]
    recipe: dict[str, Any] = field(default_factory=dict)

    @property
    def network(self) -> Network:
        return Network.model_validate({"name": self.name, "input": self.input, "layers": self.layers})

    def make_recipe(self, **changes: Any) -> Recipe:
        return Recipe.model_validate({"batch": 6, "optimiser": {"kind": "sgd", "rate": 0.05}, **self.recipe, **changes})


IMAGE = {"shape": [9, 7, 3]}
SEQUENCE = {"shape": [6, 5]}
TOKENS = {"shape": [7], "tokens": 11}
HEAD = [{"dense": {"units": 4, "activation": "softmax"}}]
FLAT_HEAD = ["flatten", *HEAD]
SMALL = {"uniform": {"low": -0.5, "high": 0.5}}


def _conv(**fields: Any) -> list[Any]:
    return [{"conv2d": {"filters": 5, "kernel": 3, **fields}}, "tanh", *FLAT_HEAD]


def _pool(kind: str, **fields: Any) -> list[Any]:
    return [{"conv2d": {"filters": 4, "kernel": 3, "padding": "same"}}, {kind: fields}, *FLAT_HEAD]


def _recurrent(kind: str, **fields: Any) -> list[Any]:
    tail = ["flatten"] if fields.get("steps") == "all" else []
    return [{kind: {"units": 6, "bias_init": SMALL, **fields}}, *tail, *HEAD]


LAYERS = [
    Case("dense", {"shape": [8]}, [{"dense": {"units": 6, "activation": "relu", "bias_init": SMALL}}, *HEAD]),
    Case("dense-no-bias", {"shape": [8]}, [{"dense": {"units": 6, "bias": False}}, "sigmoid", *HEAD]),
    Case("dense-sequence", SEQUENCE, [{"dense": {"units": 6}}, "tanh", *FLAT_HEAD]),
    Case("conv-valid", IMAGE, _conv(bias_init=SMALL)),
    Case("conv-same", IMAGE, _conv(padding="same")),
    Case("conv-same-even-kernel", IMAGE, _conv(kernel=[4, 2], padding="same")),
    Case("conv-same-stride", IMAGE, _conv(kernel=5, stride=2, padding="same", bias=False)),
    Case("conv-explicit", IMAGE, _conv(padding=[[2, 0], [1, 2]], stride=[2, 1])),
    Case("conv-even-input-stride", {"shape": [8, 8, 2]}, _conv(stride=2, padding="same")),
    Case("max-pool", IMAGE, _pool("max_pool")),
    Case("max-pool-same", IMAGE, _pool("max_pool", window=3, stride=2, padding="same")),
    Case("max-pool-same-asymmetric", {"shape": [8, 6, 3]}, _pool("max_pool", window=3, stride=2, padding="same")),
    Case("max-pool-explicit", IMAGE, _pool("max_pool", window=3, stride=2, padding=1)),
    Case("avg-pool", IMAGE, _pool("avg_pool", window=3, stride=2)),
    Case("avg-pool-same", {"shape": [8, 6, 3]}, _pool("avg_pool", window=3, stride=2, padding="same")),
    Case("avg-pool-explicit", IMAGE, _pool("avg_pool", window=[3, 2], stride=2, padding=[[0, 1], [1, 0]])),
    Case("global-avg-pool", IMAGE, [{"conv2d": {"filters": 4, "kernel": 3}}, "global_avg_pool", *HEAD]),
    Case("global-max-pool", IMAGE, [{"conv2d": {"filters": 4, "kernel": 3}}, "global_max_pool", *HEAD]),
    Case("global-avg-pool-sequence", SEQUENCE, [{"dense": {"units": 4}}, "global_avg_pool", *HEAD]),
    Case("global-max-pool-sequence", SEQUENCE, [{"dense": {"units": 4}}, "global_max_pool", *HEAD]),
    Case("flatten-then-activation", IMAGE, [{"conv2d": {"filters": 3, "kernel": 3}}, "flatten", "relu", *HEAD]),
    Case("flatten-then-norm", IMAGE, [{"conv2d": {"filters": 3, "kernel": 3}}, "flatten", "batch_norm", *HEAD]),
    Case("flatten-last", {"shape": [3, 2, 2]}, [{"conv2d": {"filters": 2, "kernel": 1}}, "flatten", "softmax"]),
    Case("batch-norm-image", IMAGE, [{"conv2d": {"filters": 4, "kernel": 3, "bias": False}}, "batch_norm", "relu", *FLAT_HEAD]),
    Case("batch-norm-flat", {"shape": [8]}, [{"dense": {"units": 6}}, {"batch_norm": {"momentum": 0.9, "epsilon": 1e-5}}, "relu", *HEAD]),
    Case("layer-norm", SEQUENCE, [{"layer_norm": {}}, {"dense": {"units": 4}}, {"layer_norm": {"epsilon": 1e-3}}, *FLAT_HEAD]),
    Case("lrn", IMAGE, [{"conv2d": {"filters": 6, "kernel": 3}}, {"lrn": {"radius": 2, "bias": 2.0, "alpha": 0.3, "beta": 0.6}}, *FLAT_HEAD]),
    Case("dropout", {"shape": [8]}, [{"dense": {"units": 6}}, {"dropout": {"rate": 0.5}}, "relu", *HEAD]),
    Case("embedding", TOKENS, [{"embedding": {"vocabulary": 11, "units": 5}}, *FLAT_HEAD]),
    Case("positions", TOKENS, [{"embedding": {"vocabulary": 11, "units": 5}}, "positions", *FLAT_HEAD]),
    Case("rnn-last", SEQUENCE, _recurrent("rnn")),
    Case("rnn-relu-all", SEQUENCE, _recurrent("rnn", activation="relu", steps="all", bias=False)),
    Case("lstm-last", SEQUENCE, _recurrent("lstm")),
    Case("lstm-all-stacked", SEQUENCE, _recurrent("lstm", layers=2, steps="all")),
    Case("lstm-hard-sigmoid", SEQUENCE, _recurrent("lstm", recurrent_activation="hard_sigmoid")),
    Case("lstm-sigmoid-no-bias", SEQUENCE, _recurrent("lstm", activation="sigmoid", bias=False)),
    Case("gru-last", SEQUENCE, _recurrent("gru")),
    Case("gru-all-stacked", SEQUENCE, _recurrent("gru", layers=2, steps="all")),
    Case("gru-hard-sigmoid", SEQUENCE, _recurrent("gru", recurrent_activation="hard_sigmoid", bias=False)),
    Case("attention", {"shape": [5, 8]}, [{"attention": {"heads": 2}}, *FLAT_HEAD]),
    Case("attention-causal", {"shape": [5, 8]}, [{"attention": {"heads": 4, "causal": True, "bias": False}}, *FLAT_HEAD]),
    *[
        Case(f"activation-{f}", {"shape": [8]}, [{"dense": {"units": 6, "activation": f}}, *HEAD])
        for f in ("relu", "leaky_relu", "tanh", "scaled_tanh", "sigmoid", "hard_sigmoid", "softmax", "gelu")
    ],
    Case("residual", IMAGE, [
        {"conv2d": {"filters": 4, "kernel": 3}},
        {"residual": {"body": [{"conv2d": {"filters": 4, "kernel": 3, "padding": "same"}}, "batch_norm", "relu"], "activation": "relu"}},
        {"residual": {
            "body": [{"conv2d": {"filters": 6, "kernel": 3, "stride": 2, "padding": "same"}}],
            "shortcut": [{"conv2d": {"filters": 6, "kernel": 1, "stride": 2}}, "batch_norm"],
        }},
        *FLAT_HEAD,
    ]),
    Case("parallel", IMAGE, [
        {"parallel": {"branches": [[{"conv2d": {"filters": 2, "kernel": 1}}], [{"conv2d": {"filters": 3, "kernel": 3, "padding": "same"}}, "relu"], []]}},
        *FLAT_HEAD,
    ]),
    Case("transformer", TOKENS, [
        {"embedding": {"vocabulary": 11, "units": 8}}, "positions",
        {"residual": {"body": ["layer_norm", {"attention": {"heads": 2, "causal": True}}]}},
        {"residual": {"body": ["layer_norm", {"dense": {"units": 16, "activation": "gelu"}}, {"dense": {"units": 8}}]}},
        "layer_norm", {"dense": {"units": 11, "activation": "softmax"}},
    ]),
]  # fmt: skip

MLP = [{"dense": {"units": 7, "activation": "tanh"}}, {"dense": {"units": 3}}]
CLASSIFIER = [*MLP, "softmax"]
FLAT = {"shape": [8]}


def _optimised(name: str, **optimiser: Any) -> Case:
    return Case(f"optimiser-{name}", FLAT, CLASSIFIER, {"optimiser": optimiser})


RECIPES = [
    _optimised("sgd", kind="sgd", rate=0.1),
    _optimised("momentum", kind="sgd", rate=0.1, momentum=0.9),
    _optimised("nesterov", kind="sgd", rate=0.1, momentum=0.9, nesterov=True),
    _optimised("weight-decay", kind="sgd", rate=0.1, momentum=0.9, weight_decay=0.05),
    _optimised("adam", kind="adam", rate=0.01),
    _optimised("adam-decay", kind="adam", rate=0.01, beta1=0.8, beta2=0.95, weight_decay=0.05),
    _optimised("rmsprop", kind="rmsprop", rate=0.01),
    _optimised("rmsprop-decay", kind="rmsprop", rate=0.01, rho=0.8, weight_decay=0.05),
    Case("loss-one-hot", FLAT, CLASSIFIER, {"labels": "one_hot"}),
    Case("loss-mse", FLAT, MLP, {"loss": "mse"}),
    Case("loss-mse-softmax", FLAT, CLASSIFIER, {"loss": "mse"}),
    Case("loss-mae", FLAT, MLP, {"loss": "mae"}),
    Case("loss-binary", FLAT, [{"dense": {"units": 7, "activation": "tanh"}}, {"dense": {"units": 1}}, "sigmoid"],
         {"loss": "binary_cross_entropy"}),
]  # fmt: skip

ALL = [*LAYERS, *RECIPES]
