from tests.contract.suite import contract

LACKS = dict.fromkeys(("attention", "attention-causal", "transformer"), "batched product")

test_float64 = contract("keras2-theano", "float64", "step", LACKS)
test_float32 = contract("keras2-theano", "float32", "fit")
