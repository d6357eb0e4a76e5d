"""Layers that Keras 2 lacks, or whose own version means something else. Made once Keras is there."""

import numpy as np


def own_layers(kit):
    makers = (_batch_norm, _layer_norm, _positions, _lrn, _padding, _avg_pool, _attention, _lstm_cell)
    return {maker.__name__[1:]: maker(kit) for maker in makers}


def _batch_norm(kit):
    """The moving variance is the batch's own. Keras corrects it for the number of samples, by a factor that has an
    epsilon in it, and on TensorFlow a second time; on CNTK it forgets the epsilon of the training pass."""
    K, base = kit.K, kit.layers.BatchNormalization
    fused = kit.backend == "tensorflow" and not kit.double  # the kernel is for single precision only

    class BatchNorm(base):
        def call(self, x, training=None):
            axes = [i for i in range(K.ndim(x)) if i != self.axis % K.ndim(x)]
            normal, mean, variance = self._in_training(x, axes)
            updates = [
                K.moving_average_update(self.moving_mean, mean, self.momentum),
                K.moving_average_update(self.moving_variance, variance, self.momentum),
            ]
            self.add_update(updates, x)
            return K.in_train_phase(normal, lambda: self._in_inference(x, axes), training=training)

        def _in_training(self, x, axes):
            if kit.backend in ("theano", "tensorflow") and not fused:
                mean, variance = K.mean(x, axes), K.var(x, axes)
            else:
                normal, mean, variance = K.normalize_batch_in_training(
                    x, self.gamma, self.beta, axes, epsilon=self.epsilon
                )
            if not fused:
                return self._apply(x, axes, mean, variance), mean, variance
            if K.ndim(x) == 4:
                count = K.cast(K.prod(K.shape(x)[:3]), K.floatx())
                variance = variance * ((count - 1.0) / count)  # the kernel gives the unbiased one
            return normal, mean, variance

        def _in_inference(self, x, axes):
            if fused:
                return base.call(self, x, training=False)
            return self._apply(x, axes, self.moving_mean, self.moving_variance)

        def _apply(self, x, axes, mean, variance):
            shape = [1 if axis in axes else K.int_shape(x)[axis] for axis in range(K.ndim(x))]
            if kit.backend == "cntk":
                shape = shape[1:]
            mean, variance, gamma, beta = (
                kit.reshape(values, shape) for values in (mean, variance, self.gamma, self.beta)
            )
            return (x - mean) / K.sqrt(variance + self.epsilon) * gamma + beta

    return BatchNorm


def _layer_norm(kit):
    K = kit.K

    class LayerNorm(kit.layers.Layer):
        """Over the channels of each sample and place."""

        def __init__(self, epsilon, axis, **fields):
            super(LayerNorm, self).__init__(**fields)
            self.epsilon, self.axis = epsilon, axis

        def build(self, shape):
            self.gamma = self.add_weight(name="gamma", shape=(shape[self.axis],), initializer="ones")
            self.beta = self.add_weight(name="beta", shape=(shape[self.axis],), initializer="zeros")
            # Its own axes, but for the samples' on CNTK.
            self.shape = (1,) * (0 if kit.backend == "cntk" else 1) + (shape[self.axis], 1, 1)
            self.built = True

        def call(self, x):
            centred = x - K.mean(x, axis=self.axis, keepdims=True)
            variance = K.mean(K.square(centred), axis=self.axis, keepdims=True)
            normal = centred / K.sqrt(variance + self.epsilon)
            return normal * self._along_channels(self.gamma) + self._along_channels(self.beta)

        def _along_channels(self, values):
            return kit.reshape(values, self.shape) if self.axis == 1 else values

    return LayerNorm


def _positions(kit):
    class Positions(kit.layers.Layer):
        """Adds a learned vector for each place."""

        def build(self, shape):
            self.table = self.add_weight(name="table", shape=tuple(shape[1:]), initializer="zeros")
            self.built = True

        def call(self, x):
            return x + self.table

    return Positions


def _lrn(kit):
    K = kit.K

    class LocalResponseNorm(kit.layers.Layer):
        """The sum over neighbouring channels is a product with a band matrix: one pass over the image."""

        def __init__(self, attrs, **fields):
            super(LocalResponseNorm, self).__init__(**fields)
            self.attrs = attrs

        def call(self, x):
            places = np.arange(K.int_shape(x)[1 if kit.first else -1])
            near = np.abs(places[:, None] - places[None, :]) <= self.attrs["radius"]
            squares = K.permute_dimensions(K.square(x), (0, 2, 3, 1)) if kit.first else K.square(x)
            sums = K.dot(squares, K.constant(near * float(self.attrs["alpha"])))
            sums = K.permute_dimensions(sums, (0, 3, 1, 2)) if kit.first else sums
            return x * kit.ops.power(sums + self.attrs["bias"], -self.attrs["beta"])

    return LocalResponseNorm


