"""Settings that change how an engine computes change nothing of what: the same contract, with each of them.

Only the cases that such a setting could touch: images for a layout, optimisers for an update.
"""

from __future__ import annotations

from tests.contract.cases import LAYERS, RECIPES
from tests.contract.suite import contract

WANTED = (
    "conv-same-even-kernel", "conv-explicit", "max-pool-same-asymmetric", "max-pool-explicit", "avg-pool-same",
    "avg-pool-explicit", "global-avg-pool", "flatten-then-norm", "batch-norm-image", "lrn", "residual", "parallel",
)  # fmt: skip
IMAGES = [case for case in LAYERS if case.name in WANTED]
TRAINED = [case for case in RECIPES if case.name.removeprefix("optimiser-") in ("nesterov", "adam-decay", "rmsprop")]
NO_FUSED = {"optimiser-rmsprop": "no update: fused"}
YNN = {"xla_flags": "--xla_cpu_experimental_ynn_fusion_type=-individual_convolution"}

test_torch_channels_last = contract("torch", "float64", "step", cases=IMAGES, settings={"layout": "channels_last"})
test_torch_fused = contract("torch", "float64", "step", NO_FUSED, TRAINED, settings={"update": "fused"})
test_torch_foreach = contract("torch", "float64", "step", cases=TRAINED, settings={"update": "foreach"})
test_keras_torch_first = contract("keras-torch", "float64", "step", cases=IMAGES, settings={"layout": "channels_first"})
test_keras_jax_first = contract("keras-jax", "float64", "fit", cases=IMAGES, settings={"layout": "channels_first"})
test_jax_flags = contract("jax", "float32", "step", cases=IMAGES[:2], settings=YNN)
