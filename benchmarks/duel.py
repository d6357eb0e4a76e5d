"""Against pyperf, used as its manual says: one torch step, twice the same and once slowed down by 3 %.

python benchmarks/duel.py [--repetitions 20] [--processes 6] [--pyperf-processes 20] [--keep FILE]

Each repetition is a whole comparison made anew by both tools, in turn who begins. pyperf runs one benchmark after the
other with the settings that it has by itself (20 processes of 3 values and a warm-up; not `--fast`, which its manual
calls rough) and says with `compare_to` what is significant. Timetrial runs the three cells in randomised blocks, its
proofs and its watch over the machine included, and gives its verdict. It is given fewer processes, to take less time:
with 12 it takes about as long as pyperf. A repetition is one line of --keep, so that a stopped benchmark goes on where
it was; lines made with other numbers of processes are refused.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from timetrial.disk.home import engines_home
from timetrial.engines import locate, pins, registry
from timetrial.records.choice import counted
from timetrial.runner.batches import proof_batches
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe
from timetrial.spec.trial import Settings
from timetrial.spec.weights import initial_weights
from timetrial.stats.intervals import process_value
from timetrial.stats.verdicts import verdict

HERE = Path(__file__).parent
PYPERF = "pyperf==2.10.0"
NAMES = ("plain", "again", "slowed")
LAYERS = [{"dense": {"units": 256, "activation": "relu"}}, {"dense": {"units": 10, "activation": "softmax"}}]
NETWORK = {"input": {"shape": [784]}, "layers": LAYERS}
RECIPE = {"batch": 64, "optimiser": {"kind": "sgd", "rate": 0.01, "momentum": 0.9}}


def job(folder: Path) -> Path:
    network, recipe = Network.model_validate(NETWORK), Recipe.model_validate(RECIPE)
    arrays = {**initial_weights(network, 1), **proof_batches(network, recipe, 8, seed=1)}
    np.savez(folder / "arrays.npz", **arrays)
    settings = {**Settings().model_dump(), "device": "cpu", "threads": 1, "seed": 1, "precision": "float32"}
    content = {
        "network": network.lowered(recipe.loss), "recipe": recipe.model_dump(mode="json"),
        "arrays": str(folder / "arrays.npz"), "settings": settings,
    }  # fmt: skip
    path = folder / "job.json"
    path.write_text(json.dumps(content))
    return path


# --- pyperf -----------------------------------------------------------------------------------------------------------


def pyperf_home() -> Path:
    """Installed apart, so that no engine's environment changes."""
    folder = engines_home().parent / "benchmarks" / PYPERF
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), PYPERF]
        subprocess.run(pip, check=True)
    return folder


