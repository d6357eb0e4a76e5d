from tests.contract.suite import contract

test_float64 = contract("keras2-tensorflow", "float64", "step")
test_float32 = contract("keras2-tensorflow", "float32", "fit")
