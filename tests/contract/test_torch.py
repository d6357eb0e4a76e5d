from tests.contract.suite import contract

test_float64 = contract("torch", "float64", "step")
test_float32 = contract("torch", "float32", "step")
