from tests.contract.suite import contract

test_float64 = contract("keras-torch", "float64", "step")
test_float32 = contract("keras-torch", "float32", "fit")
