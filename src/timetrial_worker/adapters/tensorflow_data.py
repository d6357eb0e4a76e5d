"""TensorFlow's own input pipeline: tf.data over arrays, in an order that is handed over, gathered by its threads."""


class Loader(object):
    """One tf.data.Dataset; each pass iterates over it anew. `workers` threads of its own gather ahead of the steps."""

    def __init__(self, tf, x, y, device, workers, prefetch):
        self._tf, self._device, self._picks = tf, device, ()
        self._arrays = (x,) if y is None else (x, y)
        order = tf.TensorSpec([None], tf.int64)
        found = tf.data.Dataset.from_generator(lambda: iter(self._picks), output_signature=order)
        if workers:
            found = found.map(self._gathered, num_parallel_calls=workers, deterministic=True)
            found = found.prefetch(workers * prefetch)
        else:
            found = found.map(self._gathered)
        options = tf.data.Options()
        options.autotune.enabled = False
        options.threading.private_threadpool_size = max(workers, 1)
        options.threading.max_intra_op_parallelism = 1
        self._dataset = found.with_options(options)

    def _gathered(self, places):
        return tuple(self._tf.gather(array, places) for array in self._arrays)

    def __call__(self, picks):
        """(x, y) tensors on the device, y None where there is none."""
        self._picks = picks
        for found in self._dataset:
            with self._tf.device(self._device):
                x, y = (self._tf.identity(part) for part in found) if len(found) == 2 else (found[0], None)
            yield x, y
