"""The language's layers as torch modules, images in torch's own layout (N, C, H, W).

One builder a layer: `BUILDERS[op](node, order)` gives the module and where each of its parameters lives. Imports torch,
so only the adapter's `start` imports this module.
"""

from functools import partial, reduce

import torch
import torch.nn.functional as F
from torch import nn

from . import torch_sequences as sequences
from .base import Unsupported
from .flat_orders import AS_IS, flat_orders
from .torch_functions import Apply, activation
from .torch_slots import Slot, transposed

# --- dense and convolution --------------------------------------------------------------------------------------------


def _dense(node, order):
    module = nn.Linear(node["in_shapes"][0][-1], node["attrs"]["units"], bias=node["attrs"]["bias"])
    kernel = Slot(module, "weight", lambda v: v[order.native].T, lambda v: v.T[order.canonical])
    return module, {"kernel": kernel, "bias": Slot(module, "bias")}


def _conv2d(node, order):
    attrs, channels = node["attrs"], node["in_shapes"][0][2]
    window, stride = tuple(attrs["kernel"]), tuple(attrs["stride"])
    padding = _before(attrs) if _counts(node, window) == list(node["shape"][:2]) else None
    module = nn.Conv2d(channels, attrs["filters"], window, stride, padding or (0, 0), bias=attrs["bias"])
    kernel = Slot(module, "weight", lambda v: v.transpose(3, 2, 0, 1), lambda v: v.transpose(2, 3, 1, 0))
    slots = {"kernel": kernel, "bias": Slot(module, "bias")}
    return (module if padding else _padded(attrs, 0.0, module)), slots


def _before(attrs):
    return tuple(before for before, _ in attrs["pads"])


def _sides(attrs):
    """Left, right, top, bottom: torch names the last axis first."""
    (top, bottom), (left, right) = attrs["pads"]
    return left, right, top, bottom


def _padded(attrs, value, module):
    return nn.Sequential(nn.ConstantPad2d(_sides(attrs), value), module)


