"""The layers and activations of the network language in JAX. Only `jax_native` uses this module.

A builder takes a lowered node and returns `apply(inputs, weights, run)`: `inputs` are the arrays of the nodes it reads,
`weights` its parameters by role, `run` the `Pass` that is being traced. JAX is imported inside the functions, so that
this module, like every adapter, can be imported where its framework is not.
"""

import numpy as np

from timetrial_worker.adapters import scopes
from timetrial_worker.adapters.base import Unsupported


class Pass(object):
    """One way through the network: in training or not, the dropout key, and the moving values made on the way."""

    def __init__(self, training, key=None):
        self.training = training
        self.moved = {}
        self._key = key

    def next_key(self):
        import jax

        self._key, key = jax.random.split(self._key)
        return key


# --- activations ----------------------------------------------------------------------------------------------------


def _identity(x):
    return x


def _scaled_tanh(x):
    import jax.numpy as jnp

    return 1.7159 * jnp.tanh(x * (2.0 / 3.0))


def _hard_sigmoid(x):
    import jax.numpy as jnp

    return jnp.clip(0.2 * x + 0.5, 0.0, 1.0)


def function(name, slope=0.01):
    """The activation of that name as a function of one array."""
    from jax import nn

    known = {
        "relu": nn.relu,
        "leaky_relu": lambda x: nn.leaky_relu(x, slope),
        "tanh": nn.tanh,
        "scaled_tanh": _scaled_tanh,
        "sigmoid": nn.sigmoid,
        "hard_sigmoid": _hard_sigmoid,
        "softmax": nn.softmax,
        "identity": _identity,
        "gelu": lambda x: nn.gelu(x, approximate=False),
    }
    if name not in known:
        raise Unsupported("jax has no activation '{}'".format(name))
    return known[name]


def _activation(node):
    f = function(node["attrs"]["function"], node["attrs"].get("slope", 0.01))
    return lambda inputs, weights, run: f(inputs[0])


# --- dense, convolution, pooling ------------------------------------------------------------------------------------


def _biased(x, weights, role="bias"):
    """A bias stays in the weights' own type: its gradient, a sum over all places, is then summed in that type too."""
    return (x + weights[role]).astype(x.dtype) if role in weights else x


def _dense(node):
    return lambda inputs, weights, run: _biased(inputs[0] @ weights["kernel"], weights)


def _embedding(node):
    return lambda inputs, weights, run: weights["table"][inputs[0]]


def _positions(node):
    return lambda inputs, weights, run: inputs[0] + weights["table"]


def _pads(node):
    return [tuple(side) for side in node["attrs"]["pads"]]


def _conv2d(node):
    from jax import lax

    stride, pads = tuple(node["attrs"]["stride"]), _pads(node)

    def apply(inputs, weights, run):
        y = lax.conv_general_dilated(
            inputs[0], weights["kernel"], stride, pads, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return _biased(y, weights)

    return apply


def _windows(node):
    """Window, stride and padding of a pool over (N, H, W, C)."""
    window, stride = tuple(node["attrs"]["window"]), tuple(node["attrs"]["stride"])
    return (1,) + window + (1,), (1,) + stride + (1,), [(0, 0)] + _pads(node) + [(0, 0)]


def _max_pool(node):
    from jax import lax

    window, stride, pads = _windows(node)
    return lambda inputs, weights, run: lax.reduce_window(
        inputs[0], np.array(-np.inf, inputs[0].dtype), lax.max, window, stride, pads
    )


def _window_sums(x, window, stride, pads):
    from jax import lax

    return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, window, stride, pads)


def _taps(length, window, stride, pads):
    """How many real values each window along one axis holds."""
    real = np.pad(np.ones(length), pads, mode="constant")
    starts = range(0, len(real) - window + 1, stride)
    return np.array([real[i : i + window].sum() for i in starts])


