"""CIFAR-10 from its fetched package to the arrays that engines map: in which time, with how much memory?

python benchmarks/data.py [--folder FOLDER] [--repetitions 3] [--core N]

The package is fetched by its index's own client into the folder, unless it is there; that is not timed. Each repetition
is a process of its own on one core, with an empty data folder: unpack, read and check, keep, prepare for a CNN. What is
kept and prepared is written to disk and flushed, and its checksums are compared with the pinned ones.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from timetrial.data import shelf
from timetrial.data.fetching.clients import fetch
from timetrial.data.fetching.listening import Quiet
from timetrial.data.fetching.unpacking import unpack
from timetrial.data.prepare import prepare
from timetrial.data.reading import facts, read_folder
from timetrial.data.registry import Dataset, find
from timetrial.data.sources import Package
from timetrial.disk.home import home
from timetrial.zoo import find as find_model

SECONDS, GIBIBYTES = 30.0, 2.0  # aims
PARTS = ("unpack", "read and check", "keep", "prepare")


def package_of(dataset: Dataset) -> Package:
    return next(source for source in dataset.sources if isinstance(source, Package))


def one(package: Path) -> dict[str, float]:
    """All of it, in this process, whose data folder is empty."""
    dataset, marks = find("cifar10"), [time.perf_counter()]
    with tempfile.TemporaryDirectory() as place:
        raw = Path(place) / "raw"
        raw.mkdir()
        unpack(package, raw, package_of(dataset).members)
        marks.append(time.perf_counter())
        samples = read_folder(dataset, raw)
        marks.append(time.perf_counter())
        shelf.keep("cifar10", samples, facts(samples), dataset.content)
        marks.append(time.perf_counter())
        del samples
        model = find_model("libraries/cnn-2x16")
        prepare("cifar10", model.network, model.recipe, 1, Path(place) / "prepared", preprocessing=model.preprocessing)
        marks.append(time.perf_counter())
    seconds = [end - start for start, end in pairwise(marks)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # in kibibytes
    return {**dict(zip(PARTS, seconds, strict=True)), "all": marks[-1] - marks[0], "GiB": peak}


def measured(package: Path, core: int) -> dict[str, float]:
    command = ["taskset", "-c", str(core), sys.executable, __file__, "--one", str(package)]
    with tempfile.TemporaryDirectory() as empty:
        variables = {**os.environ, "TIMETRIAL_HOME": empty, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compare(options: argparse.Namespace) -> int:
    folder = Path(options.folder) if options.folder else home() / "benchmarks" / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    package = fetch(package_of(find("cifar10")), folder, Quiet())
    runs = []
    for _ in range(options.repetitions):
        runs.append(measured(package, options.core))
        words = ", ".join(f"{part} {runs[-1][part]:.1f} s" for part in PARTS)
        print(f"{runs[-1]['all']:6.1f} s, peak {runs[-1]['GiB']:.2f} GiB ({words})", flush=True)
    seconds, peak = statistics.median(run["all"] for run in runs), max(run["GiB"] for run in runs)
    print(f"median {seconds:.1f} s (aim: under {SECONDS:g} s), peak {peak:.2f} GiB (aim: under {GIBIBYTES:g} GiB)")
    return int(seconds >= SECONDS or peak >= GIBIBYTES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="where the package is, or is fetched to")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(Path(options.one))))
        return 0
    return compare(options)


if __name__ == "__main__":
    sys.exit(main())
