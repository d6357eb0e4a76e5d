"""PyTorch as its documentation teaches it: eager modules, images (N, C, H, W), the training loop of its tutorials.

`compile: compiled` puts the model through torch.compile. With `bfloat16` the passes run under autocast, the weights
stay float32. `layout: channels_last` is torch's memory format of that name, for the model and its inputs; `update` is
what torch's optimisers are told as `fused` or `foreach`.
"""

import copy
import os
from collections import OrderedDict

import numpy as np

from .base import Adapter, Unsupported

torch = layers = functions = data = None  # the framework and the modules that need it, imported by `start`

_WORDS = {
    "compile": ("default", "compiled"),
    "loop": ("step",),
    "precision": ("float32", "float64", "bfloat16"),
}


class Torch(Adapter):
    name = "torch"
    traits = {"bn_variance": "unbiased"}
    layouts = ("channels_first", "channels_last")
    updates = ("foreach", "fused")

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self):
        self._check_settings()
        if self.settings.get("deterministic"):
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read once, when the device starts
        _import()
        if self.settings.get("flush") is not None:  # before there are threads: each takes it over from its maker
            torch.set_flush_denormal(self.settings["flush"])
        self._set_threads()
        self._set_precision()
        self.target = self._find_device()
        self._seed()
        return OrderedDict([("torch", torch.__version__)])

    def _check_settings(self):
        for option, words in sorted(_WORDS.items()):
            word = self.settings.get(option, words[0])
            if word not in words:
                raise Unsupported("torch has no {} '{}'; it has {}".format(option, word, ", ".join(words)))

    def _set_threads(self):
        threads = self.settings.get("threads")
        if threads:
            torch.set_num_threads(threads)
            if torch.get_num_interop_threads() != 1:  # torch lets it be set once in a process
                torch.set_num_interop_threads(1)

    def _set_precision(self):
        tf32 = bool(self.settings.get("tf32"))
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.use_deterministic_algorithms(bool(self.settings.get("deterministic")))
        self.dtype = torch.float64 if self.precision == "float64" else torch.float32

    def _find_device(self):
        kind, _, index = self.device.partition(":")
        if self.device == "cpu":
            return torch.device("cpu")
        if kind != "cuda" or not (index or "0").isdigit():
            raise Unsupported("torch cannot be placed on '{}' here: use cpu or cuda:N".format(self.device))
        present = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(index or 0) >= present:
            remedy = "install a CUDA build of torch and its driver, or use cpu"
            raise Unsupported("torch sees {} CUDA devices, so no '{}': {}".format(present, self.device, remedy))
        target = torch.device("cuda", int(index or 0))
        torch.cuda.set_device(target)
        return target

    def _seed(self):
        torch.manual_seed(self.settings.get("seed", 0))

    def build(self, network, recipe, weights):
        self.network, self.recipe = network, recipe
        self.shapes = {node["name"]: tuple(node["shape"]) for node in network["nodes"]}
        self.out_shape = self.shapes[network["output"]]
        self.model, self.modules, self.slots, self.orders = layers.assemble(network)
        head = functions.Apply(functions.activation({"function": network["head"]}, len(self.out_shape)))
        self.predictor = self.model if network["head"] == "identity" else torch.nn.Sequential(self.model, head)
        self.predictor.to(self.target, self.dtype, memory_format=self._memory_format())
        self.training = True
        self._make_passes()
        self._make_optimiser()
        self.load(weights)

    def _memory_format(self):
        return torch.channels_last if self.settings.get("layout") == "channels_last" else torch.contiguous_format

    def _make_passes(self):
        """The two functions that the laps call, under autocast where that is the precision."""
        model, predictor = self.model, self.predictor
        if self.settings.get("compile") == "compiled":
            torch.compiler.reset()  # another model's code must not count against this one's limit
            model, predictor = torch.compile(model), torch.compile(predictor)
        criterion = functions.loss_function(self.recipe["loss"], len(self.out_shape))

        def objective(x, y):
            return criterion(model(x), y)

        self._objective, self._predictor = self._in_precision(objective), self._in_precision(predictor)

    def _in_precision(self, call):
        if self.precision != "bfloat16":
            return call

        def cast(*arguments):
            with torch.autocast(self.target.type, torch.bfloat16):
                return call(*arguments)

        return cast

    def _make_optimiser(self):
        spec = self.recipe["optimiser"]
        self.trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if spec["kind"] not in _OPTIMISERS:
            raise Unsupported("torch has no optimiser '{}'".format(spec["kind"]))
        if self.trainable:
            self.optimiser = _OPTIMISERS[spec["kind"]](self.trainable, spec, **self._update(spec["kind"]))
            self._fresh_optimiser = self.optimiser.state_dict()
        else:
            self.step = _nothing_to_train

    def _update(self, kind):
        word = self.settings.get("update") or "default"
        if (kind, word) == ("rmsprop", "fused"):
            raise Unsupported("torch's RMSprop has no update: fused; it has foreach")
        return {} if word == "default" else {word: True}

    def load(self, weights):
        for name, slot in self.slots.items():
            slot.write(weights[name])
        if self.trainable:
            self.optimiser.zero_grad(set_to_none=True)
            self.optimiser.load_state_dict(self._fresh_optimiser)
        self._seed()
        self._loss = None

    # --- work -------------------------------------------------------------------------------------------------------

    def place(self, x, y=None):
        tokens = self.network["input"].get("tokens")
        placed = self._tensor(x, torch.int64 if tokens else self.dtype, self.network["input"]["shape"])
        return placed, (None if y is None else self._labels(np.asarray(y)))

    def _tensor(self, values, dtype, shape):
        placed = torch.tensor(values, dtype=dtype, device=self.target)
        if len(shape) != 3:
            return placed
        return placed.permute(0, 3, 1, 2).contiguous(memory_format=self._memory_format())

    def _labels(self, y):
        of_classes = self.recipe["loss"] == "cross_entropy"
        if of_classes and self.recipe.get("labels", "integer") == "integer":
            placed, shape = torch.tensor(y, dtype=torch.int64, device=self.target), self.out_shape[:-1]
        else:
            placed, shape = self._tensor(y, self.dtype, self.out_shape), self.out_shape
        if y.shape[1:] != shape:
            raise ValueError("labels of shape {} do not fit outputs of shape {}".format(y.shape[1:], self.out_shape))
        return placed.flatten(0, 1) if of_classes and len(self.out_shape) == 2 else placed

    def loader(self, x, y, workers, prefetch):
        """Workers make tensors in the host's memory; only this process touches the device."""
        on_host = copy.copy(self)
        on_host.target = torch.device("cpu")
        return data.Loader(data.Batches(x, y, on_host.place), self.target, workers, prefetch)

    def step(self, batch):
        if not self.training:
            self._set_training(True)
        x, y = batch
        self.optimiser.zero_grad(set_to_none=True)
        self._loss = loss = self._objective(x, y)
        loss.backward()
        self.optimiser.step()

    def predict(self, batch):
        if self.training:
            self._set_training(False)
        with torch.inference_mode():
            return self._predictor(batch[0])

    def run_predictions(self, batches, first, count):
        """As a loop of one's own: the mode is entered once, not for every prediction."""
        if self.training:
            self._set_training(False)
        predictor, cycle, output = self._predictor, len(batches), None
        with torch.inference_mode():
            for i in range(first, first + count):
                output = predictor(batches[i % cycle][0])
        return output

    def _set_training(self, training):
        """Only where the mode changes: walking over all modules takes its time."""
        self.predictor.train(training)
        self.training = training

    def sync(self):
        if self.target.type == "cuda":
            torch.cuda.synchronize(self.target)

    def set_rate(self, rate, momentum=None):
        group = self.optimiser.param_groups[0]
        group["lr"] = rate
        if momentum is not None:
            if self.recipe["optimiser"]["kind"] != "sgd":
                raise ValueError("{} has no momentum to set: use sgd".format(self.recipe["optimiser"]["kind"]))
            group["momentum"] = momentum

    # --- what the gate and the report read --------------------------------------------------------------------------

    def loss(self):
        return float("nan") if self._loss is None else self._loss.item()

    def output(self, predicted):
        return _canonical(predicted, self.out_shape, layers.AS_IS)

    def weights(self):
        return OrderedDict((name, slot.read()) for name, slot in self.slots.items())

    def activations(self, x):
        self._set_training(False)
        values = {"input": self.place(x)[0]}
        with torch.inference_mode():
            for node, module in zip(self.network["nodes"], self.modules):
                inputs = [values[name] for name in node["inputs"]]
                values[node["name"]] = self._in_precision(module)(*inputs)
        return OrderedDict(
            (name, _canonical(values[name], shape, self.orders.get(name, layers.AS_IS)))
            for name, shape in self.shapes.items()
        )

    def gradients(self, x, y):
        self._set_training(True)
        kept = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        x, y = self.place(x, y)
        devices = [self.target.index] if self.target.type == "cuda" else []
        with torch.random.fork_rng(devices):  # the next step drops what it would have dropped anyway
            loss = self._objective(x, y)
            found = dict(zip(self.trainable, torch.autograd.grad(loss, self.trainable)))
        with torch.no_grad():
            for buffer, before in kept:
                buffer.copy_(before)
        names = [p["name"] for node in self.network["nodes"] for p in node["parameters"] if p["trainable"]]
        return loss.item(), OrderedDict((name, self.slots[name].read(found.__getitem__)) for name in names)

    def readback(self):
        parameter = next(self.model.parameters(), torch.empty(0, dtype=self.dtype, device=self.target))
        gpu = parameter.device.type == "cuda"
        return OrderedDict([
            ("dtype", str(parameter.dtype).replace("torch.", "")),
            ("autocast", "bfloat16" if self.precision == "bfloat16" else None),
            ("device", str(parameter.device)),
            ("device_name", torch.cuda.get_device_name(parameter.device) if gpu else None),
            ("threads", torch.get_num_threads()),
            ("interop_threads", torch.get_num_interop_threads()),
            ("tf32", torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32),
            ("matmul_precision", torch.get_float32_matmul_precision()),
            ("layout", self._layout()),
            ("update", self.settings.get("update", "default")),
            ("compile", self.settings.get("compile", "default")),
            ("deterministic", torch.are_deterministic_algorithms_enabled()),
            ("cudnn_benchmark", torch.backends.cudnn.benchmark),
        ])  # fmt: skip

    def _layout(self):
        """Of the kernels that can tell: with one channel or one place both are the same."""
        kernels = [p for p in self.model.parameters() if p.dim() == 4]
        told = [p.is_contiguous(memory_format=torch.channels_last) for p in kernels if not _either(p)]
        last = all(told) if told else self.settings.get("layout") == "channels_last"
        return "channels_last" if last else "channels_first"

    def memory(self):
        if self.target.type != "cuda":
            return OrderedDict()
        live, reserved = torch.cuda.max_memory_allocated(self.target), torch.cuda.max_memory_reserved(self.target)
        return OrderedDict([("live_peak", live), ("reserved_peak", reserved)])

    def halved(self, values):
        return torch.from_numpy(values).to(self.target).mul(0.5).cpu().numpy()

    def mark(self):
        if self.target.type != "cuda":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first, last):
        return first.elapsed_time(last) / 1000

    def multiplier(self, dtype, size):
        a, b, c = (torch.full((size, size), 1.0 / size, dtype=getattr(torch, dtype), device=self.target) for _ in "abc")

        def multiply(count):
            for _ in range(count):
                torch.mm(a, b, out=c)
            self.sync()

        return multiply

    def profiler(self, folder, task):
        if self.settings.get("compile") == "compiled":
            raise Unsupported("torch's compiled code has lost its layers: profile with compile: default")
        from .torch_profiler import TorchCollector

        return TorchCollector(self, folder, task)

    def save(self, path):
        path = path if path.endswith(".pt") else path + ".pt"
        torch.save(self.model.state_dict(), path)
        return path