def _avg_pool(node):
    window, stride, pads = _windows(node)
    rows, columns = (_taps(node["in_shapes"][0][i], window[i + 1], stride[i + 1], pads[i + 1]) for i in (0, 1))
    share = 1.0 / (rows[:, None, None] * columns[None, :, None])
    return lambda inputs, weights, run: (
        _window_sums(inputs[0], window, stride, pads) * np.asarray(share, inputs[0].dtype)
    )


def _places(node):
    return tuple(range(1, len(node["in_shapes"][0])))


def _global_avg_pool(node):
    return lambda inputs, weights, run: inputs[0].mean(axis=_places(node))


def _global_max_pool(node):
    return lambda inputs, weights, run: inputs[0].max(axis=_places(node))


# --- normalisation and dropout --------------------------------------------------------------------------------------


def wide(x):
    """Statistics of half-precision values are taken in float32."""
    import jax.numpy as jnp

    return x.astype(jnp.promote_types(x.dtype, np.float32))


def _batch_norm(node):
    from jax import lax

    momentum, epsilon = node["attrs"]["momentum"], node["attrs"]["epsilon"]
    names = {p["role"]: p["name"] for p in node["parameters"]}

    def apply(inputs, weights, run):
        x = wide(inputs[0])
        mean, variance = weights["mean"], weights["variance"]
        if run.training:
            axes = tuple(range(x.ndim - 1))
            moving, mean, variance = (mean, variance), x.mean(axis=axes), x.var(axis=axes)
            for role, old, new in zip(("mean", "variance"), moving, (mean, variance)):
                run.moved[names[role]] = momentum * old + (1.0 - momentum) * lax.stop_gradient(new)
        y = (x - mean) * (lax.rsqrt(variance + epsilon) * weights["gamma"]) + weights["beta"]
        return y.astype(inputs[0].dtype)

    return apply


def _layer_norm(node):
    from jax import lax

    epsilon = node["attrs"]["epsilon"]

    def apply(inputs, weights, run):
        x = wide(inputs[0])
        centred = x - x.mean(axis=-1, keepdims=True)
        scale = lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + epsilon)
        return (centred * scale * weights["gamma"] + weights["beta"]).astype(inputs[0].dtype)

    return apply


def _lrn(node):
    attrs = node["attrs"]
    radius, bias, alpha, beta = attrs["radius"], attrs["bias"], attrs["alpha"], attrs["beta"]
    window, pads = (1, 1, 1, 2 * radius + 1), [(0, 0)] * 3 + [(radius, radius)]

    def apply(inputs, weights, run):
        x = inputs[0]
        return x * (bias + alpha * _window_sums(x * x, window, (1, 1, 1, 1), pads)) ** -beta

    return apply


def _dropout(node):
    import jax
    import jax.numpy as jnp

    keep = 1.0 - node["attrs"]["rate"]

    def apply(inputs, weights, run):
        x = inputs[0]
        if not run.training or keep == 1.0:
            return x
        return jnp.where(jax.random.bernoulli(run.next_key(), keep, x.shape), x / keep, 0.0)

    return apply


# --- recurrent layers -----------------------------------------------------------------------------------------------


def _recurrent(node, cell, states):
    """Projects all steps at once, then scans `cell(projected, state, weights) -> state` over time.

    The state is a tuple of `states` arrays (N, units) of which the first is the output.
    """
    import jax.numpy as jnp
    from jax import lax

    units, all_steps = node["attrs"]["units"], node["attrs"]["all_steps"]

    def apply(inputs, weights, run):
        x = inputs[0].swapaxes(0, 1)
        projected = x @ weights["kernel"]
        if "bias" in weights:
            bias = weights["bias"].reshape(-1, projected.shape[-1])[0]
            projected = (projected + bias).astype(x.dtype)
        start = (jnp.zeros((x.shape[1], units), x.dtype),) * states

        def advance(state, step):
            state = cell(step, state, weights)
            return state, state[0] if all_steps else None

        last, outputs = lax.scan(advance, start, projected)
        return outputs.swapaxes(0, 1) if all_steps else last[0]

    return apply


def _rnn(node):
    f = function(node["attrs"]["activation"])
    return _recurrent(node, lambda x, state, weights: (f(x + state[0] @ weights["recurrent"]),), 1)


