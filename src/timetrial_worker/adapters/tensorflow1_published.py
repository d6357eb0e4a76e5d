"""The step that the published study of operations profiled: an evaluation fed by a queue in the graph itself.

A FIFO queue that a thread keeps full, a batch taken out of it, the forward pass without the last activation, and for
each sample whether its class comes out on top. Dense layers add their biases as the study's program did (`Add`, where
convolutions have `BiasAdd`). With `compile: as-written` nothing rewrites the graph, so that its operations are those
that TensorFlow ran in 2018, and what they ask for is the same to the byte.
"""

import atexit
import threading
import time

import numpy as np

from . import tensorflow1_layers as layers
from .base import Unsupported

STEPS = 100  # that the study took the mean of
LEAST, BATCHES_MORE = 4000, 3  # the queue's room: 0.4 of the 10,000 test images, and three batches


class PublishedKit(layers.Kit):
    def affine(self, x, kernel, bias, shape):
        if len(shape) != 1 or bias is None:
            return super(PublishedKit, self).affine(x, kernel, bias, shape)
        return self.tf.add(self.tf.matmul(x, kernel), bias)


class Evaluation(object):
    """Called once a step."""

    def __init__(self, adapter, x, y, size):
        check(adapter)
        self.adapter, self.x, self.y, self.size = adapter, x, y, size
        self.room = LEAST + BATCHES_MORE * size
        with adapter.graph.as_default(), adapter.tf.device(adapter.place_name):
            self._build(adapter.tf)
        self.filler = threading.Thread(target=self._fill)
        self.filler.daemon = True
        self.filler.start()
        atexit.register(self.close)

    def _build(self, tf):
        adapter, shape = self.adapter, list(self.x.shape[1:])
        with tf.name_scope("input/"):
            self.queue = tf.FIFOQueue(self.room, [adapter.kit.dtype, tf.int32], [shape, []])
            self.given = tf.placeholder(adapter.kit.dtype, [None] + shape), tf.placeholder(tf.int32, [None])
            self.enqueue, self.held = self.queue.enqueue_many(self.given), self.queue.size()
            self.shut = self.queue.close(cancel_pending_enqueues=True)
            samples, labels = self.queue.dequeue_many(self.size)
            labels = tf.reshape(labels, [self.size])
        kit = PublishedKit(tf, adapter.kit.dtype, 0, adapter.step_count)
        logits = adapter.outputs(samples, layers.Mode(False, []), kit)[adapter.network["output"]]
        with tf.name_scope("answer/"):
            self.right = tf.nn.in_top_k(logits, labels, 1)

    def _fill(self):
        """An enqueue waits where there is no room, and is cancelled when the queue is shut."""
        adapter, start = self.adapter, 0
        try:
            while True:
                x = np.asarray(self.x[start : start + self.size], adapter.precision)
                y = np.asarray(self.y[start : start + self.size], np.int32)
                adapter.session.run(self.enqueue, dict(zip(self.given, (x, y))))
                start = start + self.size if start + self.size < len(self.x) else 0
        except adapter.tf.errors.CancelledError:
            pass

    def __call__(self):
        """Whether each sample's class came out on top. What the queue holds is counted at the step's beginning."""
        session = self.adapter.session
        while session.run(self.held) < self.room:
            if not self.filler.is_alive():
                raise RuntimeError("the thread that fills the queue has ended")
            time.sleep(0.0001)
        return self.adapter.run(self.right, None)

    def close(self):
        self.adapter.session.run(self.shut)
        self.filler.join()


def check(adapter):
    recipe = adapter.recipe
    shape = {node["name"]: node["shape"] for node in adapter.network["nodes"]}[adapter.network["output"]]
    if recipe["loss"] != "cross_entropy" or recipe.get("labels", "integer") != "integer" or len(shape) != 1:
        raise Unsupported("feed: queue ends with whether the right class is on top; use it for classes as integers")
    if adapter.place_name != "/cpu:0":
        raise Unsupported("feed: queue holds its samples in the processor's memory; use the placement cpu")
    if adapter.precision != "float32" or adapter.network["input"].get("tokens"):
        raise Unsupported("feed: queue takes numbers in float32, as the study had them; use another feed")
