"""The recipe's optimisers and losses on Keras 2: its own where the formula is the recipe's, else a subclass.

Rates and momenta are variables in Keras 2: a schedule sets them without a new graph.
"""

from .base import Unsupported


def make_optimiser(keras, recipe):
    options = recipe["optimiser"]
    build = OPTIMISERS.get(options["kind"])
    if build is None:
        raise Unsupported("Keras 2 has no optimiser {!r} here: use sgd, adam or rmsprop".format(options["kind"]))
    return build(keras, options)


def _sgd(keras, options):
    base = _coupled(keras.optimizers.SGD, options["weight_decay"])
    return base(options["rate"], momentum=options["momentum"], nesterov=options["nesterov"])


def _adam(keras, options):
    base = _coupled(_outer_epsilon_adam(keras), options["weight_decay"])
    betas = {"beta_1": options["beta1"], "beta_2": options["beta2"]}
    return base(options["rate"], epsilon=options["epsilon"], **betas)


def _rmsprop(keras, options):
    base = _coupled(keras.optimizers.RMSprop, options["weight_decay"])
    return base(options["rate"], rho=options["rho"], epsilon=options["epsilon"])


OPTIMISERS = {"sgd": _sgd, "adam": _adam, "rmsprop": _rmsprop}


def _coupled(base, decay):
    """Weight decay as a part of the gradient; Keras 2 knows it only as a part of the loss."""
    if not decay:
        return base

    class Coupled(base):
        def get_gradients(self, loss, params):
            gradients = super(Coupled, self).get_gradients(loss, params)
            return [gradient + decay * weight for gradient, weight in zip(gradients, params)]

    return Coupled


def _outer_epsilon_adam(keras):
    """Keras adds its epsilon before the second moment is corrected; scaled by that correction it means the recipe's."""
    K = keras.backend

    class OuterEpsilonAdam(keras.optimizers.Adam):
        def get_updates(self, loss, params):
            gradients = self.get_gradients(loss, params)
            firsts = [K.zeros(K.int_shape(p), dtype=K.dtype(p)) for p in params]
            seconds = [K.zeros(K.int_shape(p), dtype=K.dtype(p)) for p in params]
            self.weights = [self.iterations] + firsts + seconds
            step = K.cast(self.iterations, K.floatx()) + 1
            with K.control_dependencies([step]):  # Keras lets TensorFlow choose whether it counts before or after
                self.updates = [K.update_add(self.iterations, 1)]
            root = K.sqrt(1.0 - K.pow(self.beta_2, step))
            pace = self.learning_rate * root / (1.0 - K.pow(self.beta_1, step))
            for p, g, m, v in zip(params, gradients, firsts, seconds):
                first = self.beta_1 * m + (1.0 - self.beta_1) * g
                second = self.beta_2 * v + (1.0 - self.beta_2) * K.square(g)
                size = K.sqrt(second) + self.epsilon * root
                self.updates += [K.update(m, first), K.update(v, second), K.update(p, p - pace * first / size)]
            return self.updates

    return OuterEpsilonAdam


# --- losses: from logits, which Keras 2's own clip on two of its backends -------------------------------------------


def make_loss(keras, ops, recipe):
    kind = recipe["loss"]
    if kind == "cross_entropy":
        return ops.class_cross_entropy if recipe["labels"] == "integer" else ops.cross_entropy
    if kind == "binary_cross_entropy":
        return lambda labels, logits: keras.backend.mean(ops.binary_cross_entropy(labels, logits), axis=-1)
    if kind in ("mse", "mae"):
        return keras.losses.mean_squared_error if kind == "mse" else keras.losses.mean_absolute_error
    raise Unsupported("Keras 2 has no loss {!r} here: use cross_entropy, binary_cross_entropy, mse or mae".format(kind))
