"""Engines with a profiler of their own making: the reference, whose steps are traced as a few spans each."""

import contextlib
import json
import os
import time

from timetrial_worker.adapters.reference import Reference


class Traced(Reference):
    """Tells of each step its beginning and its end; what lies between is for the reader to deal out."""

    name = "traced"

    def profiler(self, folder, task):
        return Collector(folder)


class Untraceable(Traced):
    """Its profiler writes something that is no trace."""

    def profiler(self, folder, task):
        return Rubbish(folder)


class BreaksTraced(Traced):
    """Ends with an error as soon as it is to be profiled."""

    def profiler(self, folder, task):
        raise RuntimeError("the profiler could not be started")


class Collector:
    format = "made"

    def __init__(self, folder):
        self.folder, self.steps = folder, []

    def start(self):
        self.steps = []

    @contextlib.contextmanager
    def step(self, number):
        start = time.perf_counter_ns()
        yield
        self.steps.append((number, start, time.perf_counter_ns()))

    def stop(self, name):
        if name is not None:
            self.write(os.path.join(self.folder, name + ".json"), json.dumps(self.steps))

    def write(self, path, text):
        with open(path, "w") as file:
            file.write(text)

    def facts(self):
        return {"made": True}


class Rubbish(Collector):
    def write(self, path, text):
        Collector.write(self, path, "{")
