"""What Keras 2's backend module has no name for, or computes otherwise than the language says: one class a backend.

Cross-entropies are computed from the logits. On Theano and CNTK Keras takes the logarithm of clipped probabilities.
"""

from .base import Unsupported


class TensorFlowOps(object):
    def __init__(self):
        import tensorflow as tf

        self.tf = tf

    def pad(self, x, pads, value):
        """`pads` are (before, after) of every axis but the samples'."""
        return self.tf.pad(x, [(0, 0)] + pads, constant_values=value)

    def erf(self, x):
        return self.tf.math.erf(x)

    def power(self, x, exponent):
        return self.tf.pow(x, exponent)

    def class_cross_entropy(self, labels, logits):
        tf = self.tf
        labels = tf.cast(tf.squeeze(labels, -1), "int64")
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    def cross_entropy(self, labels, logits):
        return self.tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)

    def binary_cross_entropy(self, labels, logits):
        return self.tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


class TheanoOps(object):
    def __init__(self):
        import theano

        self.T, self.theano = theano.tensor, theano

    def pad(self, x, pads, value):
        T = self.T
        pads = [(0, 0)] + pads
        shape = [x.shape[i] + before + after for i, (before, after) in enumerate(pads)]
        inner = tuple(slice(before, before + x.shape[i]) for i, (before, _) in enumerate(pads))
        return T.set_subtensor(T.alloc(T.constant(value, dtype=x.dtype), *shape)[inner], x)

    def erf(self, x):
        return self.T.erf(x)

    def power(self, x, exponent):
        return self.T.pow(x, exponent)

    def class_cross_entropy(self, labels, logits):
        """Theano joins these two into one operation on the logits."""
        nnet, labels = self.T.nnet, self.T.cast(labels.flatten(), "int32")
        if logits.ndim == 2:
            return nnet.categorical_crossentropy(nnet.softmax(logits), labels)
        flat = nnet.softmax(logits.reshape((-1, logits.shape[-1])))
        losses = nnet.categorical_crossentropy(flat, labels)
        return losses.reshape(logits.shape[:-1], ndim=logits.ndim - 1)

    def cross_entropy(self, labels, logits):
        flat = self.T.nnet.logsoftmax(logits.reshape((-1, logits.shape[-1])))
        return -(labels * flat.reshape(logits.shape, ndim=logits.ndim)).sum(axis=-1)

    def binary_cross_entropy(self, labels, logits):
        return self.T.nnet.softplus(logits) - labels * logits


class CntkOps(object):
    def __init__(self):
        import cntk

        self.C = cntk

    def pad(self, x, pads, value):
        return self.C.pad(x, pattern=[list(pad) for pad in pads], constant_value=value)

    def erf(self, x):
        raise Unsupported("CNTK has no error function, so no gelu: use another activation, or another engine")

    def power(self, x, exponent):
        """Of positive numbers. CNTK's own has no gradient where the exponent is a constant below zero."""
        return self.C.exp(exponent * self.C.log(x))

    def class_cross_entropy(self, labels, logits):
        classes = self.C.one_hot(labels, logits.shape[-1])
        return self.cross_entropy(self.C.reshape(classes, logits.shape), logits)

    def cross_entropy(self, labels, logits):
        losses = self.C.cross_entropy_with_softmax(logits, labels, axis=-1)
        return self.C.reshape(losses, logits.shape[:-1])

    def binary_cross_entropy(self, labels, logits):
        return self.C.softplus(logits) - labels * logits


OPS = {"tensorflow": TensorFlowOps, "theano": TheanoOps, "cntk": CntkOps}
