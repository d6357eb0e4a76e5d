"""The reference's layers over sequences (N, T, C): recurrent ones, step by step and back in time, and attention."""

import math

import numpy as np

from .reference_functions import FUNCTIONS, softmax
from .reference_ops import Op, all_but_last, rows


class _Recurrent(Op):
    """Walks a cell over time. A cell defines `start`, `step` and `step_back`; the state is a tuple, h first.

    What the inputs contribute, x W + b, is one product for all steps, and so are the gradients of all weights.
    """

    bias_row = Ellipsis  # which row of the bias belongs to the input's product

    def __init__(self, attrs):
        super(_Recurrent, self).__init__(attrs)
        self.f = FUNCTIONS[attrs["activation"]]()
        self.gate = FUNCTIONS[attrs.get("recurrent_activation", "sigmoid")]()

    def start(self, samples):
        return (np.zeros((samples, self.attrs["units"])),)

    def step(self, w, fed, state):
        """(new state, what step_back needs); `fed` is x W + b of this step."""
        raise NotImplementedError

    def step_back(self, w, kept, dstate):
        """Gradients of the old state, of `fed`, and of h U (+ its bias): (dstate, dfed, dturned)."""
        raise NotImplementedError

    def forward(self, w, inputs, mode):
        (x,) = inputs
        fed = x @ w["kernel"]
        if self.attrs["bias"]:
            fed = fed + w["bias"][self.bias_row]
        state, before, kept, outputs = self.start(len(x)), [], [], []
        for t in range(x.shape[1]):
            before.append(state[0])
            state, keep = self.step(w, fed[:, t], state)
            kept.append(keep)
            outputs.append(state[0])
        y = np.stack(outputs, axis=1) if self.attrs["all_steps"] else state[0]
        return y, (x, np.stack(before, axis=1), kept)

    def backward(self, w, cache, dy):
        x, before, kept = cache
        last = x.shape[1] - 1
        dstate = tuple(np.zeros_like(part) for part in self.start(len(x)))
        dfed, dturned = [], []
        for t in range(last, -1, -1):
            if self.attrs["all_steps"]:
                dstate = (dstate[0] + dy[:, t], *dstate[1:])
            elif t == last:
                dstate = (dy, *dstate[1:])
            dstate, at_input, at_state = self.step_back(w, kept[t], dstate)
            dfed.insert(0, at_input)
            dturned.insert(0, at_state)
        dfed, dturned = np.stack(dfed, axis=1), np.stack(dturned, axis=1)
        gradients = {"kernel": rows(x).T @ rows(dfed), "recurrent": rows(before).T @ rows(dturned)}
        if self.attrs["bias"]:
            gradients["bias"] = self.bias_gradient(dfed, dturned)
        return [dfed @ w["kernel"].T], gradients

    def bias_gradient(self, dfed, dturned):
        return rows(dfed).sum(axis=0)


class SimpleRnn(_Recurrent):
    """h = f(x W + h U + b)"""

    def step(self, w, fed, state):
        z = fed + state[0] @ w["recurrent"]
        h = self.f.forward(z)
        return (h,), (z, h)

    def step_back(self, w, kept, dstate):
        dz = self.f.backward(kept[0], kept[1], dstate[0])
        return (dz @ w["recurrent"].T,), dz, dz


class Lstm(_Recurrent):
    """Gates i, f, c, o of x W + h U + b: memory = f memory + i c;  h = o f(memory)."""

    def start(self, samples):
        return np.zeros((samples, self.attrs["units"])), np.zeros((samples, self.attrs["units"]))

    def step(self, w, fed, state):
        h, memory = state
        z = np.split(fed + h @ w["recurrent"], 4, axis=-1)
        i, f, o = (self.gate.forward(z[part]) for part in (0, 1, 3))
        c = self.f.forward(z[2])
        new = f * memory + i * c
        shown = self.f.forward(new)
        return (o * shown, new), (z, (i, f, c, o), memory, new, shown)

    def step_back(self, w, kept, dstate):
        z, (i, f, c, o), memory, new, shown = kept
        dh, dmemory = dstate
        dmemory = dmemory + self.f.backward(new, shown, dh * o)
        parts = (
            self.gate.backward(z[0], i, dmemory * c),
            self.gate.backward(z[1], f, dmemory * memory),
            self.f.backward(z[2], c, dmemory * i),
            self.gate.backward(z[3], o, dh * shown),
        )
        dz = np.concatenate(parts, axis=-1)
        return (dz @ w["recurrent"].T, dmemory * f), dz, dz


