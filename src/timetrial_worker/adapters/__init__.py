"""One module an engine family. `load` is the only way to an adapter, so that a framework is imported only when asked."""

import importlib

ADAPTERS = {
    "reference": "reference:Reference",
    "torch": "torch_native:Torch",
    "tensorflow": "tensorflow_native:TensorFlow",
    "jax": "jax_native:Jax",
    "keras-torch": "keras3:KerasTorch",
    "keras-tensorflow": "keras3:KerasTensorFlow",
    "keras-jax": "keras3:KerasJax",
}


def load(engine, settings):
    """The adapter of an engine, not yet imported (`adapter.start()` does that). `module:Class` names a foreign one."""
    target = ADAPTERS.get(engine, engine)
    if ":" not in target:
        raise KeyError("no adapter for the engine {!r}; known: {}".format(engine, ", ".join(sorted(ADAPTERS))))
    module, name = target.split(":")
    package = __name__ + "." + module if engine in ADAPTERS else module
    return getattr(importlib.import_module(package), name)(settings)
