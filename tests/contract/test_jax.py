from tests.contract.suite import contract

test_float64 = contract("jax", "float64", "step")
test_float32 = contract("jax", "float32", "step")
