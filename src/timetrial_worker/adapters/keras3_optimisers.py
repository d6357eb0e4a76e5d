"""The recipe's optimisers on Keras 3: its own class where its formula is the recipe's, else a subclass.

Keras updates one variable at a time in `update_step`; on torch it hands all of them to `_parallel_update_step`, which
is why a formula that differs is written twice.
"""

from .base import Unsupported


def make(keras, recipe):
    options = recipe["optimiser"]
    build = OPTIMISERS.get(options["kind"])
    if build is None:
        raise Unsupported("Keras has no optimiser {!r} here: use sgd, adam or rmsprop".format(options["kind"]))
    return build(keras, options, bool(recipe.get("momentum_schedule")))


def set_momentum(optimiser, momentum):
    """From the next step on, without a new trace. The momentum must be in use from the start."""
    variable = getattr(optimiser, "momentum_now", None)
    if variable is not None:
        variable.assign(momentum)
    elif getattr(optimiser, "momentum", 0.0) and getattr(optimiser, "steers_momentum", False):
        optimiser.momentum = float(momentum) or 1e-300  # at a plain 0 Keras would not keep the velocity
    elif momentum != getattr(optimiser, "momentum", 0.0):
        raise Unsupported("the momentum cannot change on this optimiser: start sgd with a momentum above 0")


def _sgd(keras, options, scheduled):
    base = type(keras.optimizers.SGD())
    momentum = float(options["momentum"])
    if scheduled and not momentum:
        momentum = 0.5  # any start that makes Keras keep velocities; the schedule sets it before the first step
    if momentum:
        base = _steerable(keras, base)
    base = _coupled(keras, base, options["weight_decay"])
    return base(learning_rate=float(options["rate"]), momentum=momentum, nesterov=options["nesterov"])


def _adam(keras, options, scheduled):
    base = _coupled(keras, _outer_epsilon_adam(keras, type(keras.optimizers.Adam())), options["weight_decay"])
    return base(
        learning_rate=float(options["rate"]), beta_1=options["beta1"], beta_2=options["beta2"],
        epsilon=options["epsilon"],
    )  # fmt: skip


def _rmsprop(keras, options, scheduled):
    base = _coupled(keras, _outer_epsilon_rmsprop(keras, type(keras.optimizers.RMSprop())), options["weight_decay"])
    return base(learning_rate=float(options["rate"]), rho=options["rho"], epsilon=options["epsilon"])


OPTIMISERS = {"sgd": _sgd, "adam": _adam, "rmsprop": _rmsprop}


# --- where the recipe's formula is not Keras' own -------------------------------------------------------------------


def _coupled(keras, base, decay):
    """Weight decay as a part of the gradient. Keras' own shrinks the weights beside it, out of the moments' sight."""
    if not decay:
        return base
    ops = keras.ops

    class Coupled(base):
        def update_step(self, gradient, variable, learning_rate):
            whole = ops.add(gradient, ops.multiply(variable, decay))
            super(Coupled, self).update_step(whole, variable, learning_rate)

        def _parallel_update_step(self, grads, variables, learning_rate):
            import torch

            whole = torch._foreach_add(grads, [variable.value for variable in variables], alpha=decay)
            super(Coupled, self)._parallel_update_step(whole, variables, learning_rate)

    return Coupled


def _steerable(keras, base):
    """SGD whose momentum can change: Keras compiles it in as a constant, but for the eager torch backend."""
    if keras.backend.backend() == "torch":
        return type("SteerableSGD", (base,), {"steers_momentum": True})
    ops = keras.ops

    class SteerableSGD(base):
        def build(self, variables):
            if not self.built:
                first = keras.initializers.Constant(self.momentum)
                self.momentum_now = self.add_variable((), initializer=first, name="momentum_now")
            super(SteerableSGD, self).build(variables)

        def update_step(self, gradient, variable, learning_rate):
            rate, momentum = ops.cast(learning_rate, variable.dtype), ops.cast(self.momentum_now, variable.dtype)
            pull = ops.multiply(ops.cast(gradient, variable.dtype), rate)
            velocity = self.momentums[self._get_variable_index(variable)]
            self.assign(velocity, ops.subtract(ops.multiply(velocity, momentum), pull))
            if self.nesterov:
                self.assign_add(variable, ops.subtract(ops.multiply(velocity, momentum), pull))
            else:
                self.assign_add(variable, velocity)

    return SteerableSGD


