"""One module an engine family. `load` is the only way to an adapter: a framework is imported only when asked."""

import importlib
import importlib.util

ADAPTERS = {
    "reference": "reference:Reference",
    "torch": "torch_native:Torch",
    "tensorflow": "tensorflow_native:TensorFlow",
    "jax": "jax_native:Jax",
    "keras-torch": "keras3_backends:KerasTorch",
    "keras-tensorflow": "keras3_backends:KerasTensorFlow",
    "keras-jax": "keras3_backends:KerasJax",
    "theano": "theano_native:Theano",
    "tensorflow1": "tensorflow1_native:TensorFlow1",
    "keras2-theano": "keras2:Keras2Theano",
    "keras2-tensorflow": "keras2:Keras2TensorFlow",
    "keras2-cntk": "keras2:Keras2Cntk",
    "sklearn": "sklearn_native:Sklearn",
}


def load(engine, settings):
    """The adapter of an engine, its framework not imported yet (`start()` does that).

    `FILE.py:Class` names an adapter that does not come with Timetrial.
    """
    if ".py:" in engine:
        path, name = engine.rsplit(":", 1)
        spec = importlib.util.spec_from_file_location("foreign_adapter", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return _checked(getattr(module, name)(settings))
    if engine not in ADAPTERS:
        raise KeyError("no adapter for the engine {!r}; known: {}".format(engine, ", ".join(sorted(ADAPTERS))))
    module, name = ADAPTERS[engine].split(":")
    return _checked(getattr(importlib.import_module(__name__ + "." + module), name)(settings))


def _checked(adapter):
    adapter.check_choices()
    return adapter
