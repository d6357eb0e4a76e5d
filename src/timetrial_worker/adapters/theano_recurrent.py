"""Recurrent layers in Theano: the input's part of all steps as one matrix product, then `theano.scan` over the steps.

This is how the LSTM of the deep-learning tutorials was written. Scan compiles a function of its own for one step, so
a long sequence costs no more to compile than a short one.
"""


def rnn(kit, node, own, mode, x):
    f = kit.function(node["attrs"])

    def cell(z, h, recurrent):
        return f(z + kit.T.dot(h, recurrent))

    return _scanned(kit, node, own, x, cell, 1)


def lstm(kit, node, own, mode, x):
    f, gate = kit.function(node["attrs"]), kit.function(node["attrs"], "recurrent_activation")
    units = node["attrs"]["units"]

    def cell(z, h, c, recurrent):
        i, forget, candidate, o = _parts(z + kit.T.dot(h, recurrent), units, 4)
        c = gate(forget) * c + gate(i) * f(candidate)
        return gate(o) * f(c), c

    return _scanned(kit, node, own, x, cell, 2)


def gru(kit, node, own, mode, x):
    f, gate = kit.function(node["attrs"]), kit.function(node["attrs"], "recurrent_activation")
    units = node["attrs"]["units"]

    def cell(z, h, recurrent, bias=None):
        inner = kit.T.dot(h, recurrent)
        if bias is not None:
            inner = inner + bias
        z_keep, z_reset, z_candidate = _parts(z, units, 3)
        inner_keep, inner_reset, inner_candidate = _parts(inner, units, 3)
        keep = gate(z_keep + inner_keep)
        candidate = f(z_candidate + gate(z_reset + inner_reset) * inner_candidate)
        return candidate + keep * (h - candidate)

    return _scanned(kit, node, own, x, cell, 1)


def _parts(values, units, count):
    return [values[:, i * units : (i + 1) * units] for i in range(count)]


def _scanned(kit, node, own, x, cell, states):
    """The layer from its cell. `states` is how many the cell carries; the first is the output."""
    steps, width = node["in_shapes"][0]
    bias, inner = _biases(own)
    z = kit.affine(x.dimshuffle(1, 0, 2), own["kernel"], bias, width)
    start = kit.T.alloc(kit.number(0), x.shape[0], node["attrs"]["units"])
    # One sample or one unit must not look like an axis that may be stretched.
    start = kit.T.unbroadcast(start, 0, 1)
    outputs, _ = kit.theano.scan(
        cell, sequences=z, outputs_info=[start] * states, non_sequences=[own["recurrent"]] + inner, n_steps=steps,
        strict=True,
    )  # fmt: skip
    h = outputs[0] if states > 1 else outputs
    return h.dimshuffle(1, 0, 2) if node["attrs"]["all_steps"] else h[-1]


def _biases(own):
    """The bias of the input's part, and [the bias of the state's part] where the layer has one."""
    bias = own.get("bias")
    if bias is None or bias.ndim == 1:
        return bias, []
    return bias[0], [bias[1]]
