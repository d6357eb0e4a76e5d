from tests.contract.suite import contract

LACKS = {name: "no error function, so no gelu" for name in ("activation-gelu", "transformer")}

test_step = contract("keras2-cntk", "float32", "step", LACKS)
test_fit = contract("keras2-cntk", "float32", "fit")