def by_pyperf(path: Path, folder: Path, core: int, processes: int) -> dict[str, Any]:
    interpreter = locate.locate("torch").interpreter
    home = pyperf_home()
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    tuned = {"OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "1073741824", "MALLOC_MMAP_THRESHOLD_": "1073741824"}
    variables = {**kept, **tuned, "PYTHONPATH": str(home)}
    start = time.monotonic()
    for name in NAMES:
        out = folder / f"{name}.json"
        out.unlink(missing_ok=True)
        command = [str(interpreter), str(HERE / "pyperf_step.py"), "--job", str(path), "--quiet"]
        command += [
            "--processes",
            str(processes),
            "--affinity",
            str(core),
            "--inherit-environ",
            ",".join(variables),
            "-o",
            str(out),
        ]
        command += ["--slowed"] if name == "slowed" else []
        subprocess.run(command, env=variables, check=True, stdout=subprocess.DEVNULL)
    words = {name: _compared(interpreter, folder, name, variables) for name in ("again", "slowed")}
    return {"seconds": time.monotonic() - start, **words}


def _compared(interpreter: Path | None, folder: Path, name: str, variables: dict[str, str]) -> str:
    command = [str(interpreter), "-m", "pyperf", "compare_to", str(folder / "plain.json"), str(folder / f"{name}.json")]
    told = subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout
    if "not significant" in told.lower():
        return "undecided"
    return "slower" if "slower" in told else "faster" if "faster" in told else "same"


# --- Timetrial --------------------------------------------------------------------------------------------------------


def install() -> None:
    torch = registry.ENGINES["torch"]
    ours = {
        name: registry.Engine(
            name=name, adapter=f"{HERE / 'slowed.py'}:{name.title()}", family="torch", needs=torch.needs,
            distributions=torch.distributions, summary="torch", check=torch.check,
        )
        for name in NAMES
    }  # fmt: skip
    together = MappingProxyType({**registry.ENGINES, **ours})
    for module in (registry, locate, pins):
        module.ENGINES = together  # type: ignore[attr-defined]


def by_timetrial(folder: Path, processes: int, seed: int) -> dict[str, Any]:
    from timetrial.cli.loading import trials_of
    from timetrial.runner.campaign import Campaign
    from timetrial.spec.study import parse_study

    asked = {
        "study": "duel", "networks": [{**NETWORK, "name": "step"}], "engines": list(NAMES), "recipe": RECIPE,
        "samples": 512, "profile": "quick", "repeat": processes, "anchor": False, "seed": seed,
    }  # fmt: skip
    study = parse_study(asked, "duel")
    start = time.monotonic()
    records = list(Campaign(study, trials_of(study), folder, fresh=True).go())
    seconds = time.monotonic() - start
    if failed := [record.outcome for record in records if not record.outcome.ok]:
        raise SystemExit(f"a run failed: {failed[0].kind}, {failed[0].reason}")
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    for record in counted(records):
        assert record.laps is not None
        times[str(record.cell["engine"])].append(process_value(record.laps.seconds))
    found = {name: verdict(times[name], times["plain"]) for name in ("again", "slowed")}
    return {"seconds": seconds, **{name: one.word for name, one in found.items()}, "times": times}


# --- both -------------------------------------------------------------------------------------------------------------


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--processes", type=int, default=6, help="of each of Timetrial's three cells")
    parser.add_argument("--pyperf-processes", type=int, default=20, help="of each of pyperf's three benchmarks")
    parser.add_argument("--keep", type=Path, default=Path("duel.jsonl"))
    asked = parser.parse_args(given)
    install()
    core = min(os.sched_getaffinity(0))
    numbers = {"pyperf": asked.pyperf_processes, "timetrial": asked.processes}
    done = kept(asked.keep, numbers)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = job(folder)
        for number in range(len(done), asked.repetitions):
            parts = {
                "pyperf": lambda: by_pyperf(path, folder, core, asked.pyperf_processes),
                "timetrial": lambda number=number: by_timetrial(folder / "records", asked.processes, number),
            }
            order = list(parts) if number % 2 else list(parts)[::-1]
            done.append({**{tool: parts[tool]() for tool in order}, "processes": numbers})
            with asked.keep.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
            print(f"repetition {number + 1}: " + "; ".join(_said(tool, done[-1][tool]) for tool in parts), flush=True)
    show(done, numbers)


def kept(path: Path, numbers: dict[str, int]) -> list[dict[str, Any]]:
    """The repetitions that were made before; only like ones are counted together."""
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if any(one.get("processes") != numbers for one in done):
        raise SystemExit(f"{path}: made with other numbers of processes; name another file with --keep")
    return done


def _said(tool: str, one: dict[str, Any]) -> str:
    return f"{tool} {one['seconds']:.0f} s, the same is {one['again']}, 3 % is {one['slowed']}"


def show(done: list[dict[str, Any]], numbers: dict[str, int]) -> None:
    print(f"\n{len(done)} whole comparisons of one torch step with itself, and with itself slowed down by 3 %")
    print(f"{'':12}{'processes':>10}{'false alarms':>22}{'found the slow-down':>22}{'seconds each':>15}")
    for tool in ("pyperf", "timetrial"):
        false = [one[tool]["again"] in ("faster", "slower") for one in done]
        found = [one[tool]["slowed"] == "slower" for one in done]
        seconds = np.median([one[tool]["seconds"] for one in done])
        print(f"{tool:12}{numbers[tool]:>10}{_share(false):>22}{_share(found):>22}{seconds:>15.0f}")


def _share(values: list[bool]) -> str:
    """With the 95 % interval of Clopper and Pearson."""
    from scipy.stats import binomtest

    count, total = sum(values), len(values)
    bounds = binomtest(count, total).proportion_ci()
    return f"{count}/{total} ({100 * bounds.low:.0f}-{100 * bounds.high:.0f} %)"


if __name__ == "__main__":
    sys.exit(main())
