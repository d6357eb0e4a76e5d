"""The recipe's optimisers in TensorFlow 1: one fused update a variable, rates in variables so that the graph stays.

The kernels are those behind `tf.train`. Adam's is given epsilon x sqrt(1 - beta2^t), which makes its formula the
recipe's. `tf.train.RMSPropOptimizer` has epsilon under the root and begins at one, so RMSProp is run as an Adam without
memory of the gradient: the same kernel, the same two slots.
"""

from .base import Unsupported


class Optimiser(object):
    """`apply` adds the updates to the graph; `scalars` is what is computed once a step."""

    slots = 0

    def __init__(self, tf, recipe, weights):
        from tensorflow.python.training import training_ops

        self.tf, self.kernels = tf, training_ops
        self.spec, self.weights = recipe["optimiser"], weights
        self.dtype = weights[0].dtype.base_dtype if weights else tf.float32
        self.rate = self._scalar(self.spec["rate"])
        self.state = [[self._zeros(w) for _ in range(self.slots)] for w in weights]

    def _scalar(self, value):
        return self.tf.Variable(self.tf.constant(value, self.dtype), trainable=False)

    def _zeros(self, weight):
        return self.tf.Variable(self.tf.zeros(weight.shape, self.dtype), trainable=False)

    def new_rate(self, rate, momentum=None):
        """What to run, and with what feed, to set them."""
        if momentum is not None:
            raise ValueError("{} has no momentum to set; use sgd".format(self.spec["kind"]))
        return self._setting([(self.rate, rate)])

    @staticmethod
    def _setting(pairs):
        initialisers = [variable.initializer for variable, _ in pairs]
        return initialisers, {i.inputs[1]: value for i, (_, value) in zip(initialisers, pairs)}

    def apply(self, gradients):
        decay, scalars, updates = self.spec.get("weight_decay", 0.0), self.scalars(), []
        for weight, gradient, slots in zip(self.weights, gradients, self.state):
            if decay:
                gradient = self.tf.convert_to_tensor(gradient) + decay * weight
            updates.append(self.update(weight, gradient, slots, scalars))
        return updates + self.finish(updates)

    def scalars(self):
        return self.rate

    def update(self, weight, gradient, slots, scalars):
        raise NotImplementedError

    def finish(self, updates):
        """What is counted once a step, after the updates."""
        return []


class Sgd(Optimiser):
    def update(self, weight, gradient, slots, rate):
        if isinstance(gradient, self.tf.IndexedSlices):  # of an embedding: only the rows that were looked up
            return self.tf.scatter_sub(weight, gradient.indices, rate * gradient.values).op
        return self.kernels.apply_gradient_descent(weight, rate, gradient).op

    def new_rate(self, rate, momentum=None):
        if momentum:
            raise ValueError("the recipe is built without momentum; give sgd a momentum or a momentum schedule")
        return self._setting([(self.rate, rate)])


class Momentum(Optimiser):
    slots = 1

    def __init__(self, tf, recipe, weights):
        super(Momentum, self).__init__(tf, recipe, weights)
        self.momentum = self._scalar(self.spec.get("momentum", 0.0))

    def new_rate(self, rate, momentum=None):
        given = [(self.rate, rate)] + ([] if momentum is None else [(self.momentum, momentum)])
        return self._setting(given)

    def update(self, weight, gradient, slots, rate):
        return self.kernels.apply_momentum(
            weight, slots[0], rate, self.tf.convert_to_tensor(gradient), self.momentum,
            use_nesterov=self.spec.get("nesterov", False),
        ).op  # fmt: skip


class _Adaptive(Optimiser):
    slots = 2

    def scalars(self):
        """beta1^t, beta2^t, rate, beta1, beta2, epsilon: in the order of the kernel."""
        return [self.tf.convert_to_tensor(value, self.dtype) for value in self.fields()]

    def fields(self):
        raise NotImplementedError

    def update(self, weight, gradient, slots, scalars):
        gradient = self.tf.convert_to_tensor(gradient)
        return self.kernels.apply_adam(weight, slots[0], slots[1], *(scalars + [gradient])).op


class Adam(_Adaptive):
    def __init__(self, tf, recipe, weights):
        super(Adam, self).__init__(tf, recipe, weights)
        self.betas = [self.spec["beta1"], self.spec["beta2"]]
        self.powers = [self._scalar(beta) for beta in self.betas]

    def fields(self):
        epsilon = self.spec["epsilon"] * self.tf.sqrt(1.0 - self.powers[1])
        return self.powers + [self.rate] + self.betas + [epsilon]

    def finish(self, updates):
        with self.tf.control_dependencies(updates):
            return [power.assign(power * beta).op for power, beta in zip(self.powers, self.betas)]


class RmsProp(_Adaptive):
    def fields(self):
        return [0.0, 0.0, self.rate, 0.0, self.spec["rho"], self.spec["epsilon"]]


def make(tf, recipe, weights):
    spec = recipe["optimiser"]
    kinds = {"sgd": Sgd, "adam": Adam, "rmsprop": RmsProp}
    if spec["kind"] not in kinds:
        message = "tensorflow1 has no optimiser '{}'; it has {}"
        raise Unsupported(message.format(spec["kind"], ", ".join(sorted(kinds))))
    kind = kinds[spec["kind"]]
    if kind is Sgd and (spec.get("momentum") or recipe.get("momentum_schedule")):
        kind = Momentum
    return kind(tf, recipe, weights)
