"""Keras 3, any backend: a Sequential model, `train_on_batch` or `fit`, as its guides teach."""

import keras
import numpy as np
from keras import layers

INPUTS = {"mlp": (784,), "cnn": (28, 28, 1), "lstm": (50, 16)}


def body(kind):
    if kind == "mlp":
        return [layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu"), layers.Dense(10)]
    if kind == "cnn":
        return [
            layers.Conv2D(32, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(500, activation="relu"),
            layers.Dense(10),
        ]
    return [layers.LSTM(64), layers.Dense(10)]


def make(kind, weights, batches, rate, momentum, loop, device):
    keras.backend.set_image_data_format("channels_last")
    model = keras.Sequential([keras.Input(INPUTS[kind]), *body(kind)])
    model.compile(
        optimizer=keras.optimizers.SGD(rate, momentum=momentum),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.set_weights(list(weights.values()))
    classifier = keras.Sequential([model, layers.Softmax()])
    size, cycle = len(batches[0][0]), len(batches)
    x_all = np.concatenate([x for x, _ in batches])
    y_all = np.concatenate([y for _, y in batches])
    stacked = {}

    def arrays(count):
        if count not in stacked:
            turns = -(-count // cycle)
            stacked[count] = (
                np.tile(x_all, (turns,) + (1,) * (x_all.ndim - 1))[: count * size],
                np.tile(y_all, turns)[: count * size],
            )
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
        return classifier.predict(arrays(count)[0], batch_size=size, verbose=0)[-size:]

    return (fit, predict) if loop == "fit" else (train_steps, predict_steps)
