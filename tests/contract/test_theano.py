"""Theano compiles C++ for every new operation, a second each, so all cases in both precisions would take many minutes.

In float32 all cases run as users run them. In float64 Theano carries out the same graphs in Python, where it can: its
convolution is in C++ alone, so of the networks with one there are some, compiled with little optimisation.
"""

from tests.contract.cases import ALL
from tests.contract.suite import contract

PLAIN = [case for case in ALL if not any(node.op == "conv2d" for node in case.network.nodes)]
CONVOLVED = (
    "conv-same-even-kernel",
    "conv-explicit",
    "max-pool-same-asymmetric",
    "avg-pool-explicit",
    "batch-norm-image",
    "lrn",
)

test_float64 = contract("theano", "float64", "step", cases=PLAIN, theano="mode=FAST_COMPILE")
test_float64_in_cxx = contract(
    "theano",
    "float64",
    "step",
    cases=[case for case in ALL if case.name in CONVOLVED],
    theano="optimizer=fast_compile,gcc.cxxflags=-O0",
)
test_float32 = contract("theano", "float32", "step")
