"""scikit-learn's perceptron as its guide teaches: one `partial_fit` for each batch."""

import numpy as np
from sklearn.neural_network import MLPClassifier


def make(kind, weights, batches, rate, momentum, loop, device):
    model = MLPClassifier(
        hidden_layer_sizes=(512, 512), solver="sgd", learning_rate_init=rate, momentum=momentum,
        nesterovs_momentum=False, alpha=0.0, batch_size=len(batches[0][0]), shuffle=False,
    )  # fmt: skip
    model.partial_fit(batches[0][0], batches[0][1], classes=np.arange(10))
    arrays = list(weights.values())
    for kernel, bias, new_kernel, new_bias in zip(model.coefs_, model.intercepts_, arrays[::2], arrays[1::2]):
        kernel[...], bias[...] = new_kernel, new_bias

    def train(count):
        for i in range(count):
            model.partial_fit(*batches[i % len(batches)])

    def predict(count):
        for i in range(count):
            output = model.predict_proba(batches[i % len(batches)][0])
        return output

    return train, predict
