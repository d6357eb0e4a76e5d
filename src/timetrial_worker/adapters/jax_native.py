"""JAX without a layer library: a dict of arrays, one jitted and donated function a step, one a prediction.

XLA on CPU has no setter for threads: it sizes its pool once, when the client is made, from PJRT_NPROC (NPROC in older
releases), so `start` sets those before the import. `--xla_cpu_multi_thread_eigen=false` leaves a pool of all cores.
"""

import math
import os
from collections import OrderedDict

import numpy as np

from timetrial_worker.adapters import jax_layers, scopes
from timetrial_worker.adapters.base import Adapter, Unsupported
from timetrial_worker.adapters.jax_profiler import JaxCollector

# What weights are kept in, and what the layers compute in.
PRECISIONS = {
    "float32": ("float32", "float32"),
    "float64": ("float64", "float64"),
    "bfloat16": ("float32", "bfloat16"),
}
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


# --- losses ---------------------------------------------------------------------------------------------------------


def _cross_entropy(logits, y):
    from jax import nn

    log_p = nn.log_softmax(logits)
    labels = y if y.ndim == logits.ndim else nn.one_hot(y, logits.shape[-1], dtype=logits.dtype)
    return -(labels * log_p).sum(axis=-1).mean()


def _binary_cross_entropy(logits, y):
    from jax import nn

    return (nn.softplus(logits) - logits * y).mean()


def _mse(values, y):
    difference = values - y
    return (difference * difference).mean()


def _mae(values, y):
    return abs(values - y).mean()


LOSSES = {"binary_cross_entropy": _binary_cross_entropy, "cross_entropy": _cross_entropy, "mae": _mae, "mse": _mse}


# --- optimisers -----------------------------------------------------------------------------------------------------
# Each returns the names of its slots (arrays the size of the weight, in tuples) and
# `update(w, g, slots, rates, count) -> (w, slots)`.
# `rates` is one array of what a schedule changes, (learning rate, momentum); `count` is the number of this step,
# from 1, or None where it is not kept.


def _sgd(recipe):
    nesterov = recipe["optimiser"]["nesterov"]
    if not (recipe["optimiser"]["momentum"] or recipe.get("momentum_schedule")):
        return (), lambda w, g, slots, rates, count: (w - rates[0] * g, ())

    def update(w, g, slots, rates, count):
        v = rates[1] * slots[0] + g
        move = g + rates[1] * v if nesterov else v
        return w - rates[0] * move, (v,)

    return ("velocity",), update


def _adam(recipe):
    import jax.numpy as jnp

    beta1, beta2, epsilon = (recipe["optimiser"][name] for name in ("beta1", "beta2", "epsilon"))

    def correction(beta, count):
        """1 - beta ** count, exact in float32 for the first steps too."""
        return -jnp.expm1(count * (math.log(beta) if beta else -math.inf))

    def update(w, g, slots, rates, count):
        m = beta1 * slots[0] + (1.0 - beta1) * g
        v = beta2 * slots[1] + (1.0 - beta2) * (g * g)
        rate = rates[0] / correction(beta1, count)
        scale = 1.0 / jnp.sqrt(correction(beta2, count))
        return w - rate * m / (jnp.sqrt(v) * scale + epsilon), (m, v)

    return ("first", "second"), update


def _rmsprop(recipe):
    import jax.numpy as jnp

    rho, epsilon = recipe["optimiser"]["rho"], recipe["optimiser"]["epsilon"]

    def update(w, g, slots, rates, count):
        v = rho * slots[0] + (1.0 - rho) * (g * g)
        return w - rates[0] * g / (jnp.sqrt(v) + epsilon), (v,)

    return ("second",), update


OPTIMISERS = {"adam": _adam, "rmsprop": _rmsprop, "sgd": _sgd}


def _known(table, kind, name):
    if name not in table:
        raise Unsupported("jax has no {} '{}'; known: {}".format(kind, name, ", ".join(sorted(table))))
    return table[name]


def _host(array):
    """As a NumPy array of a type that NumPy itself knows."""
    values = np.asarray(array)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


