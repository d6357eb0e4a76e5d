"""Theano compiles C++ for every new operation, a second each, so all cases in both precisions would take many minutes.

In float64 Theano carries out the same graphs in Python, where it can: its convolution is in C++ alone, so of the
networks with one there are some, compiled with little optimisation.
"""

from tests.contract.cases import ALL

PLAIN = [case for case in ALL if not any(node.op == "conv2d" for node in case.network.nodes)]
CONVOLVED = [
    case
    for case in ALL
    if case.name
    in (
        "conv-same-even-kernel",
        "conv-explicit",
        "max-pool-same-asymmetric",
        "avg-pool-explicit",
        "batch-norm-image",
        "lrn",
    )
]
IN_PYTHON = "mode=FAST_COMPILE"
IN_PLAIN_CXX = "optimizer=fast_compile,gcc.cxxflags=-O0"
