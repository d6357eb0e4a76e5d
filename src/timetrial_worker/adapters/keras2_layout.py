"""Where the language's parameters live in a Keras 2 model, and how images lie in it.

Theano and CNTK want channels first. A flattened image then has its numbers in another order than the language's; the
dense kernels behind it absorb that order, so that nothing is transposed while the clock runs.
"""

import numpy as np

from .flat_orders import AS_IS, Order

TURNED = Order(*[(slice(None, None, -1), slice(None, None, -1))] * 2)  # rows and columns of a kernel, back to front


class Slot(object):
    """One parameter of the language: the variable that holds it, and the order of its numbers there. `order` picks
    along its first axes: permuted rows behind flattened images, or kernels that are turned around."""

    def __init__(self, name, variable, shape, order=AS_IS):
        self.name, self.variable, self.shape, self.order = name, variable, tuple(shape), order

    def native(self, values, dtype):
        return np.ascontiguousarray(np.asarray(values, dtype).reshape(self.shape)[self.order.native])

    def canonical(self, values, dtype):
        return np.array(np.asarray(values, dtype).reshape(self.shape)[self.order.canonical])


def image_to_native(array, first):
    return np.ascontiguousarray(array.transpose(0, 3, 1, 2)) if first else array


def image_to_canonical(array, first):
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if first else array
