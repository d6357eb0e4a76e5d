from tests.contract.suite import contract

test_float64 = contract("keras2-theano", "float64", "step")
test_float32 = contract("keras2-theano", "float32", "fit")
