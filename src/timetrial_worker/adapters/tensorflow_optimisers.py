"""The recipe's optimisers in TensorFlow: one fused update a variable, rates in variables so that no graph is remade.

The fused kernels are TensorFlow's own. Adam's is given epsilon x sqrt(1 - beta2^t), which makes its formula the
recipe's. RMSProp's has epsilon under the root, so RMSProp is run as an Adam without memory of the gradient: the same
kernel, the same two slots.
"""

from .base import Unsupported


class Optimiser(object):
    """`slots` is how many variables of its own each weight has. `apply` is called while a step is traced."""

    slots = 0

    def __init__(self, tf, recipe, weights):
        self.tf = tf
        self.spec = recipe["optimiser"]
        self.weights = list(weights)
        self.rate = self._scalar(self.spec["rate"])
        self.state = [[self._zeros(w) for _ in range(self.slots)] for w in self.weights]

    def _scalar(self, value):
        return self.tf.Variable(value, trainable=False, dtype=self.weights[0].dtype if self.weights else None)

    def _zeros(self, weight):
        return self.tf.Variable(self.tf.zeros_like(weight), trainable=False)

    def reset(self):
        self.rate.assign(self.spec["rate"])
        for slots in self.state:
            for slot in slots:
                slot.assign(self.tf.zeros_like(slot))

    def set_rate(self, rate, momentum=None):
        if momentum is not None:
            raise ValueError("{} has no momentum to set; use sgd".format(self.spec["kind"]))
        self.rate.assign(rate)

    def apply(self, gradients):
        decay = self.spec.get("weight_decay", 0.0)
        scalars = self.scalars()
        for weight, gradient, slots in zip(self.weights, gradients, self.state):
            if decay:
                gradient = self.tf.convert_to_tensor(gradient) + decay * weight
            self.update(weight, gradient, slots, scalars)
        self.finish()

    def scalars(self):
        """What is computed once a step."""
        return self.tf.convert_to_tensor(self.rate)

    def update(self, weight, gradient, slots, scalars):
        raise NotImplementedError

    def finish(self):
        """What is counted once a step."""


class Sgd(Optimiser):
    def update(self, weight, gradient, slots, rate):
        if isinstance(gradient, self.tf.IndexedSlices):  # of an embedding: only the rows that were looked up
            weight.scatter_sub(self.tf.IndexedSlices(rate * gradient.values, gradient.indices))
        else:
            self.tf.raw_ops.ResourceApplyGradientDescent(var=weight.handle, alpha=rate, delta=gradient)

    def set_rate(self, rate, momentum=None):
        if momentum:
            raise ValueError("the recipe is built without momentum; give sgd a momentum or a momentum schedule")
        self.rate.assign(rate)


class Momentum(Optimiser):
    slots = 1

    def __init__(self, tf, recipe, weights):
        super(Momentum, self).__init__(tf, recipe, weights)
        self.momentum = self._scalar(self.spec.get("momentum", 0.0))

    def reset(self):
        super(Momentum, self).reset()
        self.momentum.assign(self.spec.get("momentum", 0.0))

    def set_rate(self, rate, momentum=None):
        self.rate.assign(rate)
        if momentum is not None:
            self.momentum.assign(momentum)

    def scalars(self):
        return self.tf.convert_to_tensor(self.rate), self.tf.convert_to_tensor(self.momentum)

    def update(self, weight, gradient, slots, scalars):
        rate, momentum = scalars
        self.tf.raw_ops.ResourceApplyMomentum(
            var=weight.handle, accum=slots[0].handle, lr=rate, momentum=momentum,
            grad=self.tf.convert_to_tensor(gradient), use_nesterov=self.spec.get("nesterov", False),
        )  # fmt: skip


class _Adaptive(Optimiser):
    """`fields` are the kernel's scalars, computed once a step."""

    slots = 2

    def scalars(self):
        return {name: self.tf.convert_to_tensor(value, self.rate.dtype) for name, value in self.fields().items()}

    def fields(self):
        raise NotImplementedError

    def update(self, weight, gradient, slots, scalars):
        self.tf.raw_ops.ResourceApplyAdam(
            var=weight.handle, m=slots[0].handle, v=slots[1].handle, grad=self.tf.convert_to_tensor(gradient), **scalars
        )


class Adam(_Adaptive):
    def __init__(self, tf, recipe, weights):
        super(Adam, self).__init__(tf, recipe, weights)
        self.betas = {name: self.spec[name] for name in ("beta1", "beta2")}
        self.powers = {name: self._scalar(beta) for name, beta in self.betas.items()}

    def reset(self):
        super(Adam, self).reset()
        for name, beta in self.betas.items():
            self.powers[name].assign(beta)

    def fields(self):
        powers = {name + "_power": self.tf.convert_to_tensor(power) for name, power in self.powers.items()}
        epsilon = self.spec["epsilon"] * self.tf.sqrt(1.0 - powers["beta2_power"])
        return dict(self.betas, lr=self.rate, epsilon=epsilon, **powers)

    def finish(self):
        for name, beta in self.betas.items():
            self.powers[name].assign(self.powers[name] * beta)


class RmsProp(_Adaptive):
    def fields(self):
        adam = {"beta1": 0.0, "beta1_power": 0.0, "beta2": self.spec["rho"], "beta2_power": 0.0}
        return dict(adam, lr=self.rate, epsilon=self.spec["epsilon"])


def make(tf, recipe, weights):
    spec = recipe["optimiser"]
    kinds = {"sgd": Sgd, "adam": Adam, "rmsprop": RmsProp}
    if spec["kind"] not in kinds:
        raise Unsupported("tensorflow has no optimiser '{}'; it has {}".format(spec["kind"], ", ".join(sorted(kinds))))
    kind = kinds[spec["kind"]]
    if kind is Sgd and (spec.get("momentum") or recipe.get("momentum_schedule")):
        kind = Momentum
    return kind(tf, recipe, weights)