def _padding(kit):
    class Padding(kit.layers.Layer):
        """Rows and columns of any value; what no maximum ever takes, for example."""

        def __init__(self, pads, value, **fields):
            super(Padding, self).__init__(**fields)
            self.pads, self.value = kit.image_axes([tuple(side) for side in pads], (0, 0)), value

        def call(self, x):
            return kit.ops.pad(x, self.pads, self.value)

        def compute_output_shape(self, shape):
            return shape[:1] + tuple(size + sum(pad) for size, pad in zip(shape[1:], self.pads))

    return Padding


def _avg_pool(kit):
    K = kit.K

    class BorderCorrection(kit.layers.Layer):
        """Averages of a zero-padded image, put right by how many real values each window holds."""

        def __init__(self, attrs, in_shape, **fields):
            super(BorderCorrection, self).__init__(**fields)
            self.factors = _border_factors(attrs, in_shape)

        def call(self, x):
            factors = np.expand_dims(self.factors, 0 if kit.first else -1)
            return x * K.constant(factors if kit.backend == "cntk" else factors[None])

    return BorderCorrection


def _border_factors(attrs, in_shape):
    """(rows, columns): window size over the number of real values in it."""
    factors = []
    for size, pads, window, stride in zip(in_shape, attrs["pads"], attrs["window"], attrs["stride"]):
        real = np.pad(np.ones(size), tuple(pads), mode="constant")
        starts = range(0, len(real) - window + 1, stride)
        factors.append(np.array([window / float(real[start : start + window].sum()) for start in starts]))
    return np.multiply.outer(factors[0], factors[1])


def _attention(kit):
    K = kit.K

    class SelfAttention(kit.layers.Layer):
        """softmax(Q K' / sqrt(C / heads)) V of each head, the heads side by side, then a product."""

        def __init__(self, heads, causal, bias, **fields):
            super(SelfAttention, self).__init__(**fields)
            self.heads, self.causal, self.bias = heads, causal, bias

        def build(self, shape):
            self.steps, self.width = shape[1:]
            for part in ("query", "key", "value", "output"):
                kernel = self.add_weight(
                    name=part + "_kernel", shape=(self.width, self.width), initializer="glorot_uniform"
                )
                setattr(self, part + "_kernel", kernel)
                if self.bias:
                    bias = self.add_weight(name=part + "_bias", shape=(self.width,), initializer="zeros")
                    setattr(self, part + "_bias", bias)
            self.built = True

        def call(self, x):
            query, key, value = (self._split(self._project(part, x)) for part in ("query", "key", "value"))
            scores = K.batch_dot(query, key, axes=(2, 2)) / (self.width // self.heads) ** 0.5
            if self.causal:
                later = np.triu(np.ones((self.steps, self.steps)), 1)
                scores = scores + K.constant(-1e9 * later)
            joined = self._join(K.batch_dot(K.softmax(scores), value, axes=(2, 1)))
            return self._project("output", joined)

        def _project(self, part, x):
            y = K.dot(x, getattr(self, part + "_kernel"))
            return y + getattr(self, part + "_bias") if self.bias else y

        def _split(self, x):
            """(N, T, C) to (N heads, T, C / heads)"""
            size = self.width // self.heads
            apart = K.permute_dimensions(K.reshape(x, (-1, self.steps, self.heads, size)), (0, 2, 1, 3))
            return K.reshape(apart, (-1, self.steps, size))

        def _join(self, x):
            size = self.width // self.heads
            apart = K.permute_dimensions(K.reshape(x, (-1, self.heads, self.steps, size)), (0, 2, 1, 3))
            return K.reshape(apart, (-1, self.steps, self.width))

    return SelfAttention


def _lstm_cell(kit):
    class MemoryFirstCell(kit.layers.LSTMCell):
        """An LSTM whose states are (memory, output). On CNTK, Keras 2.3 takes a loop's last state for its output, so
        that the built-in LSTM gives its memory to the next layer."""

        def call(self, x, states, training=None):
            memory, output = states
            output, (_, memory) = super(MemoryFirstCell, self).call(x, [output, memory], training=training)
            return output, [memory, output]

    return MemoryFirstCell
