from tests.contract.suite import contract

test_float64 = contract("tensorflow", "float64", "step")
test_float32 = contract("tensorflow", "float32", "step")
