"""Theano: one symbolic graph, weights and optimiser state in shared variables, one compiled function a step.

The step returns the loss and updates everything else in place. Batches stay NumPy arrays, which on a CPU is what the
compiled function works on: with `trust_input`, which Theano's documentation advises for small functions, a call takes
them as they are, neither checked nor copied. A slice of a shared variable that holds all data, the other idiom, is a
view of the same kind and costs an operation more.

A function is compiled when it is first wanted, so that a prediction does not wait for a training step. `compile:
no_gc` keeps the memory of intermediate results between calls, `fast_compile` does without C++ and most rewriting.
Theano without a C++ compiler is refused: it would run the graph in Python.
"""

import os
from collections import OrderedDict

import numpy as np

from . import flat_orders, theano_layers, theano_optimisers, theano_profiler, theano_setup
from .base import Adapter, Unsupported

PRECISIONS = ("float32", "float64")
COMPILE = {"default": {}, "no_gc": {"allow_gc": False}, "fast_compile": {"mode": "FAST_COMPILE"}}


def same(values):
    return values


def unmarked(_mark, function, *given):
    return function(*given)


class Slot(object):
    """A shared variable and the way of its values from the canonical layout and back."""

    def __init__(self, variable, inwards=same, outwards=same):
        self.variable, self.inwards, self.outwards = variable, inwards, outwards

    def write(self, values):
        native = np.asarray(self.inwards(np.asarray(values)), self.variable.dtype)
        self.variable.set_value(np.array(native, order="C"), borrow=True)

    def read(self, native):
        return np.array(self.outwards(np.asarray(native)))


def layout(op, role, order):
    """(inwards, outwards) of a parameter whose layer works in this order."""
    if op == "conv2d" and role == "kernel":
        return (lambda v: v.transpose(3, 2, 0, 1)), (lambda v: v.transpose(2, 3, 1, 0))
    return (lambda v: v[order.native]), (lambda v: v[order.canonical])


