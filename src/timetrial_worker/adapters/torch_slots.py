"""Where the language's parameters live in a torch model, and the way there and back between the two layouts."""

import numpy as np
import torch


def same(values):
    return values


class Slot(object):
    """A parameter of the language is a tensor of a module, or rows of one. The module is asked for the tensor every
    time, since moving a module to a device replaces its buffers."""

    def __init__(self, module, attribute, inwards=same, outwards=same, rows=slice(None)):
        self.module, self.attribute, self.rows = module, attribute, rows
        self.inwards, self.outwards = inwards, outwards

    def write(self, values):
        native = np.ascontiguousarray(self.inwards(np.asarray(values)))
        with torch.no_grad():
            getattr(self.module, self.attribute)[self.rows].copy_(torch.tensor(native))

    def read(self, pick=same):
        """In canonical layout; `pick` goes from the tensor to what is wanted of it, its gradient for example."""
        tensor = pick(getattr(self.module, self.attribute)).detach()[self.rows]
        return np.array(self.outwards(tensor.cpu().numpy()))


class Stacked(object):
    """A parameter whose rows are tensors of their own."""

    def __init__(self, *slots):
        self.slots = slots

    def write(self, values):
        for slot, row in zip(self.slots, values):
            slot.write(row)

    def read(self, pick=same):
        return np.stack([slot.read(pick) for slot in self.slots])


def transposed(module, attribute, rows=slice(None)):
    return Slot(module, attribute, np.transpose, np.transpose, rows)
