from tests.contract.suite import contract

LACKS = dict.fromkeys(("activation-gelu", "transformer"), "no error function, so no gelu")

test_step = contract("keras2-cntk", "float32", "step", LACKS)
test_fit = contract("keras2-cntk", "float32", "fit")
