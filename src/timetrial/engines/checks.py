"""A small real training step for each engine, run in the engine's own interpreter, with a known answer.

With X = [[1, 2], [3, 4]], W = I and loss = sum((X W)^2) the gradient is 2 X'X W = [[20, 28], [28, 40]]. Each script
leaves it in `gradient`. Keras has no gradient of its own, so there it is read from one step of plain descent.
The scripts are text because only an engine's interpreter may import a framework; they keep to Python 3.6.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

ANSWER = ((20.0, 28.0), (28.0, 40.0))
_MARK = "TIMETRIAL-CHECK "

TORCH = """
import numpy, torch
x = torch.from_numpy(numpy.array([[1., 2.], [3., 4.]], dtype="float32"))
w = torch.eye(2, requires_grad=True)
(x @ w).pow(2).sum().backward()
gradient = w.grad.numpy().tolist()
"""

TENSORFLOW = """
import tensorflow as tf
x, w = tf.constant([[1., 2.], [3., 4.]]), tf.Variable([[1., 0.], [0., 1.]])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.matmul(x, w) ** 2)
gradient = tape.gradient(loss, w).numpy().tolist()
"""

JAX = """
import jax, jax.numpy as jnp
x, w = jnp.array([[1., 2.], [3., 4.]]), jnp.eye(2)
gradient = jax.jit(jax.grad(lambda w: jnp.sum(jnp.matmul(x, w) ** 2)))(w).tolist()
"""

# The loss is the mean over four entries, so the step from the identity is a quarter of the gradient.
KERAS = """
import os, numpy, keras
if keras.backend.backend() != os.environ["KERAS_BACKEND"]:
    raise RuntimeError("keras runs on " + keras.backend.backend() + ", not on " + os.environ["KERAS_BACKEND"])
x = numpy.array([[1., 2.], [3., 4.]], dtype="float32")
layer = keras.layers.Dense(2, use_bias=False, kernel_initializer="identity")
model = keras.Sequential([keras.Input((2,)), layer])
model.compile(optimizer=keras.optimizers.SGD(1.0), loss="mean_squared_error")
model.train_on_batch(x, numpy.zeros((2, 2), dtype="float32"))
gradient = (4 * (numpy.eye(2) - keras.ops.convert_to_numpy(layer.kernel))).tolist()
"""

THEANO = """
import numpy, theano
if not theano.config.cxx:
    raise RuntimeError("Theano finds no C++ compiler and would compute in slow Python")
x, w = theano.tensor.matrix(dtype="float64"), theano.shared(numpy.eye(2))
loss = theano.tensor.sum(theano.tensor.dot(x, w) ** 2)
gradient = theano.function([x], theano.grad(loss, w))(numpy.array([[1., 2.], [3., 4.]])).tolist()
"""

TENSORFLOW1 = """
import tensorflow as tf
x, w = tf.constant([[1., 2.], [3., 4.]]), tf.Variable([[1., 0.], [0., 1.]])
derivative = tf.gradients(tf.reduce_sum(tf.matmul(x, w) ** 2), w)[0]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    gradient = session.run(derivative).tolist()
"""

KERAS2 = """
import os, numpy
if os.environ["KERAS_BACKEND"] == "theano":
    import theano
    if not theano.config.cxx:
        raise RuntimeError("Theano finds no C++ compiler and would compute in slow Python")
import keras
if keras.backend.backend() != os.environ["KERAS_BACKEND"]:
    raise RuntimeError("keras runs on " + keras.backend.backend() + ", not on " + os.environ["KERAS_BACKEND"])
x = numpy.array([[1., 2.], [3., 4.]], dtype="float32")
layer = keras.layers.Dense(2, use_bias=False, kernel_initializer="identity", input_shape=(2,))
model = keras.models.Sequential([layer])
model.compile(optimizer=keras.optimizers.SGD(lr=1.0), loss="mean_squared_error")
model.train_on_batch(x, numpy.zeros((2, 2), dtype="float32"))
gradient = (4 * (numpy.eye(2) - model.get_weights()[0])).tolist()
"""

# A perceptron without a hidden layer. Its loss is half the mean over four entries, times the two outputs.
SKLEARN = """
import numpy
from sklearn.neural_network import MLPRegressor
x, y = numpy.array([[1., 2.], [3., 4.]]), numpy.zeros((2, 2))
model = MLPRegressor(hidden_layer_sizes=(), solver="sgd", alpha=0.0, learning_rate_init=1.0, momentum=0.0)
model.partial_fit(x, y)
model.coefs_[0][...], model.intercepts_[0][...] = numpy.eye(2), 0.0
model.partial_fit(x, y)
gradient = (4 * (numpy.eye(2) - model.coefs_[0])).tolist()
"""

REFERENCE = """
import numpy
x, w = numpy.array([[1., 2.], [3., 4.]]), numpy.eye(2)
gradient = (2 * x.T.dot(x.dot(w))).tolist()
"""

_EPILOGUE = """
import json, sys
try:
    from importlib.metadata import distributions
    found = {d.metadata["Name"].lower().replace("_", "-"): d.version for d in distributions() if d.metadata["Name"]}
except ImportError:
    import pkg_resources
    found = {d.project_name.lower().replace("_", "-"): d.version for d in pkg_resources.working_set}
python = ".".join(str(part) for part in sys.version_info[:3])
print("\\n" + %r + json.dumps({"gradient": gradient, "versions": found, "python": python}))
"""


@dataclass(frozen=True)
class Answer:
    """What a check printed: the interpreter's Python, the distributions it sees, and whether the step was right."""

    python: str
    versions: dict[str, str]
    right: bool


def script(check: str) -> str:
    return check + _EPILOGUE % _MARK


def read(output: str) -> Answer | None:
    """The answer in a check's output, below whatever the framework printed; None where there is none."""
    lines = [line for line in output.splitlines() if line.startswith(_MARK)]
    if not lines:
        return None
    said = json.loads(lines[-1][len(_MARK) :])
    return Answer(said["python"], said["versions"], _close(said["gradient"]))


def _close(gradient: list[list[float]]) -> bool:
    flat = [value for row in gradient for value in row]
    wanted = [value for row in ANSWER for value in row]
    return len(flat) == len(wanted) and all(abs(a - b) < 1e-3 for a, b in zip(flat, wanted, strict=True))