def _counts(node, window, ceil=False):
    """Places of the window where the padding before is also put after. What is the same for both is the window's
    every place, so if there are as many as the network wants, torch's symmetric padding computes the same."""
    counts, attrs = [], node["attrs"]
    for size, length, step, before in zip(node["in_shapes"][0], window, attrs["stride"], _before(attrs)):
        reach = size + 2 * before - length
        count = (-(-reach // step) if ceil else reach // step) + 1
        counts.append(count - 1 if ceil and (count - 1) * step >= size + before else count)
    return counts


# --- pooling ----------------------------------------------------------------------------------------------------------


def _pool_options(node):
    """The padding with which torch's pooling has the network's places, or None where it must be padded by hand."""
    window = node["attrs"]["window"]
    padding = _before(node["attrs"])
    if all(2 * before <= length for before, length in zip(padding, window)):
        for ceil in (False, True):
            if _counts(node, window, ceil) == list(node["shape"][:2]):
                return {"padding": padding, "ceil_mode": ceil}
    return None


def _max_pool(node, order):
    attrs, options = node["attrs"], _pool_options(node)
    module = nn.MaxPool2d(tuple(attrs["window"]), tuple(attrs["stride"]), **(options or {}))
    return (module if options else _padded(attrs, float("-inf"), module)), {}


def _avg_pool(node, order):
    attrs, options = node["attrs"], _pool_options(node)
    window, stride = tuple(attrs["window"]), tuple(attrs["stride"])
    if options:
        return nn.AvgPool2d(window, stride, count_include_pad=False, **options), {}
    return PaddedAvgPool(window, stride, _sides(attrs), node["in_shapes"][0][:2]), {}


class PaddedAvgPool(nn.Module):
    """Sums over padded windows, divided by how many real values each holds."""

    def __init__(self, window, stride, sides, size):
        super(PaddedAvgPool, self).__init__()
        self.window, self.stride, self.sides = window, stride, sides
        self.register_buffer("counts", self.sums(torch.ones(1, 1, *size)), persistent=False)

    def sums(self, x):
        return F.avg_pool2d(F.pad(x, self.sides), self.window, self.stride, divisor_override=1)

    def forward(self, x):
        return self.sums(x) / self.counts


def _places(node):
    """Axes of the places of a sequence (N, T, C) or of an image (N, C, H, W)."""
    return (2, 3) if len(node["in_shapes"][0]) == 3 else (1,)


def _global_avg_pool(node, order):
    return Apply(partial(torch.mean, dim=_places(node))), {}


def _global_max_pool(node, order):
    return Apply(partial(torch.amax, dim=_places(node))), {}


# --- normalisation ----------------------------------------------------------------------------------------------------


def _batch_norm(node, order):
    kind = {1: nn.BatchNorm1d, 2: SequenceBatchNorm, 3: nn.BatchNorm2d}[len(node["shape"])]
    attrs = node["attrs"]
    module = kind(node["shape"][-1], eps=attrs["epsilon"], momentum=1.0 - attrs["momentum"])
    lives = {"gamma": "weight", "beta": "bias", "mean": "running_mean", "variance": "running_var"}
    return module, {role: _channel(module, attribute, order) for role, attribute in lives.items()}


def _layer_norm(node, order):
    kind = ImageLayerNorm if len(node["shape"]) == 3 else nn.LayerNorm
    module = kind(node["shape"][-1], eps=node["attrs"]["epsilon"])
    return module, {"gamma": _channel(module, "weight", order), "beta": _channel(module, "bias", order)}


def _channel(module, attribute, order):
    return Slot(module, attribute, lambda v: v[order.native], lambda v: v[order.canonical])


class SequenceBatchNorm(nn.BatchNorm1d):
    """Over all places of (N, T, C) at once."""

    def forward(self, x):
        return super(SequenceBatchNorm, self).forward(x.flatten(0, 1)).view_as(x)


class ImageLayerNorm(nn.LayerNorm):
    """Over the channels of each place of (N, C, H, W)."""

    def forward(self, x):
        return super(ImageLayerNorm, self).forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def _lrn(node, order):
    attrs = node["attrs"]
    width = 2 * attrs["radius"] + 1
    # torch divides alpha by the width
    return nn.LocalResponseNorm(width, alpha=attrs["alpha"] * width, beta=attrs["beta"], k=attrs["bias"]), {}


# --- activation, reshaping, merging -----------------------------------------------------------------------------------


def _activation(node, order):
    return Apply(activation(node["attrs"], len(node["shape"]))), {}


def _dropout(node, order):
    return nn.Dropout(node["attrs"]["rate"]), {}


def _flatten(node, order):
    shape = node["in_shapes"][0]
    if order is not AS_IS or len(shape) < 3 or shape[2] == 1 or shape[0] * shape[1] == 1:
        return nn.Flatten(), {}
    return Apply(lambda x: x.permute(0, 2, 3, 1).flatten(1)), {}


def _add(node, order):
    if len(node["inputs"]) == 2:
        return Apply(torch.add), {}
    return Apply(lambda *branches: reduce(torch.add, branches)), {}


def _concat(node, order):
    axis = 1 if len(node["shape"]) == 3 else -1
    return Apply(lambda *branches: torch.cat(branches, axis)), {}


# --- sequences --------------------------------------------------------------------------------------------------------


def _embedding(node, order):
    module = nn.Embedding(node["attrs"]["vocabulary"], node["attrs"]["units"])
    return module, {"table": Slot(module, "weight")}


def _positions(node, order):
    module = sequences.Positions(*node["shape"])
    return module, {"table": Slot(module, "table")}


def _attention(node, order):
    attrs, width = node["attrs"], node["shape"][1]
    module = sequences.SelfAttention(width, attrs["heads"], attrs["causal"], attrs["bias"])
    slots = {"output_kernel": transposed(module.output, "weight"), "output_bias": Slot(module.output, "bias")}
    for i, part in enumerate(("query", "key", "value")):
        rows = slice(i * width, (i + 1) * width)
        slots[part + "_kernel"] = transposed(module.joined, "weight", rows)
        slots[part + "_bias"] = Slot(module.joined, "bias", rows=rows)
    return module, slots


def _recurrent(node, order):
    return sequences.recurrent(node)


BUILDERS = {
    "activation": _activation,
    "add": _add,
    "attention": _attention,
    "avg_pool": _avg_pool,
    "batch_norm": _batch_norm,
    "concat": _concat,
    "conv2d": _conv2d,
    "dense": _dense,
    "dropout": _dropout,
    "embedding": _embedding,
    "flatten": _flatten,
    "global_avg_pool": _global_avg_pool,
    "global_max_pool": _global_max_pool,
    "gru": _recurrent,
    "layer_norm": _layer_norm,
    "lrn": _lrn,
    "lstm": _recurrent,
    "max_pool": _max_pool,
    "positions": _positions,
    "rnn": _recurrent,
}


# --- the model --------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """Nodes that branch and join, computed in order. Which tensor is kept where is planned beforehand."""

    def __init__(self, nodes, modules):
        super(Net, self).__init__()
        self.steps = nn.ModuleList(modules)
        self.plan, self.places, self.last = plan(nodes)

    def forward(self, x):
        values = [None] * self.places
        values[0] = x
        for step, (sources, target) in zip(self.steps, self.plan):
            values[target] = step(*[values[source] for source in sources])
        return values[self.last]


def plan(nodes):
    """((sources, target) of each node, number of places, place of the output): a tensor that nobody will read any
    more leaves its place to the next one, so that it can be freed."""
    last_read = {name: i for i, node in enumerate(nodes) for name in node["inputs"]}
    lives, free, places, steps = {"input": 0}, [], 1, []
    for i, node in enumerate(nodes):
        sources = tuple(lives[name] for name in node["inputs"])
        free.extend(lives.pop(name) for name in sorted(set(node["inputs"])) if last_read[name] == i)
        if not free:
            free.append(places)
            places += 1
        lives[node["name"]] = free.pop()
        steps.append((sources, lives[node["name"]]))
    return tuple(steps), places, lives[nodes[-1]["name"]]


def assemble(network):
    """(model, [module of each node], {parameter name: slot}, {node name: order of its output})."""
    nodes, orders = network["nodes"], flat_orders(network)
    modules, slots = [], {}
    for node in nodes:
        if node["op"] not in BUILDERS:
            raise Unsupported("torch has no layer '{}'".format(node["op"]))
        ordered = node["name"] if node["op"] == "flatten" else node["inputs"][0]  # a flatten makes the order
        module, own = BUILDERS[node["op"]](node, orders.get(ordered, AS_IS))
        modules.append(module)
        slots.update((p["name"], own[p["role"]]) for p in node["parameters"])
    names = ["input"] + [node["name"] for node in nodes]
    chain = all(list(node["inputs"]) == [before] for node, before in zip(nodes, names))
    return (nn.Sequential(*modules) if chain else Net(nodes, modules)), modules, slots, orders
