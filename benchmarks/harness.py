"""What Timetrial itself costs: its share of a lap, the parent's CPU while an engine runs, and the command line.

python benchmarks/harness.py [--records FOLDER]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from timetrial.records.store import Store

LARGE = """
study: large
models: [{models}]
engines: [torch, tensorflow, jax, keras-torch, keras-tensorflow, keras-jax, torch@2.9.1, jax@0.9.0]
placements: [cpu, "cpu:2"]
tasks: [train, infer]
"""


def command(*words: str, times: int) -> tuple[float, float]:
    """Median wall and CPU seconds of a command of the installed timetrial."""
    walls, cpus = [], []
    for _ in range(times):
        before, start = os.times(), time.perf_counter()
        subprocess.run([sys.executable, "-m", "timetrial", *words], check=True, stdout=subprocess.DEVNULL)
        walls.append(time.perf_counter() - start)
        after = os.times()
        cpus.append(after.children_user - before.children_user + after.children_system - before.children_system)
    return float(np.median(walls)), float(np.median(cpus))


def command_line() -> None:
    wall, cpu = command("--help", times=15)
    print(f"timetrial --help                         {wall:.3f} s ({cpu:.3f} s of CPU), aim 0.3 s")
    from timetrial import zoo

    models = [name for name in zoo.names() if name.startswith("libraries/")]
    models += [name for name in zoo.names() if name.startswith("backends/")][: 44 - len(models)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.yaml"
        path.write_text(LARGE.format(models=", ".join(f'"{name}"' for name in models)))
        wall, cpu = command("plan", str(path), "--json", times=7)
    print(f"timetrial plan, {len(models) * 8 * 4:,} trials             {wall:.3f} s ({cpu:.3f} s of CPU), aim 1 s")


def runs(folder: Path) -> None:
    """From records of real runs: what the loop costs a step, and what the parent used meanwhile."""
    shares, parents = [], []
    for record in Store(folder).records():
        if not record.outcome.ok or record.laps is None or record.effort is None:
            continue
        step = float(np.median(record.laps.seconds))
        shares.append(record.effort.idle_step_seconds / step)
        parents.append(record.parent_cpu_share or 0.0)
    if not shares:
        raise SystemExit(f"{folder}: no finished runs; `timetrial quick` makes some")
    print(f"the loop's share of a step, {len(shares)} runs       median {100 * np.median(shares):.4f} %, "
          f"worst {100 * max(shares):.4f} %, aim 0.5 %")  # fmt: skip
    print(f"the parent's CPU while an engine runs    median {100 * np.median(parents):.2f} %, "
          f"worst {100 * max(parents):.2f} % of one core, aim 1 %")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, help="records of runs; without it a small study is run first")
    asked = parser.parse_args()
    command_line()
    if asked.records:
        runs(asked.records)
        return
    with tempfile.TemporaryDirectory() as folder:
        words = ["quick", "--records", folder, "--repeat", "1", "--model", "quick/mlp", "--model", "quick/cnn"]
        subprocess.run([sys.executable, "-m", "timetrial", *words], check=True, stdout=subprocess.DEVNULL)
        runs(Path(folder))


if __name__ == "__main__":
    main()
