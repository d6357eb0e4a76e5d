"""Keras 3 on its three backends: a functional model of built-in layers, trained as a Keras user trains.

Loop "step" is `train_on_batch` and `predict_on_batch` on batches that already lie on the device; loop "fit" is one
`fit` or `predict` over arrays on the host, which Keras' own data adapters cut into batches.
"""

import os
from collections import OrderedDict

import numpy as np

from .base import Adapter, Unsupported
from .keras3_data import Reel, make_dataset
from .keras3_model import allow_double, last_loss_model, make_loss, make_nodes
from .keras3_optimisers import make as make_optimiser
from .keras3_optimisers import set_momentum

POLICIES = {"float32": "float32", "float64": "float64", "bfloat16": "mixed_bfloat16"}


class Keras3(Adapter):
    """What is the same on all backends. A subclass adds what only its backend knows."""

    backend = ""
    traits = {"sgd_velocity": "rate_inside"}
    layouts = ("channels_first", "channels_last")
    compile_words = {"default": {}, "eager": {"run_eagerly": True}}

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        self._check_settings()
        os.environ["KERAS_BACKEND"] = self.backend
        self.add_xla_flags(self.settings.get("xla_flags"))
        versions = self._start_backend()
        import keras

        if keras.backend.backend() != self.backend:
            message = "Keras already runs on {} in this process: start {} in a fresh one"
            raise Unsupported(message.format(keras.backend.backend(), self.name))
        self.keras = keras
        self.floatx = "float64" if self.precision == "float64" else "float32"
        self._double_allowed = self.floatx == "float64" and allow_double(keras)
        keras.config.set_floatx(self.floatx)
        keras.config.set_image_data_format("channels_first" if self._channels_first else "channels_last")
        keras.utils.set_random_seed(self._seed())
        return OrderedDict([("keras", keras.__version__)] + versions)

    def _check_settings(self):
        self._compile_word = self.settings.get("compile") or "default"
        self._known(POLICIES, "precision", self.precision)
        self._known(self.compile_words, "compile setting", self._compile_word)
        self._known(("step", "fit"), "loop", self.settings.get("loop") or "step")
        kind, _, index = self.device.partition(":")
        if kind not in ("cpu", "cuda") or not (index or "0").isdigit():
            raise Unsupported("{} has no device {!r}: use cpu or cuda:0".format(self.name, self.device))
        self._fit = self.settings.get("loop") == "fit"
        self._channels_first = self.settings.get("layout") == "channels_first"
        self._gpu = int(index or 0) if kind == "cuda" else None

    def _known(self, words, kind, word):
        if word not in words:
            message = "{} has no {} {!r}: use one of {}"
            raise Unsupported(message.format(self.name, kind, word, ", ".join(sorted(words))))

    def _seed(self):
        return int(self.settings.get("seed") or 0)

    def _pick(self, found):
        """The wanted one of the GPUs that the backend sees."""
        if self._gpu >= len(found):
            message = "{} sees {} GPUs, so no {}: use cpu, or a build of {} with CUDA and a driver that fits it"
            raise Unsupported(message.format(self.name, len(found), self.device, self.backend))
        return found[self._gpu]

    def build(self, network, recipe, weights):
        keras = self.keras
        if self._channels_first and len(network["nodes"][-1]["shape"]) == 3:
            raise Unsupported("Keras' losses read the last axis as classes: leave layout: channels_first out")
        keras.backend.clear_session()  # it forgets the policy too
        keras.config.set_dtype_policy(POLICIES[self.precision])
        inputs, nodes, self._parameters = make_nodes(keras, network)
        output, head = nodes[network["output"]], network["head"]
        self._model = (last_loss_model(keras) if self._fit else keras.Model)(inputs, output)
        self._inference = self._model
        self._all_nodes, self._node_names = keras.Model(inputs, list(nodes.values())), list(nodes)
        self._loss, self._optimiser = make_loss(keras, recipe), make_optimiser(keras, recipe)
        options = self.compile_words[self._compile_word]
        if head != "identity":
            final = keras.layers.Activation(head, dtype=self.floatx, name="head")
            self._inference = keras.Model(inputs, final(output))
            self._inference.compile(optimizer=None, **options)
        self._model.compile(optimizer=self._optimiser, loss=self._loss, **options)
        self._optimiser.build(self._model.trainable_variables)
        self._remember_fresh_state()
        self._reel, self._inference_reel, self._last = Reel(), Reel(), None
        self.load(weights)

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        """Host arrays for `fit`, arrays of the backend on its device for a step."""
        placed = tuple(None if array is None else self._cast(array) for array in (x, y))
        if self._fit:
            return placed
        convert = self.keras.ops.convert_to_tensor
        return tuple(None if array is None else convert(array) for array in placed)

    def _cast(self, array):
        array = np.asarray(array)
        if self._channels_first and array.ndim == 4:
            array = array.transpose(0, 3, 1, 2)
        dtype = self.floatx if array.dtype.kind == "f" else "int32"
        return np.ascontiguousarray(array, dtype)

    def step(self, batch):
        if self._fit:
            self._fit_arrays(batch, len(batch[0]))
        else:
            self._last = self._model.train_on_batch(batch[0], batch[1])

    def predict(self, batch):
        if self._fit:
            return self._inference.predict(batch[0], batch_size=len(batch[0]), verbose=0)
        return self._inference.predict_on_batch(batch[0])

    def run_steps(self, batches, first, count):
        if not self._fit:
            Adapter.run_steps(self, batches, first, count)
            return
        for arrays in self._reel.cut(batches, first, count):
            self._fit_arrays(arrays, self._reel.size)

    def run_predictions(self, batches, first, count):
        if not self._fit:
            return Adapter.run_predictions(self, batches, first, count)
        reel, output = self._inference_reel, None
        for arrays in reel.cut(batches, first, count):
            output = self._inference.predict(arrays[0], batch_size=reel.size, verbose=0)
        return output[(len(output) - 1) // reel.size * reel.size :]

    def _fit_arrays(self, arrays, size):
        self._model.fit(arrays[0], arrays[1], batch_size=size, epochs=1, shuffle=False, verbose=0)

    def fit(self, x, y=None, size=None):
        self._fit_arrays((x, None) if size is None else (self._cast(x), self._cast(y)), size)

    def predict_arrays(self, x, size):
        return self._inference.predict(self._cast(x), batch_size=size, verbose=0)

    def loader(self, x, y, workers, prefetch):
        if not self._fit or y is None:
            message = "{} reads from a loader (a PyDataset) in its own training loop: use loop: fit with tasks: [train]"
            raise Unsupported(message.format(self.name))
        return lambda picks: make_dataset(self.keras, (x, y), picks, self._cast, workers, prefetch)

    def set_rate(self, rate, momentum=None):
        self._optimiser.learning_rate = rate
        if momentum is not None:
            set_momentum(self._optimiser, momentum)

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float(self._host(self._model.last_loss)) if self._fit else float(self._last)

    def output(self, predicted):
        """Images go back to the canonical form, where Keras keeps them in the other one."""
        values = np.asarray(predicted, self.floatx)
        return values.transpose(0, 2, 3, 1) if self._channels_first and values.ndim == 4 else values

    def _host(self, tensor):
        return np.asarray(self.keras.ops.convert_to_numpy(tensor), self.floatx)

    def weights(self):
        return OrderedDict((name, self._host(variable).reshape(shape)) for name, shape, variable in self._parameters)

    def load(self, weights):
        for name, _, variable in self._parameters:
            variable.assign(np.asarray(weights[name], self.floatx).reshape(tuple(variable.shape)))
        for variable, value in self._fresh_state:
            variable.assign(np.zeros(tuple(variable.shape), self.floatx) if value is None else value)
        self.keras.utils.set_random_seed(self._seed())

    def _remember_fresh_state(self):
        """How to forget: step counts, rates and random states have a first value; the optimiser's moments are zeros."""
        parameters = {id(variable) for _, _, variable in self._parameters}
        others = [v for v in self._model.variables if id(v) not in parameters]
        small = [v for v in self._optimiser.variables if not len(v.shape)] + others
        moments = [v for v in self._optimiser.variables if len(v.shape)]
        first = self.keras.ops.convert_to_numpy
        self._fresh_state = [(v, np.array(first(v))) for v in small] + [(v, None) for v in moments]

    def activations(self, x):
        outputs = self._all_nodes(self.keras.ops.convert_to_tensor(self._cast(x)), training=False)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return OrderedDict((name, self.output(self._host(found))) for name, found in zip(self._node_names, outputs))

    def gradients(self, x, y):
        model, convert = self._model, self.keras.ops.convert_to_tensor
        x, y = convert(self._cast(x)), convert(self._cast(y))
        others = [variable.value for variable in model.non_trainable_variables]

        def loss_of(values):
            logits, _ = model.stateless_call(values, others, x, training=True)
            return self._loss(y, logits)

        loss, gradients = self._differentiate(loss_of, [variable.value for variable in model.trainable_variables])
        by_variable = dict(zip(map(id, model.trainable_variables), gradients))
        return float(self._host(loss)), OrderedDict(
            (name, self._host(by_variable[id(variable)]).reshape(shape))
            for name, shape, variable in self._parameters
            if id(variable) in by_variable
        )

    def readback(self):
        keras, model = self.keras, self._model
        found = OrderedDict(
            dtype=model.dtype_policy.name,
            double_allowed=self._double_allowed,
            layout=keras.config.image_data_format(),
            backend=keras.backend.backend(),
            jit_compile=bool(model.jit_compile),
            eager=bool(model.run_eagerly),
            optimiser=type(self._optimiser).__name__,
            rate=float(self._host(self._optimiser.learning_rate)),
            xla_flags=os.environ.get("XLA_FLAGS", ""),
        )
        found.update(self._read_backend())
        return found

    def halved(self, values):
        ops = self.keras.ops
        return ops.convert_to_numpy(ops.multiply(ops.convert_to_tensor(values, "float32"), 0.5))

    def save(self, path):
        path = path if path.endswith(".weights.h5") else path + ".weights.h5"
        self._model.save_weights(path)
        return path

    # --- what only the backend knows --------------------------------------------------------------------------------

    def _start_backend(self):
        """Import the framework, choose the device, set threads and precision; [(distribution, version)]."""
        raise NotImplementedError

    def _differentiate(self, function, values):
        """(function(values), its gradients)."""
        raise NotImplementedError

    def _read_backend(self):
        """Device, threads, tf32 and determinism as the framework tells them."""
        raise NotImplementedError

    def _first_variable(self):
        return next((variable.value for variable in self._model.variables), None)
