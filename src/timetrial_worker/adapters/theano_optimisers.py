"""The recipe's optimisers in Theano: expressions for the updates of one compiled function.

Rate and momentum are shared scalars, so that a schedule never compiles anything.
"""

import math
from collections import OrderedDict

import numpy as np

from .base import Unsupported


class Optimiser(object):
    """`state` holds all shared variables of the optimiser with their starting values."""

    def __init__(self, kit, recipe):
        self.kit, self.spec, self.state = kit, recipe["optimiser"], []
        self.rate = self._shared(self.spec["rate"])

    def _shared(self, value):
        variable = self.kit.theano.shared(self.kit.number(value))
        self.state.append((variable, self.kit.number(value)))
        return variable

    def _zeros(self, weight):
        return self._shared(np.zeros(weight.get_value(borrow=True).shape))

    def reset(self):
        for variable, value in self.state:
            variable.set_value(value)

    def set_rate(self, rate, momentum=None):
        if momentum is not None:
            raise ValueError("{} has no momentum to set; use sgd".format(self.spec["kind"]))
        self.rate.set_value(self.kit.number(rate))

    def updates(self, weights, gradients):
        decay, found = self.spec.get("weight_decay", 0.0), OrderedDict()
        for weight, gradient in zip(weights, gradients):
            if decay:
                gradient = gradient + self.kit.number(decay) * weight
            found.update(self.update(weight, gradient))
        return found

    def update(self, weight, gradient):
        """[(shared variable, its new value)]"""
        raise NotImplementedError


class Sgd(Optimiser):
    def update(self, weight, gradient):
        return [(weight, weight - self.rate * gradient)]

    def set_rate(self, rate, momentum=None):
        if momentum:
            raise ValueError("the recipe is built without momentum; give sgd a momentum or a momentum schedule")
        self.rate.set_value(self.kit.number(rate))


class Momentum(Optimiser):
    def __init__(self, kit, recipe):
        super(Momentum, self).__init__(kit, recipe)
        self.momentum = self._shared(self.spec.get("momentum", 0.0))

    def set_rate(self, rate, momentum=None):
        self.rate.set_value(self.kit.number(rate))
        if momentum is not None:
            self.momentum.set_value(self.kit.number(momentum))

    def update(self, weight, gradient):
        velocity = self._zeros(weight)
        new = self.momentum * velocity + gradient
        move = gradient + self.momentum * new if self.spec.get("nesterov") else new
        return [(velocity, new), (weight, weight - self.rate * move)]


class Adam(Optimiser):
    def __init__(self, kit, recipe):
        super(Adam, self).__init__(kit, recipe)
        self.steps = self._shared(0.0)
        now = self.steps + kit.number(1)
        self.lacks = [self._lack(self.spec[name], now) for name in ("beta1", "beta2")]

    def _lack(self, beta, now):
        """1 - beta ** now, exact in single precision for the first steps too."""
        return -self.kit.T.expm1(now * self.kit.number(math.log(beta))) if beta else self.kit.number(1)

    def updates(self, weights, gradients):
        found = super(Adam, self).updates(weights, gradients)
        found[self.steps] = self.steps + self.kit.number(1)
        return found

    def update(self, weight, gradient):
        number, T = self.kit.number, self.kit.T
        beta1, beta2 = self.spec["beta1"], self.spec["beta2"]
        first, second = self._zeros(weight), self._zeros(weight)
        m = number(beta1) * first + number(1.0 - beta1) * gradient
        v = number(beta2) * second + number(1.0 - beta2) * T.sqr(gradient)
        rate, scale = self.rate / self.lacks[0], number(1) / T.sqrt(self.lacks[1])
        move = rate * m / (T.sqrt(v) * scale + number(self.spec["epsilon"]))
        return [(first, m), (second, v), (weight, weight - move)]


class RmsProp(Optimiser):
    def update(self, weight, gradient):
        number, T, rho = self.kit.number, self.kit.T, self.spec["rho"]
        second = self._zeros(weight)
        v = number(rho) * second + number(1.0 - rho) * T.sqr(gradient)
        move = self.rate * gradient / (T.sqrt(v) + number(self.spec["epsilon"]))
        return [(second, v), (weight, weight - move)]


def make(kit, recipe):
    spec = recipe["optimiser"]
    kinds = {"sgd": Sgd, "adam": Adam, "rmsprop": RmsProp}
    if spec["kind"] not in kinds:
        raise Unsupported("theano has no optimiser '{}'; it has {}".format(spec["kind"], ", ".join(sorted(kinds))))
    kind = kinds[spec["kind"]]
    if kind is Sgd and (spec.get("momentum") or recipe.get("momentum_schedule")):
        kind = Momentum
    return kind(kit, recipe)
