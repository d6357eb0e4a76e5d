"""scikit-learn's perceptrons: MLPClassifier and MLPRegressor, trained by `partial_fit` on one batch at a time.

They know one kind of network: dense layers with biases, one activation for all hidden layers, the output and the loss
that belong together. Everything else is unsupported, by name.
"""

from collections import OrderedDict

import numpy as np

from .base import Adapter, Unsupported
from .sklearn_networks import check_optimiser, gradient_scale, loss_scale, make_optimiser, outer_epsilon, read_network


class Sklearn(Adapter):
    name = "sklearn"
    traits = {"sgd_velocity": "rate_inside"}

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        settings = self.settings
        if self.device != "cpu":
            raise Unsupported("scikit-learn computes on the CPU only: use cpu, not {}".format(self.device))
        if self.precision not in ("float32", "float64"):
            raise Unsupported("scikit-learn has no {}: use float32 or float64".format(self.precision))
        if (settings.get("loop") or "step") != "step":
            raise Unsupported("scikit-learn's fit starts anew at every call: use the loop step")
        if (settings.get("compile") or "default") != "default":
            raise Unsupported("scikit-learn compiles nothing: use compile default")
        import sklearn
        import threadpoolctl
        from sklearn import neural_network

        self.networks, self.pools = neural_network, threadpoolctl
        if settings.get("threads"):
            self._limit = threadpoolctl.threadpool_limits(settings["threads"])  # holds as long as it lives
        return OrderedDict([("scikit-learn", sklearn.__version__), ("numpy", np.__version__)])

    def build(self, network, recipe, weights):
        self._layers, self._activation = read_network(network)
        self._recipe, self._nodes, self._width = recipe, network["nodes"], self._layers[-1][1]
        check_optimiser(recipe["optimiser"])
        self._scale, self._loss_scale = gradient_scale(network, recipe, self._width), loss_scale(recipe, self._width)
        self._classifies = recipe["loss"] != "mse"
        self._features = int(np.prod(network["input"]["shape"]))
        self._model = self._make_model()
        self._begin()
        self.load(weights)

    def _make_model(self):
        options, recipe = self._recipe["optimiser"], self._recipe
        kind = self.networks.MLPClassifier if self._classifies else self.networks.MLPRegressor
        return kind(
            hidden_layer_sizes=tuple(units for _, units in self._layers[:-1]),
            activation=self._activation,
            solver=options["kind"],
            alpha=0.0,
            batch_size=recipe["batch"],
            shuffle=False,
            random_state=int(self.settings.get("seed") or 0),
        )

    def _begin(self):
        """The first `partial_fit` draws weights and learns the classes; the weights are replaced at once."""
        places = max(self._width, 2)
        x = np.zeros((places, self._features), self.precision)
        if self._recipe["loss"] == "cross_entropy":
            self._model.partial_fit(x, np.arange(places), classes=np.arange(self._width))
        elif not self._classifies:
            self._model.partial_fit(x, self._labels(np.zeros((places, self._width))))
        elif self._width == 1:
            self._model.partial_fit(x, np.arange(places) % 2, classes=np.arange(2))
        else:
            self._model.partial_fit(x, np.eye(places, dtype=int), classes=np.arange(self._width))

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        x = np.ascontiguousarray(np.asarray(x, self.precision).reshape(len(x), -1))
        return x, (None if y is None else self._labels(np.asarray(y)))

    def _labels(self, y):
        if not self._classifies:
            return np.ascontiguousarray(y.ravel() if self._width == 1 else y, self.precision)
        if self._recipe["loss"] == "binary_cross_entropy":
            if not np.isin(y, (0, 1)).all():
                raise Unsupported("scikit-learn's classes are 0 or 1, nothing between: use another engine")
            return np.ascontiguousarray(y.ravel() if self._width == 1 else y, int)
        if self._recipe["labels"] == "one_hot":
            if not ((y == 1).sum(-1) == 1).all() or not np.isin(y, (0, 1)).all():
                raise Unsupported("scikit-learn knows no labels shared among classes: use another engine")
            return y.argmax(-1)
        return np.ascontiguousarray(y, int)

    def step(self, batch):
        optimiser, options = self._model._optimizer, self._recipe["optimiser"]
        if options["kind"] == "adam":
            optimiser.epsilon = outer_epsilon(options, self._scale, optimiser.t)
        self._model.partial_fit(batch[0], batch[1])

    def predict(self, batch):
        return self._model.predict_proba(batch[0]) if self._classifies else self._model.predict(batch[0])

    def sync(self):
        """NumPy never runs ahead."""

    def set_rate(self, rate, momentum=None):
        optimiser = self._model._optimizer
        scale = self._scale if self._recipe["optimiser"]["kind"] == "sgd" else 1.0
        optimiser.learning_rate_init = optimiser.learning_rate = rate * scale
        if momentum is None:
            return
        if self._recipe["optimiser"]["kind"] != "sgd":
            raise Unsupported("adam has no momentum to change: use sgd")
        optimiser.momentum = momentum

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float(self._model.loss_) * self._loss_scale

    def output(self, predicted):
        predicted = np.asarray(predicted, self.precision)
        if self._recipe["loss"] == "binary_cross_entropy" and self._width == 1:
            return predicted[:, 1:]
        return predicted.reshape(len(predicted), self._width)

    def _parameters(self):
        pairs = zip(self._layers, self._model.coefs_, self._model.intercepts_)
        return [(name, kernel, bias) for (name, _), kernel, bias in pairs]

    def weights(self):
        found = OrderedDict()
        for name, kernel, bias in self._parameters():
            found[name + "/kernel"], found[name + "/bias"] = kernel.copy(), bias.copy()
        return found

    def load(self, weights):
        for name, kernel, bias in self._parameters():
            kernel[...], bias[...] = weights[name + "/kernel"], weights[name + "/bias"]
        model, options = self._model, self._recipe["optimiser"]
        model._optimizer = make_optimiser(model.coefs_ + model.intercepts_, options, self._scale)
        model.t_, model.loss_curve_, model.best_loss_, model._no_improvement_count = 0, [], np.inf, 0
        self.set_rate(options["rate"], options["momentum"] if options["kind"] == "sgd" else None)

    def activations(self, x):
        """The perceptron shows what its layers give; what they make of it before the activation is computed here."""
        x = self.place(x)[0]
        given = self._model._forward_pass([x] + [None] * len(self._layers))
        found, depth = OrderedDict(), 0
        for node in self._nodes:
            if node["op"] == "dense":
                found[node["name"]] = given[depth] @ self._model.coefs_[depth] + self._model.intercepts_[depth]
                depth += 1
            else:
                found[node["name"]] = given[depth]
        return found

    def gradients(self, x, y):
        x, y = self.place(x, y)
        model, depth = self._model, len(self._layers)
        x, y = model._validate_input(x, y, incremental=True, reset=False)
        if y.ndim == 1:
            y = y.reshape(-1, 1)
        kernels, biases = ([np.empty_like(a) for a in arrays] for arrays in (model.coefs_, model.intercepts_))
        loss, kernels, biases = model._backprop(x, y, None, [x] + [None] * depth, [None] * depth, kernels, biases)
        found = OrderedDict()
        for (name, _), kernel, bias in zip(self._layers, kernels, biases):
            found[name + "/kernel"], found[name + "/bias"] = kernel * self._scale, bias * self._scale
        return float(loss) * self._loss_scale, found

    def readback(self):
        pools = [(pool["internal_api"], pool["num_threads"]) for pool in self.pools.threadpool_info()]
        return OrderedDict(
            dtype=str(self._model.coefs_[0].dtype),
            device="cpu",
            threads=max([threads for _, threads in pools] or [1]),
            pools=", ".join(sorted({api for api, _ in pools})),
            solver=self._model.solver,
            rate=float(self._model._optimizer.learning_rate_init),
        )

    def save(self, path):
        import joblib

        path = path if path.endswith(".joblib") else path + ".joblib"
        joblib.dump(self._model, path)
        return path
