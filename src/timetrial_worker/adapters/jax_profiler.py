"""JAX's own profiler: what XLA ran, with the compiled programs themselves, without Python's calls."""

from .xplane_collector import Collector

PROGRAMS = {"train": "train_step", "infer": "predict_step"}  # what stands in a program's name


class JaxCollector(Collector):
    def __init__(self, adapter, jax, folder, task):
        super(JaxCollector, self).__init__(adapter, folder)
        self._jax, self._profiler, self._program = jax, jax.profiler, PROGRAMS[task]
        self._options = self._profiler.ProfileOptions()
        self._options.python_tracer_level = 0

    def step(self, number):
        return self._profiler.StepTraceAnnotation("step", step_num=number)

    def facts(self):
        """What XLA itself counts of the step's program, and the memory it planned for it."""
        found = {}
        program = self._find()
        if program is None:
            return found
        flops = _asked(program.cost_analysis)
        if isinstance(flops, dict) and flops.get("flops", 0) > 0:
            found["flops"] = {"value": float(flops["flops"]), "kind": "xla_cost_analysis"}
        plan = _asked(program.get_compiled_memory_stats)
        if plan is not None:
            parts = ("temp_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes")
            taken = sum(getattr(plan, part) for part in parts) - plan.alias_size_in_bytes
            found["memory_peak"] = {"bytes": int(taken), "kind": "plan"}
        return found

    def _find(self):
        """The newest program of that name among those that XLA holds compiled."""
        programs = _asked(lambda: self._jax.devices()[0].client.live_executables()) or []
        named = [p for p in programs if any(self._program in module.name for module in _asked(p.hlo_modules) or [])]
        return named[0] if named else None

    def _begin(self, folder):
        self._profiler.start_trace(folder, profiler_options=self._options)

    def _end(self):
        self._profiler.stop_trace()


def _asked(question):
    """The answer, or None: not every runtime can tell, and a profile is none the worse for that."""
    try:
        return question()
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return None
