from tests.contract.suite import contract

test_float64 = contract("keras-jax", "float64", "step")
test_float32 = contract("keras-jax", "float32", "fit")
