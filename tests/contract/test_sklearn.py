from tests.contract.cases import ALL
from tests.contract.suite import contract

# What a perceptron of scikit-learn can be: all other cases are refused, for the first reason that is met.
CAN = {
    "dense", *(f"activation-{function}" for function in ("relu", "tanh", "sigmoid")),
    *(f"optimiser-{kind}" for kind in ("sgd", "momentum", "nesterov", "adam")),
    "loss-one-hot", "loss-mse", "loss-binary",
}  # fmt: skip

REASONS = {
    "dense-no-bias": "dense layer without a bias",
    "dense-sequence": "dense layer over sequences",
    "global-avg-pool-sequence": "dense layer over sequences",
    "global-max-pool-sequence": "dense layer over sequences",
    "batch-norm-flat": "layer 'batch_norm'",
    "layer-norm": "layer 'layer_norm'",
    "dropout": "layer 'dropout'",
    **dict.fromkeys(("embedding", "positions", "transformer"), "layer 'embedding'"),
    **{
        case.name: f"layer '{case.name.partition('-')[0]}'"
        for case in ALL
        if case.name.startswith(("rnn-", "lstm-", "gru-"))
    },
    "attention": "layer 'attention'",
    "attention-causal": "layer 'attention'",
    **{
        f"activation-{f}": f"activation '{f}'" for f in ("leaky_relu", "scaled_tanh", "hard_sigmoid", "softmax", "gelu")
    },
    "optimiser-weight-decay": "weight decay",
    "optimiser-adam-decay": "weight decay",
    "optimiser-rmsprop": "optimiser 'rmsprop'",
    "optimiser-rmsprop-decay": "optimiser 'rmsprop'",
    "loss-mse-softmax": "activation 'softmax'",
    "loss-mae": "loss 'mae'",
}
LACKS = {case.name: REASONS.get(case.name, "layer 'conv2d'") for case in ALL if case.name not in CAN}

test_float64 = contract("sklearn", "float64", "step", LACKS)
test_float32 = contract("sklearn", "float32", "step", LACKS)
