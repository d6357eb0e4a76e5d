"""The whitening of `zca` against scikit-learn's PCA with whitening, turned back: the same numbers, in which time?

python benchmarks/zca.py [--samples 50000] [--values 3072] [--repetitions 3]

Every measurement is a process of its own on one core, in random order. scikit-learn takes the covariance's
eigenvectors (`covariance_eigh`), the fastest of its exact ways for so many samples.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from timetrial.disk.home import engines_home

PACKAGES = ("scikit-learn==1.9.1", "joblib==1.6.0", "threadpoolctl==3.8.0", "narwhals==2.28.0", "cloudpickle==3.1.2")
WAYS = ("timetrial", "scikit-learn")
SHOWN = 1000  # samples whose results are compared


def home() -> Path:
    """Installed apart, so that nothing else changes; NumPy and SciPy are those that are there."""
    folder = engines_home().parent / "benchmarks" / PACKAGES[0]
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *PACKAGES]
        subprocess.run(pip, check=True)
    return folder


def images(samples: int, values: int) -> np.ndarray:
    """Neighbours alike, as in images: sums of waves of falling strength, and some noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((samples, values), dtype=np.float32)
    for reach in (1, 4, 16, 64):
        x[:, reach:] += x[:, :-reach].copy()
    return x / np.float32(4)


def by_timetrial(x: np.ndarray) -> np.ndarray:
    from timetrial.data.steps import read_step

    return read_step("zca?epsilon=0").fitted(x)(x)


def by_scikit_learn(x: np.ndarray) -> np.ndarray:
    from sklearn.decomposition import PCA

    pca = PCA(whiten=True, svd_solver="covariance_eigh").fit(x)
    return pca.transform(x) @ pca.components_


def one(way: str, samples: int, values: int, out: Path) -> None:
    x = images(samples, values)
    start = time.perf_counter()
    found = (by_timetrial if way == "timetrial" else by_scikit_learn)(x)
    seconds = time.perf_counter() - start
    np.save(out, found[:SHOWN])
    print(json.dumps({"seconds": seconds}))


def measured(way: str, samples: int, values: int, core: int, folder: Path) -> float:
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    paths = [str(home()), *filter(None, sys.path)] if way == "scikit-learn" else [*filter(None, sys.path)]
    command = [sys.executable, __file__, "--one", way, "--samples", str(samples), "--values", str(values)]
    command = ["taskset", "-c", str(core), *command, "--out", str(folder / f"zca-{way}.npy")]
    variables = {**os.environ, **limits, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout)["seconds"])


def compare(options: argparse.Namespace) -> int:
    home()
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(options.repetitions):
        for way in random.sample(WAYS, len(WAYS)):
            seconds[way].append(measured(way, options.samples, options.values, options.core, folder))
            print(f"{way:13} {seconds[way][-1]:8.2f} s", flush=True)
    ours, theirs = (np.load(folder / f"zca-{way}.npy") for way in WAYS)
    ratio = statistics.median(seconds["timetrial"]) / statistics.median(seconds["scikit-learn"])
    print(f"largest difference of {SHOWN} whitened samples: {np.abs(ours - theirs).max():.2g}")
    print(f"time of timetrial / time of scikit-learn: {ratio:.2f} (goal: at most 1.5)")
    return int(ratio > 1.5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--values", type=int, default=3072)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--out", default="/tmp/timetrial-zca", help="a folder for the results that are compared")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.samples, options.values, Path(options.out))
        return 0
    return compare(options)


if __name__ == "__main__":
    sys.exit(main())
