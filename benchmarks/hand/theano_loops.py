"""Theano, as its deep-learning tutorials wrote a training loop: shared variables, `T.grad`, one function with updates.

The data lie in shared variables and a step gets the number of its batch, as in the tutorials.
"""

import numpy as np
import theano
import theano.tensor as T
from theano.tensor.signal.pool import pool_2d


def make(kind, weights, batches, rate, momentum, loop, device):
    layout = {4: lambda v: np.ascontiguousarray(v.transpose(3, 2, 0, 1))}
    w = {name: theano.shared(layout.get(v.ndim, np.array)(v), borrow=True) for name, v in weights.items()}
    if kind == "cnn":
        w["dense_1/kernel"].set_value(channels_first(weights["dense_1/kernel"]))
    size = len(batches[0][0])
    inputs = np.concatenate([x for x, _ in batches])
    data = theano.shared(inputs.transpose(0, 3, 1, 2).copy() if inputs.ndim == 4 else inputs, borrow=True)
    labels = theano.shared(np.concatenate([y for _, y in batches]).astype("int32"), borrow=True)

    index, x, y = T.lscalar(), T.TensorType("float32", (False,) * inputs.ndim)(), T.ivector()
    probability = T.nnet.softmax({"mlp": mlp, "cnn": cnn, "lstm": lstm}[kind](w, x))
    loss = T.nnet.categorical_crossentropy(probability, y).mean()
    updates = []
    for weight, gradient in zip(w.values(), T.grad(loss, list(w.values()))):
        velocity = theano.shared(weight.get_value() * 0)
        new = np.float32(momentum) * velocity + gradient
        updates += [(velocity, new), (weight, weight - np.float32(rate) * new)]
    batch = slice(index * size, (index + 1) * size)
    step = theano.function([index], loss, updates=updates, givens={x: data[batch], y: labels[batch]})
    answer = theano.function([index], probability, givens={x: data[batch]})

    def train(count):
        for i in range(count):
            step(i % len(batches))

    def predict(count):
        for i in range(count):
            output = answer(i % len(batches))
        return output

    return train, predict


def channels_first(kernel):
    """Rows of the kernel after the flattened images of 4 x 4 with 64 channels, for images whose channels come first."""
    return kernel.reshape(4, 4, 64, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)


def dense(w, i, x):
    return T.dot(x, w["dense_%d/kernel" % i]) + w["dense_%d/bias" % i]


def mlp(w, x):
    return dense(w, 3, T.nnet.relu(dense(w, 2, T.nnet.relu(dense(w, 1, x)))))


def cnn(w, x):
    shapes = [(None, 1, 28, 28), (None, 32, 12, 12)], [(32, 1, 5, 5), (64, 32, 5, 5)]
    for i, (image, kernel) in enumerate(zip(*shapes), 1):
        x = T.nnet.conv2d(x, w["conv2d_%d/kernel" % i], image, kernel, filter_flip=False)
        x = T.nnet.relu(x + w["conv2d_%d/bias" % i].dimshuffle("x", 0, "x", "x"))
        x = pool_2d(x, (2, 2), ignore_border=True)
    return dense(w, 2, T.nnet.relu(dense(w, 1, x.flatten(2))))


def lstm(w, x):
    def cell(gates, h, c, recurrent):
        gates = gates + T.dot(h, recurrent)
        i, f, candidate, o = (gates[:, k * 64 : (k + 1) * 64] for k in range(4))
        c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(candidate)
        return T.nnet.sigmoid(o) * T.tanh(c), c

    projected = T.dot(x.dimshuffle(1, 0, 2), w["lstm_1/kernel"]) + w["lstm_1/bias"]
    zeros = T.alloc(np.float32(0), x.shape[0], 64)
    (h, _), _ = theano.scan(cell, projected, [zeros, zeros], [w["lstm_1/recurrent"]])
    return dense(w, 1, h[-1])
