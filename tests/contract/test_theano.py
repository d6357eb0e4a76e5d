from tests.contract.suite import contract

test_float64 = contract("theano", "float64", "step")
test_float32 = contract("theano", "float32", "step")
