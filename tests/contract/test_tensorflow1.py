from tests.contract.suite import contract

test_float64 = contract("tensorflow1", "float64", "step")
test_float32 = contract("tensorflow1", "float32", "step")
