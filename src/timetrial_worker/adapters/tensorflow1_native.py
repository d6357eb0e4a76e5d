"""TensorFlow 1 as it was written in its day: one graph, placeholders, a session, and a feed dictionary a step.

What a call runs is what it fetches: a step fetches nothing but the training operation, and the loss stays in a variable
until someone asks. A batch is fed from host memory that
begins at a multiple of 64 bytes: TensorFlow takes such an array as it is and copies any other, which for 40 MB made a
step of 0.06 ms one of 19 ms. So on a CPU nothing is copied while the clock runs, and on a GPU what must be.

`compile: xla` has XLA compile clusters of the graph; with `compile: as-written` nothing rewrites it, so that each
operation is one that stands in the program. Names that came after TensorFlow 1.12 are not used.

Every operation stands in a scope that says what it belongs to: `layer/NODE`, `loss`, `optimiser`, `head`, `input`.
"""

import logging
import os
import re
import warnings
from collections import OrderedDict, namedtuple

import numpy as np

from .. import profiled
from . import tensorflow1_layers as layers
from . import tensorflow1_optimisers as optimisers
from . import tensorflow1_profiler, tensorflow1_published
from .base import Adapter, Unsupported
from .tensorflow1_data import Loader

Batch = namedtuple("Batch", "program feed")

PRECISIONS = ("float32", "float64")
COMPILE = ("default", "xla", "as-written")
ALIGNMENT = 64
FED = "host arrays through one feed dictionary a step: copy to the device, "
INCLUDES = {
    "train": FED + "forward, loss, backward, update, wait for the device",
    "infer": FED + "forward with the last activation, copy of the output to the host",
}