class Gru(_Recurrent):
    """Gates z, r and candidate c = f(x W + b0 + r (h U + b1)): h = z h + (1 - z) c. The reset follows the product."""

    bias_row = 0

    def step(self, w, fed, state):
        (h,) = state
        turned = h @ w["recurrent"]
        if self.attrs["bias"]:
            turned = turned + w["bias"][1]
        fed, turned = np.split(fed, 3, axis=-1), np.split(turned, 3, axis=-1)
        before_z, before_r = fed[0] + turned[0], fed[1] + turned[1]
        z, r = self.gate.forward(before_z), self.gate.forward(before_r)
        before_c = fed[2] + r * turned[2]
        c = self.f.forward(before_c)
        return (z * h + (1.0 - z) * c,), (h, (before_z, before_r, before_c), (z, r, c), turned[2])

    def step_back(self, w, kept, dstate):
        h, (before_z, before_r, before_c), (z, r, c), turned = kept
        (dh,) = dstate
        dc = self.f.backward(before_c, c, dh * (1.0 - z))
        dz = self.gate.backward(before_z, z, dh * (h - c))
        dr = self.gate.backward(before_r, r, dc * turned)
        dfed, dturned = np.concatenate([dz, dr, dc], axis=-1), np.concatenate([dz, dr, dc * r], axis=-1)
        return (dh * z + dturned @ w["recurrent"].T,), dfed, dturned

    def bias_gradient(self, dfed, dturned):
        return np.stack([rows(dfed).sum(axis=0), rows(dturned).sum(axis=0)])


class Attention(Op):
    """softmax(Q K' / sqrt(C / heads)) V per head, the heads side by side, then a dense layer."""

    def _project(self, w, part, x):
        y = x @ w[part + "_kernel"]
        return y + w[part + "_bias"] if self.attrs["bias"] else y

    def _split(self, x):
        n, steps = x.shape[:2]
        return x.reshape(n, steps, self.attrs["heads"], -1).transpose(0, 2, 1, 3)

    def _join(self, x):
        n, heads, steps, width = x.shape
        return x.transpose(0, 2, 1, 3).reshape(n, steps, heads * width)

    def forward(self, w, inputs, mode):
        (x,) = inputs
        q, k, v = (self._split(self._project(w, part, x)) for part in ("query", "key", "value"))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        if self.attrs["causal"]:
            later = np.triu(np.ones(scores.shape[-2:], bool), 1)
            scores = np.where(later, -np.inf, scores)
        share = softmax(scores)
        joined = self._join(share @ v)
        return self._project(w, "output", joined), (x, q, k, v, share, joined)

    def backward(self, w, cache, dy):
        x, q, k, v, share, joined = cache
        dheads = self._split(dy @ w["output_kernel"].T)
        dshare = dheads @ v.swapaxes(-1, -2)
        dscores = share * (dshare - (dshare * share).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])
        reached = {
            "query": (x, self._join(dscores @ k)),
            "key": (x, self._join(dscores.swapaxes(-1, -2) @ q)),
            "value": (x, self._join(share.swapaxes(-1, -2) @ dheads)),
            "output": (joined, dy),
        }
        gradients = {}
        for part, (source, at) in reached.items():
            gradients[part + "_kernel"] = rows(source).T @ rows(at)
            if self.attrs["bias"]:
                gradients[part + "_bias"] = at.sum(axis=all_but_last(at))
        return [sum(reached[part][1] @ w[part + "_kernel"].T for part in ("query", "key", "value"))], gradients


OPS = {"rnn": SimpleRnn, "lstm": Lstm, "gru": Gru, "attention": Attention}
