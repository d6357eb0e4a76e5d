"""TensorFlow 1's own input pipeline: tf.data over arrays, in an order that is handed over, gathered by its threads.

A call of its own moves a batch into a staging area, so that the waiting for it is seen; the step takes it from there.
Fetched to the host and fed again, it would be copied up to two times.
"""


def _options(workers):
    """As far as this version has them: threads of the pipeline's own; and no search for what could be improved in it,
    which would write all the arrays into a graph at the beginning of each pass."""
    return [
        ("experimental_threading", "private_threadpool_size", max(workers, 1)),
        ("experimental_threading", "max_intra_op_parallelism", 1),
        ("experimental_optimization", "apply_default_optimizations", False),
        ("experimental_optimization", "autotune", False),
    ]


class Loader(object):
    """One iterator, begun anew for each pass. `workers` gather ahead of the steps, where this version lets them have
    threads of their own; else in those of the session. `batch` makes the graph of a step from tensors.
    """

    def __init__(self, adapter, batch, arrays, workers, prefetch):
        from tensorflow.python.ops.data_flow_ops import StagingArea  # tf.contrib.staging's, without all of contrib

        tf = adapter.tf
        self._adapter, self._batch, self._batches = adapter, batch, {}
        self._ended, self._picks = tf.errors.OutOfRangeError, ()
        self._shapes = [array.shape[1:] for array in arrays]
        with adapter.graph.as_default(), tf.device("/cpu:0"):
            holders = [tf.placeholder(tf.as_dtype(array.dtype), array.shape) for array in arrays]
            iterator = self._dataset(tf, holders, workers, prefetch).make_initializable_iterator()
            parts = iterator.get_next()
            self._area = StagingArea([part.dtype for part in parts])
            self._stage = [tf.shape(parts[0])[0], self._area.put(parts)]
            self._begin = [self._area.clear(), iterator.initializer]
        self._feed = dict(zip(holders, arrays))

    def _dataset(self, tf, holders, workers, prefetch):
        order = tf.data.Dataset.from_generator(lambda: iter(self._picks), tf.int64, tf.TensorShape([None]))
        found = order.map(
            lambda places: tuple(tf.gather(h, places) for h in holders), num_parallel_calls=workers or None
        )
        if workers:
            found = found.prefetch(workers * prefetch)
        options = tf.data.Options()
        for group, name, value in _options(workers):
            if hasattr(getattr(options, group, None), name):
                setattr(getattr(options, group), name, value)
        return found.with_options(options)

    def __call__(self, picks):
        """Batches for one step each, in turn."""
        self._picks = picks
        session = self._adapter.session
        session.run(self._begin, self._feed)
        while True:
            try:
                size = int(session.run(self._stage)[0])
            except self._ended:
                return
            yield self._of_size(size)

    def _of_size(self, size):
        if size not in self._batches:
            adapter = self._adapter
            with adapter.graph.as_default(), adapter.tf.device(adapter.place_name):
                parts = self._area.get()
                for part, shape in zip(parts, self._shapes):
                    part.set_shape((size,) + shape)
                self._batches[size] = self._batch(*parts)
        return self._batches[size]
