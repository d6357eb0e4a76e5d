"""Recurrent layers in TensorFlow 1, as steps in the graph.

The input's part of all steps is one matrix product beforehand. Short sequences are written out step by step, as the
language-model tutorial of the time did and `tf.nn.static_rnn` does; long ones are a `tf.while_loop`, as in
`tf.nn.dynamic_rnn`, because a graph of thousands of operations takes long to build.
"""

WRITTEN_OUT = 100  # steps


def rnn(kit, node, own, mode, x):
    tf, f = kit.tf, kit.function(node["attrs"])

    def cell(z, states, recurrent):
        return (f(z + tf.matmul(states[0], recurrent)),)

    return _stepped(kit, node, own, x, cell, 1)


def lstm(kit, node, own, mode, x):
    tf, f, gate = kit.tf, kit.function(node["attrs"]), kit.function(node["attrs"], "recurrent_activation")

    def cell(z, states, recurrent):
        h, c = states
        i, forget, candidate, o = tf.split(z + tf.matmul(h, recurrent), 4, axis=1)
        c = gate(forget) * c + gate(i) * f(candidate)
        return gate(o) * f(c), c

    return _stepped(kit, node, own, x, cell, 2)


def gru(kit, node, own, mode, x):
    tf, f, gate = kit.tf, kit.function(node["attrs"]), kit.function(node["attrs"], "recurrent_activation")
    units = node["attrs"]["units"]

    def cell(z, states, recurrent, bias=None):
        h = states[0]
        inner = tf.matmul(h, recurrent)
        if bias is not None:
            inner = tf.nn.bias_add(inner, bias)
        z_gates, z_candidate = tf.split(z, [2 * units, units], axis=1)
        inner_gates, inner_candidate = tf.split(inner, [2 * units, units], axis=1)
        keep, reset = tf.split(gate(z_gates + inner_gates), 2, axis=1)
        candidate = f(z_candidate + reset * inner_candidate)
        return (candidate + keep * (h - candidate),)

    return _stepped(kit, node, own, x, cell, 1)


def _stepped(kit, node, own, x, cell, states):
    """The layer from its cell. `states` is how many the cell carries; the first is the output."""
    tf, steps = kit.tf, node["in_shapes"][0][0]
    units, every = node["attrs"]["units"], node["attrs"]["all_steps"]
    bias, inner = _biases(tf, own)
    z = kit.affine(tf.transpose(x, [1, 0, 2]), own["kernel"], bias, node["in_shapes"][0])
    weights = [tf.convert_to_tensor(own["recurrent"])] + inner
    start = tuple(tf.zeros(tf.stack([tf.shape(x)[0], units]), kit.dtype) for _ in range(states))
    for state in start:
        state.set_shape([None, units])
    run = _written_out if steps <= WRITTEN_OUT else _loop
    outputs = run(tf, z, steps, start, lambda now, then: cell(now, then, *weights), every)
    return tf.transpose(outputs, [1, 0, 2]) if every else outputs


def _biases(tf, own):
    """The bias of the input's part, and [the bias of the state's part] where the layer has one."""
    bias = own.get("bias")
    if bias is None or len(bias.shape) == 1:
        return bias, []
    outer, inner = tf.unstack(bias)
    return outer, [inner]


def _written_out(tf, z, steps, states, cell, every):
    outputs = []
    for now in tf.unstack(z, steps):
        states = cell(now, states)
        outputs.append(states[0])
    return tf.stack(outputs) if every else outputs[-1]


def _loop(tf, z, steps, states, cell, every):
    inputs = tf.TensorArray(z.dtype, steps).unstack(z)
    outputs = (tf.TensorArray(z.dtype, steps),) if every else ()

    def body(t, states, outputs):
        now = inputs.read(t)
        now.set_shape(z.shape[1:])
        states = cell(now, states)
        return t + 1, states, tuple(array.write(t, states[0]) for array in outputs)

    start = (tf.constant(0), states, outputs)
    _, states, outputs = tf.while_loop(lambda t, *_: t < steps, body, start)
    if not every:
        return states[0]
    found = outputs[0].stack()
    found.set_shape([steps, None, states[0].shape[1]])
    return found