def _lstm(node):
    import jax.numpy as jnp

    f, gate = function(node["attrs"]["activation"]), function(node["attrs"]["recurrent_activation"])

    def cell(x, state, weights):
        h, c = state
        i, forget, candidate, o = jnp.split(x + h @ weights["recurrent"], 4, axis=-1)
        c = gate(forget) * c + gate(i) * f(candidate)
        return gate(o) * f(c), c

    return _recurrent(node, cell, 2)


def _gru(node):
    import jax.numpy as jnp

    f, gate = function(node["attrs"]["activation"]), function(node["attrs"]["recurrent_activation"])

    def cell(x, state, weights):
        (h,) = state
        inner = h @ weights["recurrent"]
        if "bias" in weights:
            inner = inner + weights["bias"][1]
        x_z, x_r, x_c = jnp.split(x, 3, axis=-1)
        h_z, h_r, h_c = jnp.split(inner, 3, axis=-1)
        z = gate(x_z + h_z)
        return (z * h + (1.0 - z) * f(x_c + gate(x_r + h_r) * h_c),)

    return _recurrent(node, cell, 1)


# --- attention, joins, shape ----------------------------------------------------------------------------------------


def _attention(node):
    import jax.numpy as jnp
    from jax import nn

    heads, (steps, width) = node["attrs"]["heads"], node["in_shapes"][0]
    seen = np.tril(np.ones((steps, steps), bool)) if node["attrs"]["causal"] else None
    scale = (width // heads) ** -0.5

    def linear(x, weights, part):
        return _biased(x @ weights[part + "_kernel"], weights, part + "_bias")

    def apply(inputs, weights, run):
        x = inputs[0]
        q, k, v = (
            linear(x, weights, part).reshape(-1, steps, heads, width // heads) for part in ("query", "key", "value")
        )
        scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) * scale
        if seen is not None:
            scores = jnp.where(seen, scores, -np.inf)
        mixed = jnp.einsum("nhqk,nkhd->nqhd", nn.softmax(scores), v)
        return linear(mixed.reshape(-1, steps, width), weights, "output")

    return apply


def _flatten(node):
    return lambda inputs, weights, run: inputs[0].reshape(inputs[0].shape[0], -1)


def _add(node):
    return lambda inputs, weights, run: sum(inputs[1:], inputs[0])


def _concat(node):
    import jax.numpy as jnp

    return lambda inputs, weights, run: jnp.concatenate(inputs, axis=-1)


BUILDERS = {
    "activation": _activation,
    "add": _add,
    "attention": _attention,
    "avg_pool": _avg_pool,
    "batch_norm": _batch_norm,
    "concat": _concat,
    "conv2d": _conv2d,
    "dense": _dense,
    "dropout": _dropout,
    "embedding": _embedding,
    "flatten": _flatten,
    "global_avg_pool": _global_avg_pool,
    "global_max_pool": _global_max_pool,
    "gru": _gru,
    "layer_norm": _layer_norm,
    "lrn": _lrn,
    "lstm": _lstm,
    "max_pool": _max_pool,
    "positions": _positions,
    "rnn": _rnn,
}


def forward(network):
    """`outputs(weights, x, run)` -> every node's array by name. XLA drops what its caller does not use."""
    import jax

    for node in network["nodes"]:
        if node["op"] not in BUILDERS:
            raise Unsupported("jax has no layer '{}'".format(node["op"]))
    steps = [
        (node["name"], tuple(node["inputs"]), {p["role"]: p["name"] for p in node["parameters"]},
         BUILDERS[node["op"]](node))
        for node in network["nodes"]
    ]  # fmt: skip

    def outputs(weights, x, run):
        known = {"input": x}
        for name, inputs, roles, apply in steps:
            with jax.named_scope(scopes.layer(name)):
                own = {role: weights[parameter] for role, parameter in roles.items()}
                known[name] = apply([known[source] for source in inputs], own, run)
        del known["input"]
        return known

    return outputs
