"""Theano's flags, which it reads once, when it is imported.

What THEANO_FLAGS says already stays as it is. A Theano from a package index finds no BLAS to link, because NumPy's
wheel hides the one that it brings: it then goes through NumPy's interface for every product, with copies. NumPy's own
library is linked instead: the same routines, without the detour.
"""

import ctypes
import glob
import os

import numpy as np


def given():
    """The flags that are set, as a dict."""
    pairs = (part.partition("=") for part in os.environ.get("THEANO_FLAGS", "").split(","))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def add(**flags):
    """Flags by name, `__` for a dot, where nobody has set them."""
    found = given()
    for name, value in flags.items():
        found.setdefault(name.replace("__", "."), value)
    os.environ["THEANO_FLAGS"] = ",".join("{}={}".format(*pair) for pair in sorted(found.items()))


def need_compiler(theano):
    """Without one Theano warns and runs the graph in Python, some hundred times slower."""
    if not theano.config.cxx:
        raise ImportError("Theano finds no C++ compiler and would run in Python; install g++")


def numpy_blas():
    """The path of the BLAS in NumPy's wheel, or None: one that is not there, has other names for its routines, or
    lies where Theano could not be told of it."""
    folder = os.path.dirname(np.__file__)
    for place in (os.path.join(os.path.dirname(folder), "numpy.libs"), os.path.join(folder, ".libs")):
        for path in sorted(glob.glob(os.path.join(place, "libopenblas*.so"))):
            if not set(" ,=") & set(path) and hasattr(ctypes.CDLL(path), "sgemm_"):
                return path
    return None


def blas_flags(path):
    """What `add` is told so that a library at this path is linked; nothing where there is none."""
    return {"blas__ldflags": link(path)} if path else {}


def thread_flags(threads):
    """OpenMP from two threads on; left as it comes where no number is asked for."""
    if not threads:
        return {}
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    return {"openmp": str(threads > 1)}


def link(path):
    """Linker flags for a library at this path."""
    folder, name = os.path.split(path)
    return "-L{} -l{}".format(folder, name[len("lib") : -len(".so")])


def blas_threads(path):
    """How many threads that library takes, as it says itself."""
    return int(ctypes.CDLL(path).openblas_get_num_threads()) if path else None
