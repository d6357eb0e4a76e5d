"""TensorFlow 1 under its own full trace: what each operation of a session's run took and asked for.

ROUND.pb holds the RunMetadata of each step, each after its length as a varint; ROUND.json the steps' numbers and when
they began and ended, in nanoseconds since 1970 as in the trace. A step is the one run of the session that is timed.
"""

import json
import os
import time
from contextlib import contextmanager


class Collector(object):
    format = "step_stats"

    def __init__(self, adapter, folder):
        tf = adapter.tf
        self.adapter, self.folder, self.steps = adapter, folder, []
        self.metadata, self.options = tf.RunMetadata, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)

    def start(self):
        self.steps, self.adapter.run = [], self.run

    @contextmanager
    def step(self, number):
        self.number = number
        yield

    def run(self, fetches, feed):
        found, begin = self.metadata(), time.time()
        answer = self.adapter.session.run(fetches, feed, self.options, found)
        self.steps.append((self.number, begin, time.time(), found))
        return answer

    def stop(self, name):
        self.adapter.run = self.adapter.session.run
        if name is not None:
            write(os.path.join(self.folder, name), self.steps)

    def facts(self):
        return {}


class KerasCollector(Collector):
    """Of Keras 2, which runs a callable of the session's: it keeps one with the trace and one without."""

    def __init__(self, adapter, folder, task):
        super(KerasCollector, self).__init__(adapter, folder)
        self.task, self.traced = task, None

    def start(self):
        self.steps, self.function = [], self.adapter.graph_function(self.task)
        self.plain, self.function._callable_fn = self.function._callable_fn, self.traced
        self.function.run_options = self.options

    @contextmanager
    def step(self, number):
        self.function.run_metadata = found = self.metadata()
        begin = time.time()
        yield
        self.steps.append((number, begin, time.time(), found))

    def stop(self, name):
        self.traced, self.function._callable_fn = self.function._callable_fn, self.plain
        self.function.run_options = self.function.run_metadata = None
        if name is not None:
            write(os.path.join(self.folder, name), self.steps)


def write(path, steps):
    """Of (number, begin, end, RunMetadata), the times in seconds."""
    with open(path + ".pb", "wb") as file:
        for step in steps:
            message = step[3].SerializeToString()
            file.write(varint(len(message)) + message)
    told = [{"step": n, "start_ns": int(begin * 1e9), "end_ns": int(end * 1e9)} for n, begin, end, _ in steps]
    with open(path + ".json", "w") as file:
        json.dump(told, file)


def varint(number):
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes(found + bytearray([number]))
