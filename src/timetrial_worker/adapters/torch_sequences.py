"""Layers over sequences (N, T, C): recurrent ones, positions and attention."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .torch_functions import activation
from .torch_slots import Slot, Stacked, transposed


class Positions(nn.Module):
    def __init__(self, steps, width):
        super(Positions, self).__init__()
        self.table = nn.Parameter(torch.zeros(steps, width))

    def forward(self, x):
        return x + self.table


class SelfAttention(nn.Module):
    """Query, key and value come from one matrix product."""

    def __init__(self, width, heads, causal, bias):
        super(SelfAttention, self).__init__()
        self.joined = nn.Linear(width, 3 * width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)
        self.split, self.causal = (3, heads, width // heads), causal

    def forward(self, x):
        query, key, value = self.joined(x).unflatten(2, self.split).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.output(mixed.transpose(1, 2).flatten(2))


# --- recurrent layers -------------------------------------------------------------------------------------------------


def recurrent(node):
    """torch's own layer where its activations are the ones wanted, else a loop over the steps."""
    attrs = node["attrs"]
    wanted = (attrs["activation"], attrs.get("recurrent_activation", "sigmoid"))
    built_in = {"rnn": ("tanh", "relu"), "lstm": ("tanh",), "gru": ("tanh",)}[node["op"]]
    if wanted[0] in built_in and wanted[1] == "sigmoid":
        return _built_in(node)
    return _looped(node)


class Recurrence(nn.Module):
    """nn.RNN, nn.LSTM or nn.GRU, of which the outputs of all steps or the last state are handed on."""

    def __init__(self, cell, all_steps):
        super(Recurrence, self).__init__()
        self.cell, self.all_steps = cell, all_steps

    def forward(self, x):
        outputs, state = self.cell(x)
        if self.all_steps:
            return outputs
        return state[0][0] if isinstance(state, tuple) else state[0]


def _built_in(node):
    attrs, width = node["attrs"], node["in_shapes"][0][1]
    options = {"batch_first": True, "bias": attrs["bias"]}
    if node["op"] == "rnn":
        cell = nn.RNN(width, attrs["units"], nonlinearity=attrs["activation"], **options)
    else:
        cell = {"lstm": nn.LSTM, "gru": nn.GRU}[node["op"]](width, attrs["units"], **options)
    if node["op"] == "gru":
        slots = _gru_slots(cell)
    else:
        slots = {
            "kernel": transposed(cell, "weight_ih_l0"),
            "recurrent": transposed(cell, "weight_hh_l0"),
            "bias": Slot(cell, "bias_ih_l0"),
        }
        if attrs["bias"]:  # the language has one bias, torch adds a second
            nn.init.zeros_(cell.bias_hh_l0).requires_grad_(False)
    return Recurrence(cell, attrs["all_steps"]), slots


def _gru_slots(cell):
    """The language's gates are z, r, h; torch's are r, z, n."""

    def swapped(columns):
        z, r, h = np.split(columns, 3, axis=-1)
        return np.concatenate([r, z, h], axis=-1)

    def slot(attribute):
        return Slot(cell, attribute, lambda v: swapped(v).T, lambda v: swapped(v.T))

    return {
        "kernel": slot("weight_ih_l0"),
        "recurrent": slot("weight_hh_l0"),
        "bias": Stacked(slot("bias_ih_l0"), slot("bias_hh_l0")),
    }


def _looped(node):
    kind = {"rnn": RnnLoop, "lstm": LstmLoop, "gru": GruLoop}[node["op"]]
    module = kind(node["in_shapes"][0][1], node["attrs"])
    bias = Slot(module.input, "bias")
    if node["op"] == "gru":
        bias = Stacked(bias, Slot(module.recurrent, "bias"))
    kernel, inner = transposed(module.input, "weight"), transposed(module.recurrent, "weight")
    return module, {"kernel": kernel, "recurrent": inner, "bias": bias}


class Loop(nn.Module):
    """A recurrent layer step by step. The input's product is made for all steps at once."""

    gates = 1
    states = 1
    inner_bias = False

    def __init__(self, width, attrs):
        super(Loop, self).__init__()
        self.units, self.all_steps = attrs["units"], attrs["all_steps"]
        self.input = nn.Linear(width, self.gates * self.units, bias=attrs["bias"])
        self.recurrent = nn.Linear(self.units, self.gates * self.units, bias=attrs["bias"] and self.inner_bias)
        self.activation = activation({"function": attrs["activation"]})
        self.gate = activation({"function": attrs.get("recurrent_activation", "sigmoid")})

    def advance(self, given, state):
        """The next states from the step's input product and the states before; the first is the output."""
        raise NotImplementedError

    def forward(self, x):
        state, outputs = (x.new_zeros(x.shape[0], self.units),) * self.states, []
        for given in self.input(x).unbind(1):
            state = self.advance(given, state)
            outputs.append(state[0])
        return torch.stack(outputs, 1) if self.all_steps else state[0]


class RnnLoop(Loop):
    def advance(self, given, state):
        return (self.activation(given + self.recurrent(state[0])),)


class LstmLoop(Loop):
    gates = 4
    states = 2

    def advance(self, given, state):
        hidden, carried = state
        i, f, c, o = (given + self.recurrent(hidden)).chunk(4, 1)
        carried = self.gate(f) * carried + self.gate(i) * self.activation(c)
        return self.gate(o) * self.activation(carried), carried


class GruLoop(Loop):
    gates = 3
    inner_bias = True

    def advance(self, given, state):
        hidden = state[0]
        z, r, h = given.chunk(3, 1)
        inner_z, inner_r, inner_h = self.recurrent(hidden).chunk(3, 1)
        z, r = self.gate(z + inner_z), self.gate(r + inner_r)
        return (z * hidden + (1.0 - z) * self.activation(h + r * inner_h),)