class Theano(Adapter):
    name = "theano"
    # Its running variance is divided by N - 1, and all of several equal maxima in a window get the whole gradient.
    traits = {"bn_variance": "unbiased", "max_pool_ties": "all"}
    marked, options = staticmethod(unmarked), {}  # how functions are compiled; a profiler sets its own

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        self._check_settings()
        self.blas = theano_setup.numpy_blas()
        flags = dict(theano_setup.blas_flags(self.blas), **theano_setup.thread_flags(self.settings.get("threads")))
        theano_setup.add(device="cpu", floatX=self.precision, **flags)
        import theano
        from theano.sandbox.rng_mrg import MRG_RandomStreams

        self.theano, self.streams = theano, MRG_RandomStreams
        if self.compile != "fast_compile":
            theano_setup.need_compiler(theano)
        theano.config.floatX = self.precision
        for name, value in COMPILE[self.compile].items():
            setattr(theano.config, name, value)
        return OrderedDict([("theano", theano.__version__), ("numpy", np.__version__)])

    def _check_settings(self):
        if self.device != "cpu":
            raise Unsupported("theano as packaged works on the cpu only, not on '{}'".format(self.device))
        if self.precision not in PRECISIONS:
            raise Unsupported("theano has no precision '{}'; use float32 or float64".format(self.precision))
        self.compile = self.settings.get("compile") or "default"
        if self.compile not in COMPILE:
            message = "theano has no compile mode '{}'; use one of {}"
            raise Unsupported(message.format(self.compile, ", ".join(sorted(COMPILE))))
        if self.settings.get("loop", "step") != "step":
            raise Unsupported("theano has no training loop of its own; use loop: step")

    # --- the graph --------------------------------------------------------------------------------------------------

    def build(self, network, recipe, weights):
        T = self.theano.tensor
        self.network, self.recipe, self.compiled = network, recipe, {}
        self.orders = flat_orders.flat_orders(network)
        self.random = self.streams(self._seed())
        self.kit = theano_layers.Kit(self.theano, self.precision, self.random, self.orders)
        self.slots, self.roles, self.trainable = OrderedDict(), {}, []
        for node in network["nodes"]:
            self._make_slots(node)
        tokens = network["input"].get("tokens")
        classes = recipe["loss"] == "cross_entropy" and recipe.get("labels", "integer") == "integer"
        self.x_dtype, self.y_dtype = ("int32" if flag else self.precision for flag in (tokens, classes))
        shapes = {node["name"]: node["shape"] for node in network["nodes"]}
        out = shapes.get(network["output"], network["input"]["shape"])
        self.x = T.TensorType(self.x_dtype, (False,) * (1 + len(network["input"]["shape"])))("x")
        self.y = T.TensorType(self.y_dtype, (False,) * (1 + len(out) - bool(classes)))("y")
        self.head = theano_layers.activation_function(self.kit, {"function": network["head"]})
        self.criterion = theano_layers.loss_function(self.kit, recipe)
        self.optimiser = theano_optimisers.make(self.kit, recipe)
        self.express()
        self.load(weights)

    def _seed(self):
        return self.settings.get("seed", 0) % (2**30 - 1) + 1  # the generator takes no zero

    def _make_slots(self, node):
        read = self.orders.get(node["name"]) if node["op"] != "flatten" else None
        if node["op"] == "dense":
            read = self.orders.get(node["inputs"][0])
        for p in node["parameters"]:
            absorbs = node["op"] != "dense" or p["role"] == "kernel"
            inwards, outwards = layout(node["op"], p["role"], (absorbs and read) or flat_orders.AS_IS)
            zeros = np.ascontiguousarray(inwards(np.zeros(p["shape"], self.precision)))
            slot = Slot(self.theano.shared(zeros, name=p["name"]), inwards, outwards)
            self.slots[p["name"]] = slot
            self.roles.setdefault(node["name"], {})[p["role"]] = slot.variable
            if p["trainable"]:
                self.trainable.append(p["name"])

    def express(self):
        """The symbolic outputs, loss and gradients."""
        self.examined = self._outputs(theano_layers.Mode(False, []))
        self._trained()

    def _outputs(self, mode):
        values = OrderedDict([("input", self.x)])
        for node in self.network["nodes"]:
            build = theano_layers.known(theano_layers.LAYERS, "layer", node["op"])
            inputs = [values[name] for name in node["inputs"]]
            own = self.roles.get(node["name"], {})
            values[node["name"]] = self.marked("forward " + node["name"], build, self.kit, node, own, mode, *inputs)
        return values

    def _trained(self):
        mode = theano_layers.Mode(True, [])
        output = self._outputs(mode)[self.network["output"]]
        self.batch_loss = self.marked("loss", self.criterion, self.y, output)
        self.found_gradients, self.moved = self.marked("backward", self._differentiated), mode.updates

    def _differentiated(self):
        weights = [self.slots[name].variable for name in self.trainable]
        return self.theano.tensor.grad(self.batch_loss, weights, disconnected_inputs="ignore")

    def _function(self, name, inputs, outputs, **options):
        """Compiled at the first use. Inputs are trusted: `place` has made them of the right type."""
        if name not in self.compiled:
            theano = self.theano
            given = [theano.In(variable, borrow=True) for variable in inputs]
            made = theano.function(given, outputs, on_unused_input="ignore", **dict(self.options, **options))
            made.trust_input = True
            self.compiled[name] = made
        return self.compiled[name]

    def _step_function(self):
        if "step" not in self.compiled:
            weights = [self.slots[name].variable for name in self.trainable]
            updates = self.marked("optimiser", self.optimiser.updates, weights, self.found_gradients)
            updates.update(self.moved)
            loss = self.theano.Out(self.batch_loss, borrow=True)
            self._function("step", [self.x, self.y], loss, updates=updates)
        return self.compiled["step"]

    def _predict_function(self):
        last = self.marked("forward", self.head, self.examined[self.network["output"]])
        return self._function("predict", [self.x], last)

    def function_of(self, name):
        return self._step_function() if name == "step" else self._predict_function()

    def load(self, weights):
        for name, slot in self.slots.items():
            slot.write(weights[name])
        self.optimiser.reset()
        self.random.seed(self._seed())
        self.last_loss = float("nan")

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        x = np.asarray(x, self.x_dtype)
        x = np.array(x.transpose(0, 3, 1, 2) if x.ndim == 4 else x, order="C")
        return x, (None if y is None else np.array(y, self.y_dtype, order="C"))

    def step(self, batch):
        self.last_loss = self._step_function()(batch[0], batch[1])

    def predict(self, batch):
        return (self.compiled.get("predict") or self._predict_function())(batch[0])

    def run_steps(self, batches, first, count):
        step, cycle, loss = self._step_function(), len(batches), self.last_loss
        for i in range(first, first + count):
            loss = step(*batches[i % cycle])
        self.last_loss = loss

    def sync(self):
        """A compiled function returns when all of it is done, updates included."""

    def set_rate(self, rate, momentum=None):
        self.optimiser.set_rate(rate, momentum)

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float(self.last_loss)

    def output(self, predicted):
        """A network that ends with an image keeps its channels first until here."""
        return self._canonical(self.network["output"], predicted)

    def _canonical(self, name, values):
        values = np.array(values)
        if values.ndim == 4:
            return np.ascontiguousarray(values.transpose(0, 2, 3, 1))
        return values[:, self.orders[name].canonical] if name in self.orders else values

    def weights(self):
        return OrderedDict((name, slot.read(slot.variable.get_value())) for name, slot in self.slots.items())

    def activations(self, x):
        names = [name for name in self.examined if name != "input"]
        examine = self._function("activations", [self.x], [self.examined[name] for name in names])
        return OrderedDict((name, self._canonical(name, v)) for name, v in zip(names, examine(self.place(x)[0])))

    def gradients(self, x, y):
        """`no_default_updates`: the dropout's stream stays where it is."""
        outputs = [self.batch_loss] + self.found_gradients
        found = self._function("gradients", [self.x, self.y], outputs, no_default_updates=True)(*self.place(x, y))
        return float(found[0]), OrderedDict((n, self.slots[n].read(v)) for n, v in zip(self.trainable, found[1:]))

    def readback(self):
        config = self.theano.config
        linked = self.blas if self.blas and theano_setup.link(self.blas) == config.blas.ldflags else None
        reused, compiled = self._modules()
        return OrderedDict([
            ("dtype", config.floatX),
            ("device", config.device),
            ("threads", int(os.environ.get("OMP_NUM_THREADS") or 0) or None),
            ("openmp", bool(config.openmp)),
            ("blas", config.blas.ldflags or "through NumPy"),
            ("blas_threads", theano_setup.blas_threads(linked)),
            ("layout", "channels_first"),
            ("compile", self.compile),
            ("optimizer", config.optimizer),
            ("linker", config.linker),
            ("cxx", config.cxx),
            ("modules_compiled", compiled),
            ("modules_reused", reused),
        ])  # fmt: skip

    def _modules(self):
        """How many C++ modules lay on disk already and how many were compiled: without it a first step says little."""
        _, reused, compiled = self.theano.gof.cc.get_module_cache().stats
        return reused, compiled

    def multiplier(self, dtype, size):
        theano = self.theano
        if dtype not in PRECISIONS:
            raise Unsupported("theano has no {}".format(dtype))
        a, b, c = (theano.shared(np.full((size, size), 1.0 / size, dtype)) for _ in range(3))
        product = theano.function([], [], updates=[(c, theano.tensor.dot(a, b))])
        return lambda count: product.fn(n_calls=count)

    def profiler(self, folder, task):
        return theano_profiler.Collector(self, folder, task)

    def save(self, path):
        """An archive of the weights' values: Theano's documentation advises arrays over pickled functions."""
        path = path if path.endswith(".npz") else path + ".npz"
        np.savez(path, **self.weights())
        return path
