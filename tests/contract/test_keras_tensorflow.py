from tests.contract.suite import contract

test_float64 = contract("keras-tensorflow", "float64", "step")
test_float32 = contract("keras-tensorflow", "float32", "fit")
