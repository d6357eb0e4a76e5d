"""Theano under its own profiler: the seconds of each operation of a compiled function, call by call.

The function is compiled a second time with Theano's profile, from expressions made anew that say what they belong to.
NODES.json holds its operations in the order in which they run, ROUND.json their seconds in each step. When they began
Theano does not tell.
"""

import json
import os
import time
from contextlib import contextmanager

import numpy as np

from .base import Unsupported

FRAME = "timetrial: "
FRAMES = 100  # of a stack that are kept with each expression; a gradient is made deep in Theano's recursion


def marked(mark, function, *given):
    """Called out of a frame with this mark for its file. Theano keeps with each variable the stack that made it, also
    through most of its rewriting: so an operation knows its layer, at no cost once it is compiled."""
    return eval(compile("function(*given)", FRAME + mark, "eval"), {"function": function, "given": given})


class Collector(object):
    format = "theano"

    def __init__(self, adapter, folder, task):
        self.adapter, self.folder = adapter, folder
        self.name = "step" if task == "train" else "predict"
        self.twin, self.given, self.steps = None, (), []

    def start(self):
        if self.twin is None:
            self.twin = self._compiled(self.adapter.theano.compile.profiling.ProfileStats(atexit_print=False))
            if not hasattr(self.twin.fn, "update_profile"):
                raise Unsupported("theano keeps no times of its operations in this compile mode; use compile: default")
            self.nodes = list(self.twin.fn.nodes)
        self.plain, self.steps = self.adapter.compiled[self.name], []
        self.adapter.compiled[self.name] = self._run

    def _run(self, *given):
        self.given = given
        return self.twin(*given)

    @contextmanager
    def step(self, number):
        spent = self.twin.profile.apply_time
        spent.clear()
        begin = time.time()
        yield
        end = time.time()
        seconds = [spent.get(node, 0.0) for node in self.nodes]
        self.steps.append({"step": number, "start_ns": int(begin * 1e9), "end_ns": int(end * 1e9), "seconds": seconds})

    def stop(self, name):
        self.adapter.compiled[self.name] = self.plain
        if name is not None:
            self._write(name, self.steps)

    def facts(self):
        """What each operation gives is looked up in a third function, which keeps its results."""
        self._write("nodes", described(self.twin, self.nodes, self._sizes()))
        return {}

    def _write(self, name, content):
        with open(os.path.join(self.folder, name + ".json"), "w") as file:
            json.dump(content, file)

    def _compiled(self, profile, mode=None):
        """Once more, from marked expressions; the adapter has its own back afterwards."""
        adapter, config = self.adapter, self.adapter.theano.config
        kept, limit = dict(vars(adapter)), config.traceback.limit  # its settings and expressions, by name
        config.traceback.limit = FRAMES
        try:
            adapter.marked, adapter.compiled = marked, {}
            adapter.options = {"profile": profile, "mode": mode}
            adapter.express()
            return adapter.function_of(self.name)
        finally:
            config.traceback.limit = limit
            vars(adapter).clear()
            vars(adapter).update(kept)

    def _sizes(self):
        """Bytes of each output of each operation; none where this function came out otherwise."""
        mode = self.adapter.theano.compile.mode.get_default_mode()
        keeping = self._compiled(False, mode.clone(link_kwargs={"allow_gc": False}))
        keeping(*self.given)
        nodes = list(keeping.fn.nodes)
        if [str(node.op) for node in nodes] != [str(node.op) for node in self.nodes]:
            return [None] * len(self.nodes)
        return [size([cell[0] for cell in thunk.outputs]) for thunk in keeping.fn.thunks]


def size(outputs):
    return None if any(out is None for out in outputs) else [np.asarray(out).nbytes for out in outputs]


def described(function, nodes, sizes):
    """The operations as plain data: what they are, read, update and give, and the marks of where they come from."""
    number = {out: i for i, node in enumerate(nodes) for out in node.outputs}
    graph = function.maker.fgraph
    updated = {graph.outputs[i] for i in graph.update_mapping or {}}
    return [
        {
            "op": str(node.op),
            "name": node.outputs[0].name,
            "inputs": [number.get(variable, variable.name) for variable in node.inputs],
            "marks": sorted(marks(node)),
            "update": any(out in updated for out in node.outputs),
            "out_bytes": None if given is None else sum(given),
            "alloc_bytes": None if given is None else sum(s for i, s in enumerate(given) if i not in old(node.op)),
        }
        for node, given in zip(nodes, sizes)
    ]


def old(op):
    """Outputs that lie in the memory of an input."""
    return set(getattr(op, "view_map", {})) | set(getattr(op, "destroy_map", {}))


def marks(node):
    stacks = [stack for out in node.outputs for stack in getattr(out.tag, "trace", None) or ()]
    files = {frame[0] for stack in stacks for frame in stack}
    return {name[len(FRAME) :] for name in files if name.startswith(FRAME)}