def _outer_epsilon_adam(keras, base):
    """Keras adds its epsilon before the second moment is corrected; scaled by that correction it means the recipe's."""
    ops = keras.ops

    class OuterEpsilonAdam(base):
        def update_step(self, gradient, variable, learning_rate):
            dtype, index = variable.dtype, self._get_variable_index(variable)
            gradient, step = ops.cast(gradient, dtype), ops.cast(self.iterations + 1, dtype)
            beta1, beta2 = (ops.convert_to_tensor(beta, dtype=dtype) for beta in (self.beta_1, self.beta_2))
            root = ops.sqrt(1 - ops.power(beta2, step))
            pace = ops.cast(learning_rate, dtype) * root / (1 - ops.power(beta1, step))
            first, second = self._momentums[index], self._velocities[index]
            self.assign_add(first, ops.multiply(ops.subtract(gradient, first), 1 - self.beta_1))
            self.assign_add(second, ops.multiply(ops.subtract(ops.square(gradient), second), 1 - self.beta_2))
            size = ops.add(ops.sqrt(second), self.epsilon * root)
            self.assign_sub(variable, ops.divide(ops.multiply(first, pace), size))

        def _parallel_update_step(self, grads, variables, learning_rate):
            import torch

            indices = [self._get_variable_index(variable) for variable in variables]
            firsts = [self._momentums[index].value for index in indices]
            seconds = [self._velocities[index].value for index in indices]
            values = [variable.value for variable in variables]
            step = self.iterations.value.to(values[0].dtype) + 1
            root = torch.sqrt(1 - self.beta_2**step)
            pace = learning_rate.value * root / (1 - self.beta_1**step)
            torch._foreach_mul_(firsts, self.beta_1)
            torch._foreach_add_(firsts, grads, alpha=1 - self.beta_1)
            torch._foreach_mul_(seconds, self.beta_2)
            torch._foreach_add_(seconds, torch._foreach_mul(grads, grads), alpha=1 - self.beta_2)
            sizes = torch._foreach_sqrt(seconds)
            torch._foreach_add_(sizes, self.epsilon * root)
            torch._foreach_add_(values, torch._foreach_div(torch._foreach_mul(firsts, pace), sizes), alpha=-1)

    return OuterEpsilonAdam


def _outer_epsilon_rmsprop(keras, base):
    """Keras has its epsilon under the root."""
    ops = keras.ops

    class OuterEpsilonRMSprop(base):
        def update_step(self, gradient, variable, learning_rate):
            gradient, rate = ops.cast(gradient, variable.dtype), ops.cast(learning_rate, variable.dtype)
            square = self._velocities[self._get_variable_index(variable)]
            news = ops.multiply(1 - self.rho, ops.square(gradient))
            self.assign(square, ops.add(ops.multiply(self.rho, square), news))
            size = ops.add(ops.sqrt(square), self.epsilon)
            self.assign_sub(variable, ops.divide(ops.multiply(rate, gradient), size))

        def _parallel_update_step(self, grads, variables, learning_rate):
            import torch

            squares = [self._velocities[self._get_variable_index(variable)].value for variable in variables]
            torch._foreach_mul_(squares, self.rho)
            torch._foreach_add_(squares, torch._foreach_mul(grads, grads), alpha=1 - self.rho)
            sizes = torch._foreach_sqrt(squares)
            torch._foreach_add_(sizes, self.epsilon)
            steps = torch._foreach_div(torch._foreach_mul(grads, learning_rate.value), sizes)
            torch._foreach_add_([variable.value for variable in variables], steps, alpha=-1)

    return OuterEpsilonRMSprop
