"""Keras 3 on PyTorch, TensorFlow and JAX: what only one backend knows."""

import os
from collections import OrderedDict

from . import keras3_xla as xla
from .base import Unsupported
from .jax_profiler import JaxCollector
from .keras3 import Keras3
from .tensorflow_profiler import TensorFlowCollector


class KerasTorch(Keras3):
    name = "keras-torch"
    backend = "torch"
    compile_words = {"default": {}, "eager": {"jit_compile": False}, "inductor": {"jit_compile": True}}

    def _start_backend(self):
        os.environ["KERAS_TORCH_DEVICE"] = "cpu" if self._gpu is None else self.device
        if self.settings.get("deterministic"):
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read once, when the device starts
        import torch

        self.torch = torch
        if self.settings.get("flush") is not None:  # before there are threads
            torch.set_flush_denormal(self.settings["flush"])
        if self._gpu is not None:
            self._pick(range(torch.cuda.device_count()))
            torch.cuda.set_device(self._gpu)
        threads = self.settings.get("threads")
        if threads:
            torch.set_num_threads(threads)
            if torch.get_num_interop_threads() != 1:
                torch.set_num_interop_threads(1)
        tf32 = bool(self.settings.get("tf32"))
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.use_deterministic_algorithms(bool(self.settings.get("deterministic")))
        return [("torch", torch.__version__)]

    def build(self, network, recipe, weights):
        """The loss is made here, else the first `fit` does it and so draws one random number more than later ones."""
        Keras3.build(self, network, recipe, weights)
        self.network, self.recipe = network, recipe
        output = self.keras.ops.zeros((1,) + tuple(self._model.output_shape[1:]))
        integers = recipe["loss"] == "cross_entropy" and recipe["labels"] == "integer"
        labels = self.keras.ops.zeros(output.shape[:-1], "int32") if integers else output
        self._model.compute_loss(y=labels, y_pred=output)

    def sync(self):
        if self._gpu is not None:
            self.torch.cuda.synchronize(self._gpu)

    def mark(self):
        if self._gpu is None:
            return None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first, last):
        return first.elapsed_time(last) / 1000

    def _differentiate(self, function, values):
        values = [value.detach().requires_grad_() for value in values]
        loss = function(values)
        return loss, self.torch.autograd.grad(loss, values)

    def _read_backend(self):
        torch, first = self.torch, self._first_variable()
        return OrderedDict(
            device=str(first.device) if first is not None else self.device,
            threads=torch.get_num_threads(),
            interop_threads=torch.get_num_interop_threads(),
            tf32=bool(torch.backends.cuda.matmul.allow_tf32),
            deterministic=torch.are_deterministic_algorithms_enabled(),
        )

    def memory(self):
        if self._gpu is None:
            return OrderedDict()
        cuda, gpu = self.torch.cuda, self._gpu
        return OrderedDict(live_peak=cuda.max_memory_allocated(gpu), reserved_peak=cuda.max_memory_reserved(gpu))

    def profiler(self, folder, task):
        if self._compile_word == "inductor":
            raise Unsupported("torch's compiled code has lost its layers: profile with compile: default")
        from .torch_profiler import KerasTorchCollector

        return KerasTorchCollector(self, folder, task)


class KerasTensorFlow(Keras3):
    name = "keras-tensorflow"
    backend = "tensorflow"
    layouts = ("channels_last",)  # TensorFlow's kernels for a CPU have no other one
    compile_words = {
        "default": {},
        "graph": {"jit_compile": False},
        "xla": {"jit_compile": True},
        "eager": {"run_eagerly": True},
    }

    @property
    def runs_xla(self):
        return self.settings.get("compile") == "xla"

    def _start_backend(self):
        import tensorflow as tf

        self.tf = tf
        gpus = tf.config.list_physical_devices("GPU")
        chosen = [] if self._gpu is None else [self._pick(gpus)]
        if gpus:
            tf.config.set_visible_devices(chosen, "GPU")
        for gpu in chosen:
            tf.config.experimental.set_memory_growth(gpu, True)
        threads = self.settings.get("threads")
        if threads:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.experimental.enable_tensor_float_32_execution(bool(self.settings.get("tf32")))
        if self.settings.get("deterministic"):
            tf.config.experimental.enable_op_determinism()
        return [("tensorflow", tf.__version__)]

    def sync(self):
        if self._gpu is not None:
            self.tf.test.experimental.sync_devices()

    def _differentiate(self, function, values):
        values = [self.tf.identity(value) for value in values]
        with self.tf.GradientTape() as tape:
            tape.watch(values)
            loss = function(values)
        return loss, [self.tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, values)]

    def _read_backend(self):
        tf, first = self.tf, self._first_variable()
        threading = tf.config.threading
        return OrderedDict(
            device=str(first.device) if first is not None else self.device,
            threads=threading.get_intra_op_parallelism_threads(),
            interop_threads=threading.get_inter_op_parallelism_threads(),
            tf32=tf.config.experimental.tensor_float_32_execution_enabled(),
            deterministic=bool(self.settings.get("deterministic")),
        )

    def profiler(self, folder, task):
        return TensorFlowCollector(self, self.tf, folder)

    def memory(self):
        if self._gpu is None:
            return OrderedDict()
        return OrderedDict(live_peak=self.tf.config.experimental.get_memory_info("GPU:0")["peak"])


class KerasJax(Keras3):
    name = "keras-jax"
    backend = "jax"
    runs_xla = True
    compile_words = {"default": {}, "xla": {"jit_compile": True}, "eager": {"run_eagerly": True}}

    def _start_backend(self):
        xla.set_environment(self._gpu is not None, self.settings.get("threads"), self.settings.get("deterministic"))
        import jax

        self.jax = jax
        jax.config.update("jax_enable_x64", self.precision == "float64")
        jax.config.update("jax_default_matmul_precision", "tensorfloat32" if self.settings.get("tf32") else "highest")
        if self._gpu is not None:
            jax.config.update("jax_default_device", self._pick(self._gpus()))
        return [("jax", jax.__version__)]

    def _gpus(self):
        try:
            return self.jax.devices("cuda")
        except RuntimeError:  # what JAX says when there are none
            return []

    def sync(self):
        variables = self._model.variables + self._optimiser.variables
        self.jax.block_until_ready([variable.value for variable in variables])

    def _differentiate(self, function, values):
        return self.jax.value_and_grad(function)(values)

    def _read_backend(self):
        first = self._first_variable()
        return OrderedDict(
            device=str(next(iter(first.devices()))) if first is not None else self.device,
            threads=xla.pool_threads(),
            x64=bool(self.jax.config.jax_enable_x64),
            tf32=self.jax.config.jax_default_matmul_precision == "tensorfloat32",
            deterministic=self._gpu is None or xla.is_deterministic(),
        )

    def profiler(self, folder, task):
        return JaxCollector(self, self.jax, folder, task)

    def memory(self):
        if self._gpu is None:
            return OrderedDict()
        kept = self.jax.devices("cuda")[self._gpu].memory_stats() or {}
        names = {"live_peak": "peak_bytes_in_use", "reserved_peak": "peak_pool_bytes"}
        return OrderedDict((ours, kept[theirs]) for ours, theirs in names.items() if theirs in kept)
