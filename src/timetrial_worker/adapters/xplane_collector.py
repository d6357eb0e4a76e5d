"""What the profilers of TensorFlow and JAX share: both write one `xplane.pb` under folders of their own."""

import os
import shutil

from .base import Unsupported

SUFFIX = ".xplane.pb"


class Collector(object):
    """See `profiled`. A subclass says how its framework's profiler begins, marks a step and ends."""

    format = "xplane"

    def __init__(self, adapter, folder):
        if adapter.device != "cpu":
            message = "the operations of {} are told apart on the processor only: profile it on placement cpu"
            raise Unsupported(message.format(adapter.name))
        self._folder, self._scratch = folder, os.path.join(folder, "scratch")

    def start(self):
        self._begin(self._scratch)

    def step(self, number):
        raise NotImplementedError

    def stop(self, name):
        try:
            self._end()
            if name is not None:
                shutil.move(self._written(), os.path.join(self._folder, name + SUFFIX))
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def facts(self):
        return {}

    def _begin(self, folder):
        raise NotImplementedError

    def _end(self):
        raise NotImplementedError

    def _written(self):
        found = [
            os.path.join(root, name)
            for root, _, names in os.walk(self._scratch)
            for name in names
            if name.endswith(SUFFIX)
        ]
        if len(found) != 1:
            message = "the profiler wrote {} files *{} where it should have written one: is the disk full?"
            raise RuntimeError(message.format(len(found), SUFFIX))
        return found[0]
