"""TensorFlow without Keras: variables, tf.nn operations, and a training step traced once into a graph.

`compile: default` runs the graph with TensorFlow's own kernels, `compile: xla` has XLA compile it. In bfloat16 the
variables, their updates, the loss and the normalisation's statistics stay in float32; everything else is computed in
bfloat16.
"""

import os
from collections import OrderedDict, namedtuple

import numpy as np

from . import scopes
from . import tensorflow_layers as layers
from . import tensorflow_optimisers as optimisers
from .base import Adapter, Unsupported
from .tensorflow_data import Loader
from .tensorflow_profiler import TensorFlowCollector

Batch = namedtuple("Batch", "x y shapes")

KEPT = {"float32": "float32", "float64": "float64", "bfloat16": "float32"}
COMPILE = {"default": False, "xla": True}


def _batch(x, y):
    return Batch(x, y, (tuple(x.shape), None if y is None else tuple(y.shape)))


class TensorFlow(Adapter):
    name = "tensorflow"
    layouts = ("channels_last",)

    # --- life -------------------------------------------------------------------------------------------------------

    @property
    def runs_xla(self):
        return COMPILE.get(self.settings.get("compile"), False)

    def start(self):
        self._check_settings()
        self.add_xla_flags(self.settings.get("xla_flags"))
        import tensorflow as tf

        self.tf = tf
        self._set_threads(self.settings.get("threads"))
        self.place_name = self._choose_device()
        tf.config.experimental.enable_tensor_float_32_execution(bool(self.settings.get("tf32", False)))
        tf.random.set_seed(self.settings.get("seed", 0))
        if self.settings.get("deterministic"):
            tf.config.experimental.enable_op_determinism()
        return OrderedDict([("tensorflow", tf.__version__), ("numpy", np.__version__)])

    def _check_settings(self):
        if self.precision not in KEPT:
            raise Unsupported("tensorflow has no precision '{}'; use one of {}".format(self.precision, ", ".join(KEPT)))
        self.compile = self.settings.get("compile") or "default"
        if self.compile not in COMPILE:
            raise Unsupported("tensorflow has no compile mode '{}'; use default or xla".format(self.compile))
        if self.settings.get("loop", "step") != "step":
            raise Unsupported("tensorflow without Keras has no training loop of its own; use loop: step")

    def _set_threads(self, threads):
        """All threads inside one operation: with more than one operation at a time the total would exceed them."""
        if threads:
            self.tf.config.threading.set_intra_op_parallelism_threads(threads)
            self.tf.config.threading.set_inter_op_parallelism_threads(1)

    def _choose_device(self):
        """Show TensorFlow the one device that is meant, so that nothing is placed elsewhere."""
        config = self.tf.config
        if self.device == "cpu":
            config.set_visible_devices([], "GPU")
            return "/CPU:0"
        kind, _, index = self.device.partition(":")
        gpus = config.list_physical_devices("GPU")
        if kind != "cuda" or not (index or "0").isdigit():
            raise Unsupported("tensorflow has no device '{}'; use cpu or cuda:N".format(self.device))
        if int(index or 0) >= len(gpus):
            message = "tensorflow sees {} GPUs, so there is no {}; check the driver, or install tensorflow[and-cuda]"
            raise Unsupported(message.format(len(gpus), self.device))
        gpu = gpus[int(index or 0)]
        config.set_visible_devices([gpu], "GPU")
        config.experimental.set_memory_growth(gpu, True)
        return "/GPU:0"

    def build(self, network, recipe, weights):
        tf = self.tf
        with tf.device(self.place_name):
            self.generator = tf.random.Generator.from_seed(self.settings.get("seed", 0), alg="philox")
            gpu, xla = self.place_name != "/CPU:0", COMPILE[self.compile]
            self.kit = layers.Kit(tf, self.precision, KEPT[self.precision], gpu, xla, self.generator)
            self.variables = self._make_variables(network)
            self.trainable = OrderedDict((name, v) for name, v in self.variables.items() if v.trainable)
            self.nodes = [self._make_node(node) for node in network["nodes"]]
            self.last = network["output"]
            self.head = layers.activation_function(self.kit, {"function": network["head"]})
            self.criterion = layers.loss_function(self.kit, recipe)
            self.optimiser = optimisers.make(tf, recipe, self.trainable.values())
        whole_classes = recipe["loss"] == "cross_entropy" and recipe.get("labels", "integer") == "integer"
        self.x_dtype = tf.int32 if network["input"].get("tokens") else tf.as_dtype(self.precision)
        self.y_dtype = tf.int32 if whole_classes else self.kit.kept
        self._make_functions()
        self.load(weights)

    def _make_variables(self, network):
        tf = self.tf
        variables = OrderedDict()
        for node in network["nodes"]:
            for p in node["parameters"]:
                zeros = tf.zeros(p["shape"], self.kit.kept)
                variables[p["name"]] = tf.Variable(zeros, trainable=p["trainable"], name=p["name"].replace("/", "."))
        return variables

    def _make_node(self, node):
        own = {p["role"]: self.variables[p["name"]] for p in node["parameters"]}
        call = layers.known(layers.LAYERS, "layer", node["op"])(self.kit, node, own)
        return node["name"], tuple(node["inputs"]), call

    def _make_functions(self):
        """Graphs to be traced at their first use. `traced` holds them by batch shapes: calling those costs half."""

        def graph(function):
            return self.tf.function(function, autograph=False, jit_compile=COMPILE[self.compile] or None)

        self.train_graph, self.predict_graph = graph(self._train), graph(self._predict)
        self.activations_graph, self.gradients_graph = graph(self._outputs), graph(self._gradients)
        self.train_traced, self.predict_traced = {}, {}

    def load(self, weights):
        for name, variable in self.variables.items():
            variable.assign(self.tf.constant(weights[name], variable.dtype))
        self.optimiser.reset()
        self.generator.reset_from_seed(self.settings.get("seed", 0))
        self.last_loss = None

    # --- what is traced ---------------------------------------------------------------------------------------------

    def _forward(self, x, mode):
        values = OrderedDict([("input", x)])
        for name, inputs, call in self.nodes:
            with self.tf.name_scope(scopes.layer(name)):
                values[name] = call(mode, *[values[source] for source in inputs])
        return values

    def _differentiate(self, x, y, update):
        weights = list(self.trainable.values())
        with self.tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(weights)
            output = self._forward(x, layers.Mode(True, update))[self.last]
            with self.tf.name_scope(scopes.LOSS):
                loss = self.criterion(y, output)
        return loss, tape.gradient(loss, weights, unconnected_gradients=self.tf.UnconnectedGradients.ZERO)

    def _train(self, x, y):
        loss, gradients = self._differentiate(x, y, update=True)
        with self.tf.name_scope(scopes.OPTIMISER):
            self.optimiser.apply(gradients)
        return loss

    def _gradients(self, x, y):
        loss, gradients = self._differentiate(x, y, update=False)
        return loss, [self.tf.convert_to_tensor(g) for g in gradients]

    def _outputs(self, x):
        return self._forward(x, layers.Mode(False, False))

    def _predict(self, x):
        output = self._outputs(x)[self.last]
        with self.tf.name_scope(scopes.HEAD):
            return self.head(output)

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        return _batch(self._placed(x, self.x_dtype), None if y is None else self._placed(y, self.y_dtype))

    def loader(self, x, y, workers, prefetch):
        x = self._placed(x, self.x_dtype, "/CPU:0")
        y = None if y is None else self._placed(y, self.y_dtype, "/CPU:0")
        found = Loader(self.tf, x, y, self.place_name, workers, prefetch)
        return lambda picks: (_batch(*parts) for parts in found(picks))

    def _placed(self, values, dtype, where=None):
        host = dtype.as_numpy_dtype if dtype != self.tf.bfloat16 else np.float32
        with self.tf.device(where or self.place_name):
            return self.tf.cast(self.tf.constant(np.asarray(values, host)), dtype)

    def step(self, batch):
        train = self.train_traced.get(batch.shapes)
        if train is None:
            train = self.train_traced[batch.shapes] = self._trace(self.train_graph, batch.x, batch.y)
        self.last_loss = train(batch.x, batch.y)

    def predict(self, batch):
        x = batch.x
        predict = self.predict_traced.get(batch.shapes[0])
        if predict is None:
            predict = self.predict_traced[batch.shapes[0]] = self._trace(self.predict_graph, x)
        return predict(x)

    def _trace(self, graph, *arguments):
        with self.tf.device(self.place_name):
            return graph.get_concrete_function(*arguments)

    def sync(self):
        """On the CPU a graph's call returns when all of it is done, updates included; a GPU runs behind."""
        if self.place_name != "/CPU:0":
            self.tf.test.experimental.sync_devices()

    def set_rate(self, rate, momentum=None):
        self.optimiser.set_rate(rate, momentum)

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float("nan") if self.last_loss is None else float(self.last_loss)

    def output(self, predicted):
        return self.tf.cast(predicted, self.kit.kept).numpy()

    def weights(self):
        return OrderedDict((name, variable.numpy()) for name, variable in self.variables.items())

    def activations(self, x):
        x = self._placed(x, self.x_dtype)
        values = self._trace(self.activations_graph, x)(x)
        return OrderedDict((name, self.output(values[name])) for name, _, _ in self.nodes)

    def gradients(self, x, y):
        batch = self.place(x, y)
        drawn = self.tf.identity(self.generator.state)
        loss, gradients = self._trace(self.gradients_graph, batch.x, batch.y)(batch.x, batch.y)
        self.generator.reset(drawn)  # the next step drops what it would have dropped anyway
        return float(loss), OrderedDict((name, g.numpy()) for name, g in zip(self.trainable, gradients))

    def readback(self):
        tf = self.tf
        some = next(iter(self.variables.values()), self.generator.state)
        threads = tf.config.threading
        return OrderedDict([
            ("dtype", self.kit.dtype.name),
            ("variable_dtype", self.kit.kept.name),
            ("device", some.device.rpartition("device:")[2]),
            ("threads", threads.get_intra_op_parallelism_threads() or None),
            ("threads_between_operations", threads.get_inter_op_parallelism_threads() or None),
            ("tf32", tf.config.experimental.tensor_float_32_execution_enabled()),
            ("layout", "channels_last"),
            ("compile", self._compiled_as()),
            ("xla_flags", os.environ.get("XLA_FLAGS", "")),
            ("deterministic", bool(self.settings.get("deterministic"))),
        ])  # fmt: skip

    def _compiled_as(self):
        """As the traced graphs themselves are marked; before the first is traced, what was asked for."""
        graphs = list(self.train_traced.values()) + list(self.predict_traced.values())
        marks = {"xla" if g.function_def.attr["_XlaMustCompile"].b else "default" for g in graphs}
        return "+".join(sorted(marks)) or self.compile

    def memory(self):
        if self.place_name == "/CPU:0":
            return OrderedDict()
        return OrderedDict([("live_peak", self.tf.config.experimental.get_memory_info("GPU:0")["peak"])])

    def halved(self, values):
        with self.tf.device(self.place_name):
            return (self.tf.constant(values) * 0.5).numpy()

    def multiplier(self, dtype, size):
        tf = self.tf
        with tf.device(self.place_name):
            a, b = (tf.fill((size, size), tf.constant(1.0 / size, dtype)) for _ in range(2))

        def multiply(count):
            with tf.device(self.place_name):
                for _ in range(count):
                    tf.linalg.matmul(a, b)
            self.sync()

        return multiply

    def profiler(self, folder, task):
        return TensorFlowCollector(self, self.tf, folder)

    def save(self, path):
        """A checkpoint in the folder `path`: an index and the data."""
        module = self.tf.Module()
        module.parameters = {name.replace("/", "."): variable for name, variable in self.variables.items()}
        self.tf.train.Checkpoint(model=module).write(os.path.join(path, "weights"))
        return path