def _import():
    global torch, layers, functions, data
    import torch

    from . import torch_data as data
    from . import torch_functions as functions
    from . import torch_layers as layers


def _canonical(tensor, shape, order):
    """A native output as a float array (N, …), channels last, flat numbers in the language's order."""
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()  # NumPy has no such type
    if len(shape) == 3:
        tensor = tensor.permute(0, 2, 3, 1)
    values = np.ascontiguousarray(tensor.detach().cpu().numpy())
    return values[:, order.canonical] if len(shape) == 1 else values


def _either(kernel):
    return kernel.is_contiguous() and kernel.is_contiguous(memory_format=torch.channels_last)


def _nothing_to_train(batch):
    raise Unsupported("torch has no step for a network without trainable parameters: use a network with a dense layer")


# --- optimisers: torch's weight decay joins the gradient, as the language's does --------------------------------------


def _sgd(parameters, spec, **update):
    momentum = spec.get("momentum", 0.0)
    optimiser = torch.optim.SGD(
        parameters, lr=spec["rate"], momentum=momentum, weight_decay=spec.get("weight_decay", 0.0), **update
    )
    optimiser.param_groups[0]["nesterov"] = spec.get("nesterov", False)  # as an argument it asks for a momentum now
    return optimiser


def _adam(parameters, spec, **update):
    return torch.optim.Adam(
        parameters, lr=spec["rate"], betas=(spec["beta1"], spec["beta2"]), eps=spec["epsilon"],
        weight_decay=spec.get("weight_decay", 0.0), **update
    )  # fmt: skip


def _rmsprop(parameters, spec, **update):
    return torch.optim.RMSprop(
        parameters, lr=spec["rate"], alpha=spec["rho"], eps=spec["epsilon"],
        weight_decay=spec.get("weight_decay", 0.0), **update
    )  # fmt: skip


_OPTIMISERS = {"sgd": _sgd, "adam": _adam, "rmsprop": _rmsprop}
