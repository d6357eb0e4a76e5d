"""PyTorch under its own profiler, by itself and below Keras. Imports torch, so only `profiler` imports this module.

Layers and phases are marked by ranges, which stand in the trace beside the operations:

    step::N             around one step
    layer::NODE         a node of the network, forward; its name as in an address, for kineto escapes no characters
    phase::NAME         forward, head (the activation that only prediction applies), loss, backward, optimiser, transfer

What is marked is replaced while tracing and put back afterwards, so that a step between two traces is the step that is
timed elsewhere. torch itself marks its optimisers, its loaders and the nodes of backward. Shapes are not recorded:
that alone costs a small step a tenth. On a GPU its kernels are traced too, which was not tried.
"""

import os
from urllib.parse import quote

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile, record_function

# A tenth of the cost of `record_function`; older versions have only that.
Mark = getattr(torch._C._profiler, "_RecordFunctionFast", record_function)
_ABSENT = object()


class Collector(object):
    """Traces as chrome JSON, one file a round. A subclass says what is marked."""

    format = "kineto"

    def __init__(self, adapter, folder, task):
        self.adapter, self._folder, self._task = adapter, folder, task
        self._swaps, self._profile = Swaps(), None

    def marked(self):
        """(owner, attribute, what takes its place) while tracing."""
        raise NotImplementedError

    def on_device(self):
        raise NotImplementedError

    def start(self):
        self._swaps.make([(torch.autograd, "backward", within("phase::backward", torch.autograd.backward))])
        self._swaps.make(self.marked())
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self.on_device()
        self._profile = profile(activities=activities, profile_memory=True)
        self._profile.start()

    def step(self, number):
        return Mark("step::{}".format(number))

    def stop(self, name):
        self._profile.stop()
        self._swaps.undo()
        if name is not None:
            self._profile.export_chrome_trace(os.path.join(self._folder, name + ".json"))
        self._profile = None

    def facts(self):
        """What torch itself counts of one more step, over made-up samples: the count does not look at values."""
        from torch.utils.flop_counter import FlopCounterMode

        batch = self.adapter.place(*blank(self.adapter.network, self.adapter.recipe, self._task))
        work = self.adapter.step if self._task == "train" else self.adapter.predict
        with FlopCounterMode(display=False) as counter:
            work(batch)
        return {"flops": counter.get_total_flops(), "flops_kind": "torch's FlopCounterMode, one step"}


class TorchCollector(Collector):
    def on_device(self):
        return self.adapter.target.type == "cuda"

    def marked(self):
        adapter = self.adapter
        for node, module in zip(adapter.network["nodes"], adapter.modules):
            yield module, "forward", within(layer(node["name"]), module.forward)
        if adapter.predictor is not adapter.model:
            head = adapter.predictor[1]
            yield head, "forward", within("phase::head", head.forward)
        yield adapter, "_objective", within("phase::loss", adapter._objective)
        yield adapter, "_predictor", within("phase::forward", adapter._predictor)
        yield adapter, "place", within("phase::transfer", adapter.place)


class KerasTorchCollector(Collector):
    """Keras calls its operations through their classes, so it is there that they are marked."""

    def __init__(self, adapter, folder, task):
        super(KerasTorchCollector, self).__init__(adapter, folder, task)
        keras, self._layers, self._operations = adapter.keras, {}, {}
        for operation, name in operations_of(adapter._all_nodes, adapter._node_names):
            known = self._layers if isinstance(operation, keras.layers.Layer) else self._operations
            known[id(operation)] = Mark(layer(name))
        if adapter._inference is not adapter._model:
            self._layers[id(adapter._inference.get_layer("head"))] = Mark("phase::head")
        for model in (adapter._model, adapter._inference):
            self._layers[id(model)] = Mark("phase::forward")

    def on_device(self):
        return self.adapter._gpu is not None

    def marked(self):
        keras = self.adapter.keras
        yield keras.layers.Layer, "__call__", calls(keras.layers.Layer.__call__, self._layers)
        yield keras.Operation, "__call__", calls(keras.Operation.__call__, self._operations)
        for owner, name, phase in self._phases():
            yield owner, name, within("phase::" + phase, getattr(owner, name))

    def _phases(self):
        adapter, model, inference = self.adapter, self.adapter._model, self.adapter._inference
        yield model, "compute_loss", "loss"
        for metric in model.metrics:  # the mean of the losses, which Keras keeps always
            for name in ("reset_state", "update_state", "result"):
                yield metric, name, "loss"
        yield adapter._optimiser, "apply", "optimiser"
        # What these do beside the step itself: answers to the host, arrays of the host into batches.
        yield model, "train_on_batch", "transfer"
        yield inference, "predict_on_batch", "transfer"
        yield model, "fit", "input"
        yield inference, "predict", "input"
        yield adapter, "place", "transfer"


class Swaps(object):
    """Attributes that are replaced for a while. Those of objects go past `__setattr__`, which Keras and torch watch."""

    def __init__(self):
        self._done = []

    def make(self, replacements):
        for owner, name, value in replacements:
            self._done.append((owner, name, vars(owner).get(name, _ABSENT)))
            _put(owner, name, value)

    def undo(self):
        while self._done:
            _put(*self._done.pop())


def _put(owner, name, value):
    if isinstance(owner, type):
        setattr(owner, name, value)
    elif value is _ABSENT:
        del vars(owner)[name]
    else:
        vars(owner)[name] = value


def layer(name):
    return "layer::" + quote(name)


def within(label, call):
    mark = Mark(label)

    def marked(*arguments, **options):
        with mark:
            return call(*arguments, **options)

    return marked


def calls(original, marks):
    """A `__call__` that marks those objects that have a mark."""

    def __call__(self, *arguments, **options):
        mark = marks.get(id(self))
        if mark is None:
            return original(self, *arguments, **options)
        with mark:
            return original(self, *arguments, **options)

    return __call__


def operations_of(model, names):
    """(operation, node) of a functional model that gives every node: a node may be several operations, which are those
    on the way back from its output to what it reads."""
    known = {id(tensor) for tensor in model.inputs + model.outputs}
    for name, output in zip(names, model.outputs):
        ahead = [output]
        while ahead:
            operation, node, _ = ahead.pop()._keras_history
            yield operation, name
            ahead.extend(source for source in operation._inbound_nodes[node].input_tensors if id(source) not in known)


def blank(network, recipe, task):
    """A batch of zeros."""
    size, spec = recipe["batch"], network["input"]
    x = np.zeros((size,) + tuple(spec["shape"]), "int32" if spec["tokens"] else "float32")
    if task != "train":
        return (x,)
    shape = next(tuple(node["shape"]) for node in network["nodes"] if node["name"] == network["output"])
    if recipe["loss"] == "cross_entropy" and recipe.get("labels", "integer") == "integer":
        return x, np.zeros((size,) + shape[:-1], "int64")
    return x, np.zeros((size,) + shape, "float32")
