from tests.contract.suite import contract
from tests.contract.theano_cases import CONVOLVED, IN_PLAIN_CXX, IN_PYTHON, PLAIN

test_float64 = contract("theano", "float64", "step", cases=PLAIN, theano=IN_PYTHON)
test_float64_in_cxx = contract("theano", "float64", "step", cases=CONVOLVED, theano=IN_PLAIN_CXX)
test_float32 = contract("theano", "float32", "step")