class Jax(Adapter):
    name = "jax"
    layouts = ("channels_last",)
    runs_xla = True

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        self._check_settings()
        self._set_environment()
        import jax
        import jaxlib

        jax.config.update("jax_enable_x64", self.precision == "float64")
        tf32 = self.settings.get("tf32", False)
        jax.config.update("jax_default_matmul_precision", "tensorfloat32" if tf32 else "highest")
        self._jax = jax
        self._place = self._find_device()
        return OrderedDict((("jax", jax.__version__), ("jaxlib", jaxlib.__version__)))

    def _check_settings(self):
        _known(PRECISIONS, "precision", self.precision)
        _known({"default": None}, "compile mode", self.settings.get("compile") or "default")
        _known({"step": None}, "loop", self.settings.get("loop") or "step")
        kind, _, index = self.device.partition(":")
        if kind not in ("cpu", "cuda") or not (index or "0").isdigit():
            raise Unsupported("jax has no device '{}'; known: cpu, cuda:0, cuda:1 and so on".format(self.device))

    def _set_environment(self):
        """What XLA reads only once, when it starts."""
        self.add_xla_flags(self.settings.get("xla_flags"))
        if self.settings.get("threads"):
            os.environ["PJRT_NPROC"] = os.environ["NPROC"] = str(self.settings["threads"])
        if self.device == "cpu":
            os.environ["JAX_PLATFORMS"] = "cpu"
            return
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        if self.settings.get("deterministic"):
            self.add_xla_flags(DETERMINISTIC)

    def _find_device(self):
        kind, _, index = self.device.partition(":")
        try:
            return self._jax.devices(kind)[int(index or 0)]
        except (RuntimeError, IndexError):
            message = "jax finds no device '{}': install jax with its CUDA plugin and a working driver, or choose cpu"
            raise Unsupported(message.format(self.device)) from None

    def build(self, network, recipe, weights):
        self._stored, self._computed = (np.dtype(self._jax.numpy.dtype(name)) for name in PRECISIONS[self.precision])
        self._nodes = [node["name"] for node in network["nodes"]]
        self._names = [p["name"] for node in network["nodes"] for p in node["parameters"]]
        self._moving = {p["name"] for node in network["nodes"] for p in node["parameters"] if not p["trainable"]}
        self._random = any(node["op"] == "dropout" and node["attrs"]["rate"] > 0 for node in network["nodes"])
        self._forward, self._target = jax_layers.forward(network), network["output"]
        self._head = jax_layers.function(network["head"])
        self._criterion = _known(LOSSES, "loss", recipe["loss"])
        self._recipe = recipe["optimiser"]
        self._slots, self._update = _known(OPTIMISERS, "optimiser", self._recipe["kind"])(recipe)
        jit = self._jax.jit
        self._train = jit(self._train_step, donate_argnums=0)
        self._answer = jit(self._predict_step)
        self._examine = jit(self._all_outputs)
        self._differentiate = jit(self._loss_and_gradients)
        self._momentum = self._recipe.get("momentum", 0.0)
        self.set_rate(self._recipe["rate"])
        self.load(weights)

    # --- what is compiled -------------------------------------------------------------------------------------------

    def _outputs(self, params, moving, x, run):
        if self._computed != self._stored:
            params = {n: w.astype(self._computed) if w.ndim > 1 else w for n, w in params.items()}
        return self._forward(dict(moving, **params), x, run)

    def _loss_and_gradients(self, params, moving, x, y, key):
        """((loss, new moving values), gradients) in training mode."""

        def objective(params):
            run = jax_layers.Pass(training=True, key=key)
            values = self._outputs(params, moving, x, run)[self._target]
            with self._jax.named_scope(scopes.LOSS):
                return self._criterion(jax_layers.wide(values), y), run.moved

        return self._jax.value_and_grad(objective, has_aux=True)(params)

    def _train_step(self, state, x, y, rates):
        state, key = dict(state), None
        if self._random:
            random = self._jax.random
            carried, key = random.split(random.wrap_key_data(state["key"]))
            state["key"] = random.key_data(carried)
        params = state["params"]
        (loss, state["moving"]), gradients = self._loss_and_gradients(params, state["moving"], x, y, key)
        with self._jax.named_scope(scopes.OPTIMISER):
            self._apply(state, params, gradients, rates)
        return state, loss

    def _apply(self, state, params, gradients, rates):
        """New weights and slots in `state`."""
        if "count" in state:
            state["count"] = state["count"] + 1
        decay, slots = self._recipe["weight_decay"], state["slots"]
        # One dict a slot, not one tuple a weight: fewer containers to take apart and build again in each call.
        state["params"], state["slots"] = {}, tuple({} for _ in slots)
        for name, w in params.items():
            g = gradients[name] + decay * w if decay else gradients[name]
            own = tuple(slot[name] for slot in slots)
            state["params"][name], own = self._update(w, g, own, rates, state.get("count"))
            for slot, values in zip(state["slots"], own):
                slot[name] = values

    def _predict_step(self, params, moving, x):
        output = self._outputs(params, moving, x, jax_layers.Pass(training=False))[self._target]
        with self._jax.named_scope(scopes.HEAD):
            return self._head(output)

    def _all_outputs(self, params, moving, x):
        return self._outputs(params, moving, x, jax_layers.Pass(training=False))

    # --- work -------------------------------------------------------------------------------------------------------

    def _put(self, values):
        return self._jax.device_put(values, self._place)

    def _typed(self, values, floating):
        values = np.asarray(values)
        return values.astype(floating if values.dtype.kind == "f" else np.int32, copy=False)

    def place(self, x, y=None):
        return self._put((self._typed(x, self._computed), None if y is None else self._typed(y, self._stored)))

    def step(self, batch):
        self._state, self._loss = self._train(self._state, batch[0], batch[1], self._rates)

    def predict(self, batch):
        state = self._state
        self._predicted = self._answer(state["params"], state["moving"], batch[0])
        return self._predicted

    def run_steps(self, batches, first, count):
        """As the base's loop, with the state in local names: it is what one would write by hand."""
        train, rates, cycle = self._train, self._rates, len(batches)
        state, loss = self._state, self._loss
        try:
            for i in range(first, first + count):
                x, y = batches[i % cycle]
                state, loss = train(state, x, y, rates)
        finally:  # the arrays that went into a step are gone, so an interrupted loop must hand on the newest
            self._state, self._loss = state, loss

    def run_predictions(self, batches, first, count):
        answer, cycle, output = self._answer, len(batches), None
        params, moving = self._state["params"], self._state["moving"]
        for i in range(first, first + count):
            output = answer(params, moving, batches[i % cycle][0])
        self._predicted = output
        return output

    def sync(self):
        self._jax.block_until_ready((self._state, self._loss, self._predicted))

    def set_rate(self, rate, momentum=None):
        """The rates are an array that the step is given, so a new value is no new program."""
        if momentum is not None:
            self._momentum = momentum
        self._rates = self._put(np.array([rate, self._momentum], self._stored))

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float(self._loss)

    def output(self, predicted):
        return _host(predicted)

    def weights(self):
        held = dict(self._state["params"], **self._state["moving"])
        return OrderedDict((name, _host(held[name])) for name in self._names)

    def load(self, weights):
        # `np.array` copies: XLA may keep the memory that it is given, and the caller may write to his.
        held = {name: np.array(weights[name], self._stored) for name in self._names}
        params = {name: values for name, values in held.items() if name not in self._moving}
        state = {
            "params": params,
            "moving": {name: held[name] for name in self._moving},
            "slots": tuple({name: np.zeros_like(w) for name, w in params.items()} for _ in self._slots),
        }
        if self._recipe["kind"] == "adam":
            state["count"] = np.zeros((), self._stored)
        if self._random:
            random = self._jax.random
            state["key"] = random.key_data(random.key(self.settings.get("seed", 0)))
        self._state, self._loss, self._predicted = self._put(state), None, None

    def activations(self, x):
        state = self._state
        outputs = self._examine(state["params"], state["moving"], self.place(x)[0])
        return OrderedDict((name, _host(outputs[name])) for name in self._nodes)

    def gradients(self, x, y):
        x, y = self.place(x, y)
        state, key = self._state, None
        if self._random:
            key = self._jax.random.wrap_key_data(state["key"])
        (loss, _), found = self._differentiate(state["params"], state["moving"], x, y, key)
        return float(loss), OrderedDict((name, _host(found[name])) for name in self._names if name in found)

    def readback(self):
        config = self._jax.config
        found = OrderedDict()
        found["dtype"] = str(self._computed)
        found["weights_dtype"] = ", ".join(sorted({str(w.dtype) for w in self._state["params"].values()}))
        found["device"] = ", ".join(
            sorted({str(d) for w in self._state["params"].values() for d in w.devices()}) or [str(self._place)]
        )
        found["device_kind"] = self._place.device_kind
        found["threads"] = self._pool_threads()
        found["tf32"] = config.jax_default_matmul_precision != "highest"
        found["layout"] = "channels_last"
        found["xla_flags"] = os.environ.get("XLA_FLAGS", "")
        found["compile"] = "jit"
        if self._place.platform != "cpu":  # XLA has no such switch for CPU
            found["deterministic"] = DETERMINISTIC in os.environ.get("XLA_FLAGS", "").split()
        return found

    @staticmethod
    def _pool_threads():
        """Size of XLA's compute pool, counted by the names of its threads; None where the system does not show them."""
        folder = "/proc/self/task"
        if not os.path.isdir(folder):
            return None
        names = []
        for task in os.listdir(folder):
            with open(os.path.join(folder, task, "comm")) as file:
                names.append(file.read().strip())
        return sum(name == "tf_XLAEigen" for name in names) or None

    def memory(self):
        stats = self._place.memory_stats() or {}
        wanted = (("live_peak", "peak_bytes_in_use"), ("reserved_peak", "peak_pool_bytes"))
        return OrderedDict((ours, int(stats[theirs])) for ours, theirs in wanted if theirs in stats)

    def halved(self, values):
        return np.asarray(self._jax.jit(lambda x: x * np.float32(0.5))(self._put(values)))

    def multiplier(self, dtype, size):
        """Each product takes the last one's result, so that none can be left out or done beside another."""
        jax = self._jax
        a = self._put(jax.numpy.full((size, size), 1.0 / size, dtype))
        product = jax.jit(jax.numpy.matmul)

        def multiply(count):
            c = a
            for _ in range(count):
                c = product(a, c)
            jax.block_until_ready(c)

        return multiply

    def profiler(self, folder, task):
        return JaxCollector(self, self._jax, folder, task)

    def save(self, path):
        """An archive of the weights' dict: JAX itself has no file format, and its users keep the dict this way."""
        path = path if path.endswith(".npz") else path + ".npz"
        with open(path, "wb") as file:
            np.savez(file, **self.weights())
        return path
