"""How long a big trace of PyTorch's takes to read and to sum up: makes one, always the same, and reads it apart.

python benchmarks/trace.py [--megabytes 200] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS, BYTES = 20.0, 2**30
BLOCKS = 24  # of a convolution, a normalisation and an activation
PID = 4242


def network() -> dict[str, Any]:
    layers: list[Any] = []
    for number in range(BLOCKS):
        layers += [
            {"conv2d": {"filters": 8, "kernel": 3, "padding": "same", "name": f"conv{number}"}},
            {"batch_norm": {"name": f"norm{number}"}},
            {"activation": {"function": "relu", "name": f"relu{number}"}},
        ]
    head = ["global_avg_pool", {"dense": {"units": 10, "activation": "softmax", "name": "dense"}}]
    return {"name": "deep", "input": {"shape": [16, 16, 3]}, "layers": layers + head}


# --- a trace as torch writes it ---------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now, self.number, self.draw = 4272523253.0, 0, random.Random(1)
        self.alive = 0

    def passes(self) -> float:
        self.now += self.draw.uniform(0.5, 4.0)
        return self.now


INNER = {
    "aten::conv2d": ("aten::convolution", "aten::_convolution", "aten::mkldnn_convolution", "aten::empty"),
    "aten::batch_norm": ("aten::_batch_norm_impl_index", "aten::native_batch_norm", "aten::empty_like", "aten::empty"),
    "aten::relu": ("aten::clamp_min", "aten::empty"),
}


def event(name: str, start: float, end: float, arguments: str, kind: str = "cpu_op") -> str:
    return f"""  {{
    "ph": "X",
    "cat": "{kind}",
    "name": "{name}",
    "pid": {PID},
    "tid": {PID},
    "ts": {start:.3f},
    "dur": {end - start:.3f}
    ,
    "args": {{
      {arguments}
    }}
  }},
"""


def memory(clock: Clock, size: int) -> str:
    clock.alive += size
    return f"""  {{
    "ph": "i",
    "cat": "cpu_instant_event",
    "s": "t",
    "name": "[memory]",
    "pid": {PID},
    "tid": {PID},
    "ts": {clock.passes():.3f},
    "args": {{
      "Total Reserved": 0,
      "Total Allocated": {clock.alive},
      "Bytes": {size},
      "Device Id": -1,
      "Device Type": 0,
      "Addr": {94124498381184 + clock.number},
      "finished": false, "Ev Idx": {clock.number}
    }}
  }},
"""


def nested(clock: Clock, names: tuple[str, ...], sequence: int | None) -> Iterator[str]:
    """Operations within each other, then what the innermost asks for."""
    start = clock.passes()
    clock.number += 1
    inner = list(nested(clock, names[1:], sequence)) if names[1:] else [memory(clock, 4096)]
    numbered = "" if sequence is None else f'"Sequence number": {sequence}, "Fwd thread id": 0, '
    idle = f'"External id": {clock.number},"Record function id": 0, {numbered}"Ev Idx": {clock.number}'
    yield event(names[0], start, clock.passes(), idle)
    yield from inner


def around(clock: Clock, name: str, inner: Iterator[str], kind: str = "cpu_op") -> Iterator[str]:
    start = clock.passes()
    found = list(inner)
    yield event(name, start, clock.passes(), f'"External id": {clock.number}, "Ev Idx": {clock.number}', kind)
    yield from found


def step(clock: Clock, first: int) -> Iterator[str]:
    layers = [(kind, f"{kind}{i}") for i in range(BLOCKS) for kind in ("conv", "norm", "relu")]
    names = {"conv": "aten::conv2d", "norm": "aten::batch_norm", "relu": "aten::relu"}
    for number, (kind, layer) in enumerate(layers):
        chain = (names[kind], *INNER[names[kind]])
        yield from around(clock, f"layer::{layer}", nested(clock, chain, first + number))
    for number, (kind, _) in reversed(list(enumerate(layers))):
        node = f"{kind.title()}Backward0"
        chain = (f"autograd::engine::evaluate_function: {node}", node, f"aten::{kind}_backward")
        yield from nested(clock, chain, first + number)
        yield memory(clock, -4096)
    updates = (nested(clock, ("aten::add_",), None) for _ in layers)
    yield from around(clock, "Optimizer.step#SGD.step", (each for one in updates for each in one), "user_annotation")


def make(folder: Path, size: int) -> int:
    """Writes what `benchmarks/trace.py` reads; returns the number of events."""
    clock, written, events, number = Clock(), 0, 0, 0
    with gzip.open(folder / "round0.json.gz", "wt", compresslevel=4) as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms",\n"traceEvents": [\n')
        while written < size:
            text = "".join(around(clock, f"step::{number}", step(clock, number * 3 * BLOCKS)))
            file.write(text)
            written += len(text)
            events += text.count('"ph"')
            number += 1
        file.write('  {"ph": "M", "name": "process_name", "ts": 0, "pid": 1, "tid": 0}\n], "traceName": "made"}')
    workload = {"model": "made/deep", "network": network(), "recipe": {}, "task": "train", "engine": "torch"}
    (folder / "workload.json").write_text(json.dumps(workload))
    return events


# --- reading it -------------------------------------------------------------------------------------------------------


def report(folder: Path) -> None:
    """In a process of its own, so that its memory is its own: read, assembled, and summed up by layer and phase."""
    from timetrial.profiling.profile import load
    from timetrial.records.profiled import Profiled
    from timetrial.records.record import Outcome, Record

    run = Profiled(format="kineto", steps=1, plain=(1.0,), profiled=(1.0,), trace=".")
    cell = {"engine": "torch", "placement": "cpu"}
    record = Record(run="a", trial="a", study="a", block=0, cell=cell, outcome=Outcome(kind="ok"), profile=run)
    start = time.perf_counter()
    found = load(folder, record)
    rows = len(found.per_step("layer", "phase")), len(found.per_step("type"))
    seconds = time.perf_counter() - start
    told = {"ops": len(found.ops), "steps": found.header.steps, "rows": rows, "attributed": found.header.attributed}
    print(json.dumps({**told, "seconds": seconds, "cpu": sum(os.times()[:2]), "bytes": peak()}))


def peak() -> int:
    """Of this process since it was started; `ru_maxrss` would hold that of its parent as well."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200, help="unpacked")
    parser.add_argument("--keep", type=Path, help="make it here and leave it; used again where it is")
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.report:
        report(asked.report)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        if not (folder / "workload.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            print(f"made a trace of {asked.megabytes} MB, {make(folder, asked.megabytes * 10**6):,} events")
        words = [sys.executable, __file__, "--report", str(folder)]
        found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(f"{found['ops']:,} operations of {found['steps']} steps, {found['attributed']:.1%} of their time attributed")
    print(f"time                                     {found['seconds']:.2f} s ({found['cpu']:.2f} s of CPU), "
          f"aim {SECONDS:g} s")  # fmt: skip
    print(f"peak of resident memory                  {found['bytes'] / 2**20:,.0f} MiB, aim {BYTES / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
