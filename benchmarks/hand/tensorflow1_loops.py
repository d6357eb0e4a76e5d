"""TensorFlow 1, as its tutorials wrote a training loop: placeholders, an optimiser's `minimize`, a session, feeds."""

import numpy as np
import tensorflow as tf


def make(kind, weights, batches, rate, momentum, loop, device):
    x = tf.placeholder(tf.float32, [None] + list(batches[0][0].shape[1:]))
    y = tf.placeholder(tf.int32, [None])
    build, lately = {"mlp": mlp, "cnn": cnn, "lstm": lstm}[kind], []
    logits = build({name: tf.Variable(values) for name, values in weights.items()}, x, lately)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train_step = tf.train.MomentumOptimizer(rate, momentum).minimize(loss)
    probabilities = tf.nn.softmax(logits)
    sess = tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
    sess.run(tf.global_variables_initializer())
    for variable, value in lately:
        variable.load(value(weights), sess)

    def train(count):
        for i in range(count):
            inputs, labels = batches[i % len(batches)]
            sess.run(train_step, feed_dict={x: inputs, y: labels})

    def predict(count):
        for i in range(count):
            output = sess.run(probabilities, feed_dict={x: batches[i % len(batches)][0]})
        return output

    return train, predict


def dense(w, i, x):
    return tf.matmul(x, w["dense_%d/kernel" % i]) + w["dense_%d/bias" % i]


def mlp(w, x, lately):
    return dense(w, 3, tf.nn.relu(dense(w, 2, tf.nn.relu(dense(w, 1, x)))))


def cnn(w, x, lately):
    for i in (1, 2):
        x = tf.nn.conv2d(x, w["conv2d_%d/kernel" % i], strides=[1, 1, 1, 1], padding="VALID")
        x = tf.nn.relu(tf.nn.bias_add(x, w["conv2d_%d/bias" % i]))
        x = tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    return dense(w, 2, tf.nn.relu(dense(w, 1, tf.reshape(x, [-1, 1024]))))


def lstm(w, x, lately):
    """The cell of the language-model tutorial, over written-out steps. Its gates stand in the order i, c, f, o."""
    for name in ("lstm_1/kernel", "lstm_1/recurrent", "lstm_1/bias"):
        del w[name]
    cell = tf.nn.rnn_cell.BasicLSTMCell(64, forget_bias=0.0)
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    kernel, bias = cell.variables
    lately.append((kernel, lambda w: ordered(np.concatenate([w["lstm_1/kernel"], w["lstm_1/recurrent"]]))))
    lately.append((bias, lambda w: ordered(w["lstm_1/bias"])))
    return dense(w, 1, outputs[-1])


def ordered(values):
    i, f, c, o = np.split(values, 4, axis=-1)
    return np.concatenate([i, c, f, o], axis=-1)
