"""Recurrent layers in TensorFlow: cuDNN's kernel on a GPU where it computes the same, else steps in the graph.

The input's part of all steps is one matrix product beforehand. Short sequences are written out step by step, which
runs about a fifth faster than a loop in the graph; long ones are a loop, because a graph of thousands of operations
takes long to build. XLA always gets the loop: it compiles written-out steps for minutes and runs them slower.
"""

WRITTEN_OUT = 100  # steps


def rnn(kit, node, own):
    tf, f = kit.tf, kit.function(node["attrs"])
    fused = {"tanh": "rnn_tanh", "relu": "rnn_relu"}.get(node["attrs"]["activation"])

    def cell(z, states, recurrent):
        return (f(z + tf.matmul(states[0], recurrent)),)

    return _cudnn(kit, node, own, fused) if _has_cudnn(kit, fused) else _stepped(kit, node, own, cell, 1)


def lstm(kit, node, own):
    tf, f, gate = kit.tf, kit.function(node["attrs"]), kit.function(node["attrs"], "recurrent_activation")
    if _has_cudnn(kit, _usual(node)):
        return _cudnn(kit, node, own, "lstm")

    def cell(z, states, recurrent):
        h, c = states
        i, forget, candidate, o = tf.split(z + tf.matmul(h, recurrent), 4, axis=1)
        c = gate(forget) * c + gate(i) * f(candidate)
        return gate(o) * f(c), c

    return _stepped(kit, node, own, cell, 2)


def gru(kit, node, own):
    tf, f, gate = kit.tf, kit.function(node["attrs"]), kit.function(node["attrs"], "recurrent_activation")
    units = node["attrs"]["units"]
    if _has_cudnn(kit, _usual(node)):
        return _cudnn(kit, node, own, "gru")

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

    return _stepped(kit, node, own, cell, 1)


# --- steps in the graph ---------------------------------------------------------------------------------------------


def _stepped(kit, node, own, cell, states):
    """The layer from its cell. `states` is how many the cell carries; the first is the output."""
    tf, steps = kit.tf, node["in_shapes"][0][0]
    units, every = node["attrs"]["units"], node["attrs"]["all_steps"]
    run = _loop if kit.xla or steps > WRITTEN_OUT else _written_out

    def call(mode, x):
        bias, inner = _biases(kit, own)
        z = kit.affine(tf.transpose(x, [1, 0, 2]), own["kernel"], bias)
        weights = [tf.convert_to_tensor(kit.read(own["recurrent"]))] + inner
        start = tuple(tf.zeros([x.shape[0], units], kit.dtype) for _ in range(states))
        outputs = run(tf, z, steps, start, lambda z, now: cell(z, now, *weights), every)
        return tf.transpose(outputs, [1, 0, 2]) if every else outputs

    return call


def _biases(kit, own):
    """The bias of the input's part, and [the bias of the state's part] where the layer has one."""
    bias = own.get("bias")
    if bias is None or len(bias.shape) == 1:
        return bias, []
    outer, inner = kit.tf.unstack(kit.read(bias))
    return outer, [inner]


def _written_out(tf, z, steps, states, cell, every):
    outputs = []
    for now in tf.unstack(z, steps):
        states = cell(now, states)
        outputs.append(states[0])
    return tf.stack(outputs) if every else outputs[-1]


def _loop(tf, z, steps, states, cell, every):
    inputs = tf.TensorArray(z.dtype, steps, element_shape=z.shape[1:]).unstack(z)
    outputs = ()
    if every:
        outputs = (tf.TensorArray(z.dtype, steps, element_shape=states[0].shape),)

    def body(t, states, outputs):
        states = cell(inputs.read(t), states)
        return t + 1, states, tuple(array.write(t, states[0]) for array in outputs)

    start = (tf.constant(0), states, outputs)
    _, states, outputs = tf.while_loop(lambda t, *_: t < steps, body, start, maximum_iterations=steps)
    return outputs[0].stack() if every else states[0]


# --- cuDNN ----------------------------------------------------------------------------------------------------------


def _usual(node):
    """Whether the activations are those that cuDNN's gated layers have built in."""
    return node["attrs"]["activation"] == "tanh" and node["attrs"]["recurrent_activation"] == "sigmoid"


def _has_cudnn(kit, fitting):
    return bool(kit.gpu and not kit.xla and fitting)


def _cudnn(kit, node, own, kind):
    tf, (steps, _) = kit.tf, node["in_shapes"][0]
    units, every = node["attrs"]["units"], node["attrs"]["all_steps"]

    def call(mode, x):
        start = tf.zeros([1, x.shape[0], units], kit.dtype)
        cells = start if kind == "lstm" else tf.zeros([], kit.dtype)
        outputs, last = tf.raw_ops.CudnnRNNV3(
            input=tf.transpose(x, [1, 0, 2]), input_h=start, input_c=cells,
            params=packed(kit, own, kind), sequence_lengths=tf.fill([x.shape[0]], steps), rnn_mode=kind,
            is_training=mode.training, time_major=True,
        )[:2]  # fmt: skip
        return tf.transpose(outputs, [1, 0, 2]) if every else last[0]

    return call


def packed(kit, own, kind):
    """The weights as cuDNN's one long vector: input kernels, recurrent kernels, input biases, recurrent biases.

    Each kernel is (units, in) and gates follow each other; the GRU's reset gate comes before its update gate.
    """
    tf = kit.tf

    def ordered(values):
        if kind != "gru":
            return values
        z, r, h = tf.split(values, 3, axis=-1)
        return tf.concat([r, z, h], -1)

    kernels = [tf.transpose(ordered(kit.read(own[role]))) for role in ("kernel", "recurrent")]
    width = kernels[0].shape[0]
    biases = [tf.zeros([2 * width], kit.dtype)]
    if "bias" in own:
        bias = ordered(kit.read(own["bias"]))
        biases = [bias] if len(bias.shape) == 2 else [bias, tf.zeros([width], kit.dtype)]
    return tf.concat([tf.reshape(part, [-1]) for part in kernels + biases], 0)
