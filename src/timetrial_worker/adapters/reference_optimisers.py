"""The reference's optimisers. Weight decay is an L2 term: it joins the gradient before anything else sees it."""

import numpy as np

from .base import Unsupported


class Optimiser(object):
    """`update` gives a weight's new value; what is remembered between steps is kept by the weight's name."""

    def __init__(self, spec, traits):
        self.spec = spec
        self.traits = traits
        self.rate = spec["rate"]
        self.steps = 0
        self.state = {}

    def set_rate(self, rate, momentum=None):
        self.rate = rate
        if momentum is not None:
            raise Unsupported("{} has no momentum to change: use sgd".format(self.spec["kind"]))

    def step(self, weights, gradients):
        """New values of all weights that have a gradient."""
        self.steps += 1
        decay = self.spec.get("weight_decay", 0.0)
        return {name: self.update(name, weights[name], g + decay * weights[name]) for name, g in gradients.items()}

    def update(self, name, w, g):
        raise NotImplementedError

    def remembered(self, name, like):
        return self.state.get(name, np.zeros_like(like))


class Sgd(Optimiser):
    """v = momentum v + g;  w = w - rate v, or with Nesterov w - rate (g + momentum v).

    With the trait `rate_inside` the velocity is in units of weights: v = momentum v - rate g;  w = w + v.
    """

    def __init__(self, spec, traits):
        super(Sgd, self).__init__(spec, traits)
        self.momentum = spec.get("momentum", 0.0)

    def set_rate(self, rate, momentum=None):
        self.rate = rate
        if momentum is not None:
            self.momentum = momentum

    def update(self, name, w, g):
        inside = self.traits.get("sgd_velocity") == "rate_inside"
        pull = -self.rate * g if inside else g
        v = self.state[name] = self.momentum * self.remembered(name, w) + pull
        move = pull + self.momentum * v if self.spec.get("nesterov") else v
        return w + move if inside else w - self.rate * move


class Adam(Optimiser):
    """w = w - rate m' / (sqrt(v') + epsilon), m and v divided by what they lack of their full weight."""

    def update(self, name, w, g):
        beta1, beta2 = self.spec["beta1"], self.spec["beta2"]
        m, v = self.state.get(name, (np.zeros_like(w), np.zeros_like(w)))
        m = beta1 * m + (1.0 - beta1) * g
        v = beta2 * v + (1.0 - beta2) * g**2
        self.state[name] = m, v
        m_full, v_full = m / (1.0 - beta1**self.steps), v / (1.0 - beta2**self.steps)
        return w - self.rate * m_full / (np.sqrt(v_full) + self.spec["epsilon"])


class RmsProp(Optimiser):
    """v = rho v + (1 - rho) g^2;  w = w - rate g / (sqrt(v) + epsilon)."""

    def update(self, name, w, g):
        rho = self.spec["rho"]
        v = self.state[name] = rho * self.remembered(name, w) + (1.0 - rho) * g**2
        return w - self.rate * g / (np.sqrt(v) + self.spec["epsilon"])


OPTIMISERS = {"sgd": Sgd, "adam": Adam, "rmsprop": RmsProp}
