"""TensorFlow without Keras: variables, a gradient tape, one tf.function for a step."""

import tensorflow as tf


def make(kind, weights, batches, rate, momentum, loop, device):
    w = {name: tf.Variable(values) for name, values in weights.items()}
    velocity = {name: tf.Variable(tf.zeros_like(v)) for name, v in w.items()}
    data = [(tf.constant(x), tf.constant(y)) for x, y in batches]
    lr = tf.Variable(rate)
    forward = {"mlp": mlp, "cnn": cnn, "lstm": lstm}[kind]

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=forward(w, x))
            loss = tf.reduce_mean(losses)
        names = list(w)
        for name, gradient in zip(names, tape.gradient(loss, [w[name] for name in names])):
            velocity[name].assign(momentum * velocity[name] + gradient)
            w[name].assign_sub(lr * velocity[name])
        return loss

    @tf.function
    def probabilities(x):
        return tf.nn.softmax(forward(w, x))

    def train(count):
        for i in range(count):
            step(*data[i % len(data)])

    def predict(count):
        for i in range(count):
            output = probabilities(data[i % len(data)][0])
        return output.numpy()

    return train, predict


def dense(w, i, x):
    return tf.matmul(x, w["dense_%d/kernel" % i]) + w["dense_%d/bias" % i]


def mlp(w, x):
    return dense(w, 3, tf.nn.relu(dense(w, 2, tf.nn.relu(dense(w, 1, x)))))


def cnn(w, x):
    for i in (1, 2):
        x = tf.nn.conv2d(x, w["conv2d_%d/kernel" % i], 1, "VALID")
        x = tf.nn.relu(tf.nn.bias_add(x, w["conv2d_%d/bias" % i]))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.reshape(x, (-1, 1024))
    return dense(w, 2, tf.nn.relu(dense(w, 1, x)))


def lstm(w, x):
    """Input projection of all steps at once, then the steps one after the other in the graph."""
    gates = tf.unstack(tf.matmul(x, w["lstm_1/kernel"]) + w["lstm_1/bias"], axis=1)
    h = c = tf.zeros((tf.shape(x)[0], 64))
    for gate in gates:
        i, f, candidate, o = tf.split(gate + tf.matmul(h, w["lstm_1/recurrent"]), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(candidate)
        h = tf.sigmoid(o) * tf.tanh(c)
    return dense(w, 1, h)
