"""JAX, as its documentation writes a training loop: pure functions, jit, value_and_grad, donated state."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


def make(kind, weights, batches, rate, momentum, loop, device):
    state = {
        "w": {name: jnp.asarray(values) for name, values in weights.items()},
        "v": {name: jnp.zeros(values.shape) for name, values in weights.items()},
    }
    data = [(jnp.asarray(x), jnp.asarray(y)) for x, y in batches]
    forward = {"mlp": mlp, "cnn": cnn, "lstm": lstm}[kind]

    def loss_of(w, x, y):
        log_p = jax.nn.log_softmax(forward(w, x))
        return -jnp.mean(jnp.take_along_axis(log_p, y[:, None], axis=1))

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(w, v, x, y):
        loss, g = jax.value_and_grad(loss_of)(w, x, y)
        v = jax.tree.map(lambda v, g: momentum * v + g, v, g)
        w = jax.tree.map(lambda w, v: w - rate * v, w, v)
        return w, v, loss

    @jax.jit
    def probabilities(w, x):
        return jax.nn.softmax(forward(w, x))

    def train(count):
        w, v = state["w"], state["v"]
        for i in range(count):
            w, v, loss = step(w, v, *data[i % len(data)])
        jax.block_until_ready((w, v, loss))
        state.update(w=w, v=v)

    def predict(count):
        w = state["w"]
        for i in range(count):
            output = probabilities(w, data[i % len(data)][0])
        return jax.block_until_ready(output)

    return train, predict


def dense(w, i, x):
    return x @ w["dense_%d/kernel" % i] + w["dense_%d/bias" % i]


def mlp(w, x):
    return dense(w, 3, jax.nn.relu(dense(w, 2, jax.nn.relu(dense(w, 1, x)))))


def cnn(w, x):
    for i in (1, 2):
        x = lax.conv_general_dilated(
            x, w["conv2d_%d/kernel" % i], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + w["conv2d_%d/bias" % i])
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    return dense(w, 2, jax.nn.relu(dense(w, 1, x)))


def lstm(w, x):
    def cell(carry, gates):
        h, c = carry
        i, f, candidate, o = jnp.split(gates + h @ w["lstm_1/recurrent"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(candidate)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    gates = jnp.swapaxes(x @ w["lstm_1/kernel"] + w["lstm_1/bias"], 0, 1)
    zeros = jnp.zeros((x.shape[0], 64))
    (h, _), _ = lax.scan(cell, (zeros, zeros), gates)
    return dense(w, 1, h)
