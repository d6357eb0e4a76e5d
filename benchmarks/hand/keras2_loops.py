"""Keras 2, any backend: a Sequential model, `train_on_batch` or `fit`, as its documentation taught."""

import keras
import numpy as np
from keras import backend as K
from keras import layers
from keras.models import Sequential

INPUTS = {"mlp": (784,), "cnn": (28, 28, 1), "lstm": (50, 16)}


def body(kind, shape):
    if kind == "mlp":
        return [
            layers.Dense(512, activation="relu", input_shape=shape),
            layers.Dense(512, activation="relu"),
            layers.Dense(10),
        ]
    if kind == "cnn":
        return [
            layers.Conv2D(32, (5, 5), activation="relu", input_shape=shape),
            layers.MaxPooling2D(),
            layers.Conv2D(64, (5, 5), activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(data_format="channels_last"),
            layers.Dense(500, activation="relu"),
            layers.Dense(10),
        ]
    return [layers.LSTM(64, input_shape=shape), layers.Dense(10)]


def loss(labels, logits):
    return K.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def as_the_backend_has_them(weights, kind):
    """Theano turns kernels around. Where channels come first, they do so in the dense kernel behind the flattened
    images too: 4 x 4 places of 64 channels."""
    arrays = [array[::-1, ::-1] if array.ndim == 4 and K.backend() == "theano" else array for array in weights.values()]
    if kind == "cnn" and K.image_data_format() == "channels_first":
        kernel = arrays[4]
        arrays[4] = kernel.reshape(4, 4, 64, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
    return arrays


def make(kind, weights, batches, rate, momentum, loop, device):
    shape, first = INPUTS[kind], K.image_data_format() == "channels_first"
    if kind == "cnn" and first:
        shape = (1, 28, 28)
        batches = [(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), y) for x, y in batches]
    batches = [(x, y.astype("float32").reshape(-1, 1)) for x, y in batches]
    model = Sequential(body(kind, shape))
    model.compile(optimizer=keras.optimizers.SGD(rate, momentum=momentum), loss=loss)
    model.set_weights(as_the_backend_has_them(weights, kind))
    classifier = Sequential([model, layers.Activation("softmax")])
    size, cycle = len(batches[0][0]), len(batches)
    x_all = np.concatenate([x for x, _ in batches])
    y_all = np.concatenate([y for _, y in batches])
    stacked = {}

    def arrays(count):
        if count not in stacked:
            turns = -(-count // cycle)
            repeats = (turns,) + (1,) * (x_all.ndim - 1)
            stacked[count] = np.tile(x_all, repeats)[: count * size], np.tile(y_all, (turns, 1))[: count * size]
        return stacked[count]

    def train_steps(count):
        for i in range(count):
            model.train_on_batch(*batches[i % cycle])

    def predict_steps(count):
        for i in range(count):
            output = classifier.predict_on_batch(batches[i % cycle][0])
        return output

    def fit(count):
        model.fit(*arrays(count), batch_size=size, epochs=1, shuffle=False, verbose=0)

    def predict(count):
        return classifier.predict(arrays(count)[0], batch_size=size)[-size:]

    return (fit, predict) if loop == "fit" else (train_steps, predict_steps)
