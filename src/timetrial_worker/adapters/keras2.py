"""Keras 2.3 on Theano, TensorFlow 1 and CNTK: a functional model of built-in layers, as its documentation taught.

Loop "step" is `train_on_batch` and `predict_on_batch` on arrays of the host, which is all that Keras 2 takes; loop
"fit" is one `fit` or `predict`, which cuts its arrays into batches itself. Images lie as the backend likes them.
"""

import os
from collections import OrderedDict

import numpy as np

from . import keras2_layout as layout
from . import tensorflow1_profiler, theano_setup
from .base import Adapter, Unsupported
from .keras2_layers import make_nodes
from .keras2_ops import OPS
from .keras2_optimisers import make_loss, make_optimiser
from .keras3_data import Reel


class Keras2(Adapter):
    """What is the same on all backends. A subclass adds what only its backend knows."""

    backend = ""
    image_format = "channels_first"
    traits = {"sgd_velocity": "rate_inside"}
    precisions = ("float32", "float64")
    lacking = {}  # type: dict

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        self._check_settings()
        os.environ["KERAS_BACKEND"] = self.backend
        self._prepare_backend()
        import keras

        if keras.backend.backend() != self.backend:
            message = "Keras already runs on {} in this process: start {} in a fresh one"
            raise Unsupported(message.format(keras.backend.backend(), self.name))
        self.keras, self.K = keras, keras.backend
        self.K.set_floatx(self.precision)
        self.K.set_image_data_format(self.image_format)
        self._first = self.image_format == "channels_first"
        return OrderedDict([("keras", keras.__version__)] + self._start_backend())

    def _check_settings(self):
        loop, word = self.settings.get("loop") or "step", self.settings.get("compile") or "default"
        if self.device != "cpu":
            message = "{} has no device {!r}: its wheels want a CUDA of their time; use cpu"
            raise Unsupported(message.format(self.name, self.device))
        self._known(self.precisions, "precision", self.precision)
        self._known(("step", "fit"), "loop", loop)
        self._known(("default",), "compile setting", word)
        self._fit = loop == "fit"

    def _known(self, words, kind, word):
        if word not in words:
            message = "{} has no {} {!r}: use {}"
            raise Unsupported(message.format(self.name, kind, word, " or ".join(words)))

    def _seed(self):
        return int(self.settings.get("seed") or 0)

    def _threads(self):
        return int(self.settings.get("threads") or 0)

    def build(self, network, recipe, weights):
        keras = self.keras
        np.random.seed(self._seed())  # Keras 2 draws the seeds of its random layers from here
        self._fresh_session()
        ops = OPS[self.backend]()
        inputs, self._nodes, self._slots, self._orders = make_nodes(keras, ops, network, self.lacking)
        self._ranks = {node["name"]: len(node["shape"]) for node in network["nodes"]}
        self._input_is_image, self._tokens = len(network["input"]["shape"]) == 3, bool(network["input"]["tokens"])
        self._integers = recipe["loss"] == "cross_entropy" and recipe["labels"] == "integer"
        output, head = self._nodes[network["output"]], network["head"]
        if self._first and self._ranks.get(network["output"]) == 3:
            output = keras.layers.Permute((2, 3, 1), name="channels_last")(output)
        self._model = self._inference = keras.models.Model(inputs, output)
        if head != "identity":
            self._inference = keras.models.Model(inputs, keras.layers.Activation(head, name="head")(output))
        self._recipe, self._optimiser = recipe, make_optimiser(keras, recipe)
        self._model.compile(self._optimiser, make_loss(keras, ops, recipe))
        self._last, self._callback = None, self._loss_callback()
        self._reel, self._inference_reel, self._asked = Reel(), Reel(), {}
        self.load(weights)

    def _loss_callback(self):
        """`fit` tells the mean loss of all its batches; this keeps that of the last one too."""
        adapter = self

        class KeepLoss(self.keras.callbacks.Callback):
            def on_batch_end(self, batch, logs=None):
                adapter._last = logs["loss"]

        return KeepLoss()

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        return self._images(x), (None if y is None else self._labels(y))

    def _images(self, x):
        x = np.asarray(x, self._input_type())
        return np.ascontiguousarray(layout.image_to_native(x, self._first and self._input_is_image))

    def _input_type(self):
        return "int32" if self._tokens else self.precision

    def _labels(self, y):
        """Class numbers get the axis that Keras wants, and the type of the placeholder that takes them."""
        y = np.asarray(y, self.precision)
        return np.ascontiguousarray(y[..., None] if self._integers else y)

    def step(self, batch):
        if self._fit:
            self._fit_arrays(batch, len(batch[0]))
        else:
            self._last = self._model.train_on_batch(batch[0], batch[1])

    def predict(self, batch):
        if self._fit:
            return self._inference.predict(batch[0], batch_size=len(batch[0]))
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
            output = self._inference.predict(arrays[0], batch_size=reel.size)
        return output[(len(output) - 1) // reel.size * reel.size :]

    def _fit_arrays(self, arrays, size):
        self._model.fit(
            arrays[0], arrays[1], batch_size=size, epochs=1, shuffle=False, verbose=0, callbacks=[self._callback]
        )

    def fit(self, x, y=None, size=None):
        self._fit_arrays(self.place(x, y), size)

    def predict_arrays(self, x, size):
        return self.output(self._inference.predict(self._images(x), batch_size=size))

    def sync(self):
        """Every call of Keras 2 brings its result, the loss or the prediction, back to the host; on a CPU the updates
        of the same call are done by then."""

    def set_rate(self, rate, momentum=None):
        self.K.set_value(self._optimiser.learning_rate, rate)
        if momentum is None:
            return
        if not hasattr(self._optimiser, "momentum"):
            raise Unsupported("this optimiser has no momentum to change: use sgd")
        self.K.set_value(self._optimiser.momentum, momentum)

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float(np.ravel(self._last)[0])

    def output(self, predicted):
        return np.asarray(predicted, self.precision)

    def weights(self):
        values = self.K.batch_get_value([slot.variable for slot in self._slots])
        return OrderedDict((slot.name, slot.canonical(v, self.precision)) for slot, v in zip(self._slots, values))

    def load(self, weights):
        self._forget_chance()
        pairs = [(slot.variable, slot.native(weights[slot.name], self.precision)) for slot in self._slots]
        for variable in self._optimiser.weights:  # none before the first step
            pairs.append((variable, np.zeros(self.K.int_shape(variable), self.K.dtype(variable))))
        self.K.batch_set_value([(v, value.reshape(self.K.int_shape(v))) for v, value in pairs])
        options = self._recipe["optimiser"]
        self.set_rate(options["rate"], options["momentum"] if options["kind"] == "sgd" else None)

    def activations(self, x):
        names = list(self._nodes)
        values = self._ask("activations", lambda: list(self._nodes.values()), [self._images(x)], training=0)
        return OrderedDict((name, self._canonical(name, value)) for name, value in zip(names, values))

    def _canonical(self, name, values):
        values = np.asarray(values, self.precision)
        if self._ranks[name] == 3:
            return layout.image_to_canonical(values, self._first)
        return values[:, self._orders[name].canonical] if name in self._orders else values

    def gradients(self, x, y):
        found = self._differentiate(self._images(x), self._labels(y))
        slots = [slot for slot in self._slots if any(slot.variable is one for one in self._trained())]
        values = {id(variable): value for variable, value in zip(self._trained(), found[1:])}
        return float(np.ravel(found[0])[0]), OrderedDict(
            (slot.name, slot.canonical(values[id(slot.variable)], self.precision)) for slot in slots
        )

    def _trained(self):
        return self._model.trainable_weights

    def _differentiate(self, x, y):
        """[loss, gradient of each trained weight], in training mode."""
        model = self._model
        return self._ask(
            "gradients", lambda: [model.total_loss] + self._symbolic_gradients(),
            [x, y, np.ones(len(x), self.precision)], training=1,
        )  # fmt: skip

    def _symbolic_gradients(self):
        return self.K.gradients(self._model.total_loss, self._trained())

    def _ask(self, what, make_outputs, arrays, training):
        """Values of symbolic outputs, through a function that is made once a model."""
        if what not in self._asked:
            model = self._model
            inputs = list(model._feed_inputs)
            if what == "gradients":
                inputs += model._feed_targets + model._feed_sample_weights
            self._asked[what] = self.K.function(inputs + [self.K.learning_phase()], make_outputs())
        return self._asked[what](arrays + [training])

    def readback(self):
        found = OrderedDict(
            dtype=self.K.floatx(),
            device="cpu",
            layout=self.K.image_data_format(),
            backend=self.K.backend(),
            optimiser=type(self._optimiser).__name__,
            rate=float(self.K.get_value(self._optimiser.learning_rate)),
        )
        found.update(self._read_backend())
        return found

    def save(self, path):
        path = path if path.endswith(".h5") else path + ".h5"
        self._model.save_weights(path)
        return path

    # --- what only the backend knows --------------------------------------------------------------------------------

    def _prepare_backend(self):
        """What must be set before Keras imports its backend."""

    def _start_backend(self):
        """Set threads and precision; [(distribution, version)]."""
        raise NotImplementedError

    def _fresh_session(self):
        """Before the graph is made."""

    def _forget_chance(self):
        """Start the random numbers of dropout again."""

    def _read_backend(self):
        """Threads, and what else the framework tells."""
        raise NotImplementedError


class Keras2TensorFlow(Keras2):
    name = "keras2-tensorflow"
    backend = "tensorflow"
    image_format = "channels_last"  # TensorFlow's CPU kernels know no other

    def _start_backend(self):
        import tensorflow as tf

        self.tf = tf
        return [("tensorflow", tf.__version__)]

    def _fresh_session(self):
        self.K.clear_session()
        self.tf.set_random_seed(self._seed())
        self._set_session()

    def _set_session(self):
        threads = self._threads()
        words = {"intra_op_parallelism_threads": threads, "inter_op_parallelism_threads": 1} if threads else {}
        self.K.set_session(self.tf.Session(config=self.tf.ConfigProto(**words)))

    def _forget_chance(self):
        """The state of a random operation lies in its session and nowhere else, so a network with dropout gets a new
        session; its graph stays."""
        drops = any(layer.__class__.__name__ == "Dropout" for layer in self._model.layers)
        if drops and self._last is not None:
            for variable in self.tf.global_variables():
                variable._keras_initialized = False
            self.K.get_session().close()
            self._set_session()

    def profiler(self, folder, task):
        return tensorflow1_profiler.KerasCollector(self, folder, task)

    def graph_function(self, task):
        """What Keras calls for a step, made at the first one."""
        return self._model.train_function if task == "train" else self._inference.predict_function

    def _symbolic_gradients(self):
        """An embedding's gradient is a list of rows until it is asked for as a whole."""
        return [self.tf.convert_to_tensor(gradient) for gradient in Keras2._symbolic_gradients(self)]

    def _read_backend(self):
        config = self.K.get_session()._config
        return OrderedDict(
            threads=config.intra_op_parallelism_threads, interop_threads=config.inter_op_parallelism_threads
        )


class Keras2Theano(Keras2):
    name = "keras2-theano"
    backend = "theano"

    def _prepare_backend(self):
        """The same BLAS as native Theano's, so that the two differ in Keras alone."""
        blas = theano_setup.numpy_blas()
        if blas is None:
            self.lacking = {"attention": "its batched product needs a BLAS library that it can link"}
        flags = dict(theano_setup.blas_flags(blas), **theano_setup.thread_flags(self._threads()))
        theano_setup.add(device="cpu", **flags)

    def _start_backend(self):
        import theano

        theano_setup.need_compiler(theano)
        self.theano = theano
        theano.config.floatX = self.precision  # Keras has just set it to what its own file says
        return [("theano", theano.__version__)]

    def _fresh_session(self):
        self._streams = None

    def _forget_chance(self):
        """The states of random streams are shared variables in the graph."""
        if self._streams is None:
            shared = self.theano.compile.sharedvalue.SharedVariable
            parameters = {id(slot.variable) for slot in self._slots}
            found = self.theano.gof.graph.inputs([self._model.total_loss])
            streams = [v for v in found if isinstance(v, shared) and id(v) not in parameters]
            self._streams = [(stream, stream.get_value()) for stream in streams]
        for stream, first in self._streams:
            stream.set_value(first)

    def _read_backend(self):
        config = self.theano.config
        return OrderedDict(
            threads=int(os.environ.get("OMP_NUM_THREADS") or 0) or None,
            openmp=bool(config.openmp),
            blas=config.blas.ldflags or "numpy",
            mode=str(config.mode),
        )


class Keras2Cntk(Keras2):
    name = "keras2-cntk"
    backend = "cntk"
    # On CNTK, Keras brings moving statistics up to date in a second pass, once the weights have changed.
    traits = {"sgd_velocity": "rate_inside", "bn_moments": "after_update"}
    precisions = ("float32",)  # Keras' learning phase and placeholders of gradients are single, and CNTK mixes nothing

    def _start_backend(self):
        import cntk

        self.cntk = cntk
        if self._threads():
            cntk.cntk_py.set_max_num_cputhreads(self._threads())
        cntk.device.try_set_default_device(cntk.device.cpu())
        return [("cntk", cntk.__version__)]

    def _input_type(self):
        return self.precision  # CNTK knows no integers

    def _fresh_session(self):
        self.K.clear_session()
        self.cntk.cntk_py.set_fixed_random_seed(self._seed() + 1)

    def _forget_chance(self):
        """A seed that is set again starts its stream again."""
        search = self.cntk.logging.graph.depth_first_search
        drops = search(self._model.total_loss, lambda node: getattr(node, "op_name", "") == "Dropout")
        for place, node in enumerate(drops):
            node.set_attribute("rngSeed", self._seed() + 1 + place)

    def _differentiate(self, x, y):
        """CNTK's gradients are no symbols: its function is asked directly."""
        model = self._model
        feed = dict(zip(model._feed_inputs + model._feed_targets, (x, y)))
        feed[model._feed_sample_weights[0]] = np.ones(len(x), self.precision)
        self.K.learning_phase().value = np.asarray(1.0)
        loss = model.total_loss
        fed = {argument: feed[argument] for argument in loss.arguments}
        gradients, value = loss.grad(fed, wrt=self._trained(), outputs=[loss.output])
        return [value] + [gradients[variable] for variable in self._trained()]

    def _read_backend(self):
        return OrderedDict(threads=int(self.cntk.cntk_py.get_max_num_cputhreads()))
