"""TensorFlow's own profiler: its operations with their names, threads and allocations, without Python's calls."""

from .xplane_collector import Collector

OPERATIONS = 2  # the host tracer's level at which every operation is told


class TensorFlowCollector(Collector):
    def __init__(self, adapter, tf, folder):
        super(TensorFlowCollector, self).__init__(adapter, folder)
        self._tf, self._profiler = tf, tf.profiler.experimental
        self._options = self._profiler.ProfilerOptions(host_tracer_level=OPERATIONS, python_tracer_level=0)
        self._counts = self._reset()

    def step(self, number):
        return self._profiler.Trace("step", step_num=number, _r=1)

    def facts(self):
        """The most that TensorFlow's allocator for the processor held at once since the run was set up."""
        if not self._counts:
            return {}
        peak = self._tf.config.experimental.get_memory_info("CPU:0")["peak"]
        return {"memory_peak": {"bytes": int(peak), "kind": "allocator"}}

    def _reset(self):
        """Whether this version keeps count of the processor's memory: older ones refuse."""
        try:
            self._tf.config.experimental.reset_memory_stats("CPU:0")
        except (ValueError, AttributeError, self._tf.errors.OpError):
            return False
        return True

    def _begin(self, folder):
        self._profiler.start(folder, options=self._options)

    def _end(self):
        self._profiler.stop()