def aligned(values):
    """A copy that begins where TensorFlow's own buffers would."""
    raw = np.empty(values.nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    found = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    found[...] = values
    return found


class Program(object):
    """The part of the graph for batches of one shape. What a batch is not placed for is not added to the graph.

    The number of samples is written into the graph, as the language-model tutorial of the time did. Left open, every
    sum and product of two tensors has a gradient that asks at run time whether they were of the same shape.
    """

    prediction = None

    def __init__(self, adapter, x, y=None):
        tf = adapter.tf
        self.x, self.y = x, y
        if y is None:
            self._predict(adapter, tf)
        else:
            self._train(adapter, tf)

    def _predict(self, adapter, tf):
        self.examined = adapter.outputs(self.x, layers.Mode(False, []))
        last = self.examined[adapter.network["output"]]
        with tf.name_scope("head/"):
            self.prediction = layers.activation_function(adapter.kit, {"function": adapter.network["head"]})(last)
        del self.examined["input"]

    def _train(self, adapter, tf):
        mode, weights = layers.Mode(True, []), list(adapter.trainable.values())
        adapter.kit.draws = 0  # the same numbers for whatever shape
        output = adapter.outputs(self.x, mode)[adapter.network["output"]]
        with tf.name_scope("loss/"):
            self.loss = layers.loss_function(adapter.kit, adapter.recipe)(self.y, output)
            kept = adapter.kept_loss.assign(self.loss).op
        # A weight must not be written before all that still reads it for the gradient has done so.
        found = tf.gradients(self.loss, weights, gate_gradients=True)
        found = [tf.zeros_like(w) if g is None else g for w, g in zip(weights, found)]
        self.gradients = [tf.convert_to_tensor(g) for g in found]
        with tf.name_scope("optimiser/"):
            updates = adapter.optimiser.apply(found) + mode.updates + [kept]
            with tf.control_dependencies(updates):  # the masks of this step are drawn from the count as it was
                self.train = tf.group(adapter.step_count.assign_add(1)) if adapter.kit.draws else tf.group(*updates)


def scope(name):
    """Of a node; the bar at its end has TensorFlow enter the scope again where it was left."""
    return "layer/{}/".format(re.sub(r"[^A-Za-z0-9_.\-/]", "_", name))


class TensorFlow1(Adapter):
    name = "tensorflow1"

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        self._check_settings()
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        logging.getLogger("tensorflow").setLevel(logging.ERROR)  # else it speaks of names that will be gone
        if self.compile == "xla":
            self._add_flag("--tf_xla_cpu_global_jit")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's about how TensorFlow 1 writes its dtypes
            import tensorflow as tf
        if not tf.__version__.startswith("1."):
            raise ImportError("tensorflow1 needs TensorFlow 1, and this is {}".format(tf.__version__))
        self.tf = tf
        self.config = self._make_config(self.settings.get("threads") or 0)
        self.place_name = self._choose_device()
        return OrderedDict([("tensorflow", tf.__version__), ("numpy", np.__version__)])

    def _check_settings(self):
        if self.precision not in PRECISIONS:
            message = "tensorflow1 has no precision '{}' on every operation; use float32 or float64"
            raise Unsupported(message.format(self.precision))
        self.compile = self.settings.get("compile") or "default"
        if self.compile not in COMPILE:
            message = "tensorflow1 has no compile mode '{}'; use one of {}"
            raise Unsupported(message.format(self.compile, ", ".join(COMPILE)))
        if self.settings.get("loop", "step") != "step":
            raise Unsupported("tensorflow1 without Keras has no training loop of its own; use loop: step")

    @staticmethod
    def _add_flag(flag):
        flags = os.environ.get("TF_XLA_FLAGS", "").split()
        if flag not in flags:
            os.environ["TF_XLA_FLAGS"] = " ".join(flags + [flag])

    def _make_config(self, threads):
        """All threads inside one operation: with more than one operation at a time the total would exceed them."""
        tf = self.tf
        config = tf.ConfigProto(
            intra_op_parallelism_threads=threads,
            inter_op_parallelism_threads=1 if threads else 0,
            allow_soft_placement=False,  # an operation that moves to the CPU in silence would be other work
        )
        if self.compile == "xla":
            config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_2
        if self.compile == "as-written":
            config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
            rewriting = config.graph_options.rewrite_options
            for field in rewriting.DESCRIPTOR.fields:  # a switch for each way to rewrite a graph, more in each version
                if field.enum_type is not None and field.enum_type.name == "Toggle":
                    setattr(rewriting, field.name, rewriting.OFF)
        return config

    def _choose_device(self):
        if self.device == "cpu":
            self.config.device_count["GPU"] = 0
            return "/cpu:0"
        kind, _, index = self.device.partition(":")
        if kind != "cuda" or not (index or "0").isdigit():
            raise Unsupported("tensorflow1 has no device '{}'; use cpu or cuda:N".format(self.device))
        self.config.gpu_options.visible_device_list = index or "0"
        self.config.gpu_options.allow_growth = True
        if not self.tf.test.is_gpu_available():
            message = "tensorflow1 sees no GPU for {}; it needs CUDA 10.0 and a GPU of that time"
            raise Unsupported(message.format(self.device))
        return "/gpu:0"

    def includes(self, task):
        fed = self.settings.get("feed") != "loader"
        return INCLUDES[task] if fed and self.place_name != "/cpu:0" else None

    # --- the graph --------------------------------------------------------------------------------------------------

    def build(self, network, recipe, weights):
        tf = self.tf
        self.network, self.recipe, self.programs = network, recipe, {}
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(self.place_name):
            with tf.name_scope("optimiser/"):
                self.step_count = tf.Variable(0, trainable=False, name="step_count", dtype=tf.int32)
            self.kit = layers.Kit(tf, tf.as_dtype(self.precision), self.settings.get("seed", 0), self.step_count)
            self.variables, self.trainable = OrderedDict(), OrderedDict()
            self._make_variables()
            with tf.name_scope("loss/"):
                self.kept_loss = tf.Variable(tf.zeros([], self.kit.dtype), trainable=False, name="kept")
            with tf.name_scope("optimiser/"):
                self.optimiser = optimisers.make(tf, recipe, list(self.trainable.values()))
            self.initial = tf.global_variables_initializer()
        self.session = tf.Session(graph=self.graph, config=self.config)
        self.run = self.session.run  # of what is timed; a profiler sets its own
        self.load(weights)

    def _make_variables(self):
        tf = self.tf
        for name, p in ((node["name"], p) for node in self.network["nodes"] for p in node["parameters"]):
            with tf.name_scope(scope(name)):
                zeros = tf.zeros(p["shape"], self.kit.dtype)
                variable = tf.Variable(zeros, trainable=p["trainable"], name=p["role"])
            self.variables[p["name"]] = variable
            if p["trainable"]:
                self.trainable[p["name"]] = variable

    def outputs(self, x, mode, kit=None):
        """All nodes' tensors by name, added to the graph."""
        values = OrderedDict([("input", x)])
        for node in self.network["nodes"]:
            own = {p["role"]: self.variables[p["name"]] for p in node["parameters"]}
            build = layers.known(layers.LAYERS, "layer", node["op"])
            inputs = [values[name] for name in node["inputs"]]
            with self.tf.name_scope(scope(node["name"])):
                values[node["name"]] = build(kit or self.kit, node, own, mode, *inputs)
        return values

    def load(self, weights):
        """Fed to the variables' own initialisers, and as copies: a variable may keep what it was given."""
        self.session.run(self.initial)
        initialisers = [variable.initializer for variable in self.variables.values()]
        values = [np.array(weights[name], self.precision) for name in self.variables]
        self.session.run(initialisers, {i.inputs[1]: v for i, v in zip(initialisers, values)})

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        hosts = self._hosts(x, y)
        shapes = tuple(host.shape for host in hosts)
        if shapes not in self.programs:
            with self.graph.as_default(), self.tf.device(self.place_name):
                with self.tf.name_scope("input/"):
                    holders = [self.tf.placeholder(self.tf.as_dtype(host.dtype), host.shape) for host in hosts]
                self.programs[shapes] = Program(self, *holders)
        program = self.programs[shapes]
        return Batch(program, dict(zip((program.x, program.y), hosts)))

    def _hosts(self, x, y):
        """Arrays that are fed without a copy: [x], or [x, y]."""
        tokens = self.network["input"].get("tokens")
        classes = self.recipe["loss"] == "cross_entropy" and self.recipe.get("labels", "integer") == "integer"
        found = [aligned(np.asarray(x, np.int32 if tokens else self.precision))]
        return found if y is None else found + [aligned(np.asarray(y, np.int32 if classes else self.precision))]

    def step(self, batch):
        self.run(batch.program.train, batch.feed)

    def predict(self, batch):
        if batch.program.prediction is None:  # placed for training
            batch = self.place(batch.feed[batch.program.x])
        return self.run(batch.program.prediction, batch.feed)

    def sync(self):
        """A session's run returns when all of it is done, updates included; on a GPU too."""

    def loader(self, x, y, workers, prefetch):
        return Loader(self, lambda *parts: Batch(Program(self, *parts), {}), self._hosts(x, y), workers, prefetch)

    def set_rate(self, rate, momentum=None):
        self.session.run(*self.optimiser.new_rate(rate, momentum))

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float(self.session.run(self.kept_loss))

    def output(self, predicted):
        return np.asarray(predicted)

    def weights(self):
        return OrderedDict(zip(self.variables, self.session.run(list(self.variables.values()))))

    def activations(self, x):
        batch = self.place(x)
        names, tensors = zip(*batch.program.examined.items())
        return OrderedDict(zip(names, self.session.run(list(tensors), batch.feed)))

    def gradients(self, x, y):
        """Fetches no update, so nothing changes: the count that dropout draws from neither."""
        batch = self.place(x, y)
        loss, found = self.session.run([batch.program.loss, batch.program.gradients], batch.feed)
        return float(loss), OrderedDict(zip(self.trainable, found))

    def readback(self):
        config, devices = self.config, self.session.list_devices()
        kind = "CPU" if self.place_name == "/cpu:0" else "GPU"
        jit = config.graph_options.optimizer_options.global_jit_level
        return OrderedDict([
            ("dtype", self.kit.dtype.name),
            ("device", ", ".join(d.name.rpartition("device:")[2] for d in devices if d.device_type == kind)),
            ("threads", config.intra_op_parallelism_threads or None),
            ("threads_between_operations", config.inter_op_parallelism_threads or None),
            ("tf32", False),
            ("layout", "channels_last"),
            ("compile", "xla" if jit == self.tf.OptimizerOptions.ON_2 else self.compile),
            ("mkl", bool(self.tf.pywrap_tensorflow.IsMklEnabled())),
        ])  # fmt: skip

    def memory(self):
        if self.place_name == "/cpu:0":
            return OrderedDict()
        with self.graph.as_default(), self.tf.device(self.place_name):
            peak = self.tf.contrib.memory_stats.MaxBytesInUse()
        return OrderedDict([("live_peak", int(self.session.run(peak)))])

    def profiler(self, folder, task):
        collector = tensorflow1_profiler.Collector(self, folder)
        if self.settings.get("feed") == "queue":
            collector.least_steps = tensorflow1_published.STEPS // profiled.ROUNDS
        return collector

    def evaluation(self, x, y, size):
        return tensorflow1_published.Evaluation(self, x, y, size)

    def multiplier(self, dtype, size):
        tf = self.tf
        if dtype not in PRECISIONS:
            raise Unsupported("tensorflow1 has no product of {} on every device".format(dtype))
        with tf.Graph().as_default() as graph, tf.device(self.place_name):
            a, b = (tf.Variable(tf.fill([size, size], tf.constant(1.0 / size, dtype))) for _ in range(2))
            product, initial = tf.matmul(a, b).op, tf.global_variables_initializer()
        session = tf.Session(graph=graph, config=self.config)
        session.run(initial)

        def multiply(count):
            for _ in range(count):
                session.run(product)

        return multiply

    def save(self, path):
        """A checkpoint in the folder `path`: the data, an index and the graph."""
        os.makedirs(path, exist_ok=True)
        with self.graph.as_default():
            self.tf.train.Saver(list(self.variables.values())).save(self.session, os.path.join(path, "weights"))
        return path
