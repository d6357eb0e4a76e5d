"""How long statistics over very many records take: makes them, and sums up every cell in one table with intervals.

python benchmarks/records.py [--records 100000] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SECONDS, BYTES = 10.0, 2**30
PROCESSES = 5  # of a cell
STUDIES = 20


def make(folder: Path, count: int) -> None:
    """Records as real runs leave them: ten laps, twenty steps of warm-up, all the rest."""
    draw = random.Random(1)
    for number in range(count):
        cell, block = divmod(number, PROCESSES)
        place = folder / f"study-{cell % STUDIES:02d}"
        if block == 0:
            place.mkdir(parents=True, exist_ok=True)
        content = json.dumps(_record(place.name, cell, block, draw)) + "\n"
        (place / f"{cell:016x}-ba6adf-{block:02d}.json").write_text(content)


def _record(study: str, cell: int, block: int, draw: random.Random) -> dict[str, Any]:
    step = 1e-3 * (1 + cell % 97) * draw.lognormvariate(0, 0.01)
    trial = f"{cell:016x}"
    return {
        "run": f"{trial}-ba6adf-{block:02d}", "trial": trial, "study": study, "block": block,
        "cell": {
            "model": f"libraries/mlp-2x{cell}", "engine": "torch", "placement": "cpu", "task": "train",
            "dataset": "fashion-mnist-6000", "batch": 64, "precision": "float32", "variant": "", "seed": 1,
            "loop": "step", "compile": "default", "allocator": "tuned", "tf32": False, "deterministic": False,
            "network": f"libraries/mlp-2x{cell}", "parameters": 56714, "parameters_all": 56714,
            "multiply_adds": 706752, "version": "2.13.0", "profile": "quick",
        },
        "outcome": {"kind": "ok"},
        "phases": {name: draw.random() for name in ("import", "build", "place", "first_step", "warmup", "steady")},
        "laps": {
            "seconds": [step * draw.lognormvariate(0, 0.005) for _ in range(10)], "steps": 32,
            "warmup": [step * draw.lognormvariate(0.1, 0.05) for _ in range(20)], "stable": True,
        },
        "effort": {
            "cpu_seconds": draw.random(), "wall_seconds": draw.random(), "threads": 4, "involuntary_switches": 333,
            "idle_step_seconds": 3.5e-8, "clock_resolution": 1e-9,
        },
        "equivalence": {"passed": True, "forward": 3.0e-07, "gradient": 6.0e-07, "steps": 5.1e-06},
        "memory": {"resident_after_import": 551464960, "resident_after_steady": 600000000 + draw.randrange(10**7)},
        "includes": "batches already on the device: forward, loss, backward, update, wait for the device",
        "versions": {"torch": "2.13.0+cpu", "numpy": "2.4.6"},
        "readback": {"dtype": "float32", "device": "cpu", "threads": 1, "tf32": False, "layout": "channels_first"},
        "machine": "183ae2a573f5a2a2",
        "hashes": {"network": "a78d8c59f85abf21", "recipe": "0123456789abcdef", "adapter": "f5520343994409f4"},
        "parent_cpu_share": 0.0004, "started": "2026-01-02T03:04:05+00:00", "wall_seconds": 5.5,
    }  # fmt: skip


def report(folder: Path) -> dict[str, float]:
    """What a person would type, in a process of its own: all cells, one line each."""
    command = [sys.executable, "-m", "timetrial", "show", "--brief", "--records", str(folder)]
    start = time.perf_counter()
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    seconds = time.perf_counter() - start
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)  # of this one child: nothing else was started
    cpu = spent.ru_utime + spent.ru_stime
    return {"cells": len(lines), "seconds": seconds, "cpu": cpu, "bytes": spent.ru_maxrss * 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000, help="how many are made")
    parser.add_argument("--keep", type=Path, help="make them here and leave them; used again where they are")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        if not any(folder.glob("study-*")):
            make(folder, asked.records)
        found = report(folder)
    print(f"{asked.records:,} records, {found['cells']:,} cells with intervals")
    print(f"time                                     {found['seconds']:.2f} s ({found['cpu']:.2f} s of CPU), "
          f"aim {SECONDS:g} s")  # fmt: skip
    print(f"peak of resident memory                  {found['bytes'] / 2**20:,.0f} MiB, aim {BYTES / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
