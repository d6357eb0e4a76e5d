"""Records written by hand: what a study leaves when its engines are fast, slow, alone, wrong, hostile or not there."""

from __future__ import annotations

from typing import Any

from timetrial.records.record import Effort, Equivalence, Laps, Outcome, Record, Training

STUDY = "made"
MACHINE = "0123456789abcdef"
HOSTILE = '</script><script>window.hostile=1</script><!--<img src=x onerror="window.hostile=2">\u2028\'"${7*7}{{7*7}}'
DIFFERENCES = ("batch_norm_variance: biased", "rmsprop_epsilon: inside the root")

INVENTORY: dict[str, Any] = {
    "cpu": {
        "model": "Made Processor 9000", "physical_cores": 4, "logical_cores": 8, "allowed": [0, 1, 2, 3],
        "flags": ["avx2", "fma"],
    },
    "memory": {"total": 16 * 2**30},
    "limits": {"cgroup": 2, "cpus": 4.0, "memory": None},
    "virtualisation": {"hypervisor": True, "product": "Made Hypervisor", "container": "docker"},
    "gpus": [{"name": "Made GPU", "memory": 8 * 2**30, "driver": "1.2.3"}],
    "software": {"kernel": "6.1.0-made", "os": "Made Linux 1", "libc": "glibc 2.36"},
    "load": [0.25, 0.5, 0.75],
}  # fmt: skip


def cell(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "model": "made/cnn", "engine": name, "placement": "cpu:2", "task": "train", "dataset": "synthetic", "batch": 32,
        "precision": "float32", "loop": "step", "compile": "default", "allocator": "tuned", "tf32": False,
        "deterministic": False, "network": "cnn", "parameters": 100, "parameters_all": 100, "multiply_adds": 1000,
        "version": "1.0", "profile": "quick", **changes,
    }  # fmt: skip


def record(engine: str, block: int, seconds: float, start: float = 1.0, **changes: Any) -> Record:
    """One good run. Laps scatter by a thousandth around `seconds`."""
    coordinates = cell(engine, **changes.pop("cell", {}))
    laps = tuple(seconds * factor for factor in (0.999, 1.0, 1.001))
    values: dict[str, Any] = {
        "run": f"{engine}-{block}".replace("/", "_"), "trial": f"trial-{engine}-{coordinates['batch']}{'-tf32' if coordinates['tf32'] else ''}", "study": STUDY,
        "block": block, "cell": coordinates, "outcome": Outcome(kind="ok"),
        "phases": {"import": 0.7 * start, "build": 0.1 * start, "first_step": 0.2 * start, "warmup": 30 * seconds, "steady": 1.0},
        "laps": Laps(seconds=laps, steps=64, warmup=(2 * seconds, seconds), stable=True),
        "effort": Effort(cpu_seconds=2.0, wall_seconds=1.0, threads=4, involuntary_switches=3, idle_step_seconds=1e-7, clock_resolution=1e-9),
        "equivalence": Equivalence(passed=True, forward=1.2e-7, gradient=3.4e-6, steps=5.6e-6),
        "memory": {"resident_after_steady": 300 * 2**20}, "includes": "forward, loss, backward, update, wait",
        "versions": {engine: "1.0", "numpy": "2.0"}, "machine": MACHINE, "hashes": {"adapter": "a"},
        "parent_cpu_share": 0.0004, "started": "2026-01-02T03:04:05+00:00",
    }  # fmt: skip
    return Record(**{**values, **changes})


def failed(engine: str, outcome: Outcome, **changes: Any) -> Record:
    nothing = {"phases": {}, "laps": None, "effort": None, "equivalence": None, "memory": {}}
    return record(engine, 0, 1.0, **{**nothing, "outcome": outcome, **changes})


def runs(engine: str, seconds: float, start: float = 1.0, processes: int = 3, **changes: Any) -> list[Record]:
    """Processes that differ by half a percent."""
    return [record(engine, i, seconds * (1 + 0.005 * (i - 1)), start, **changes) for i in range(processes)]


def missing() -> Record:
    return failed(
        "tensorflow",
        Outcome(kind="missing", reason="tensorflow is not installed", remedy="timetrial engines add tensorflow"),
    )


def wrong() -> Record:
    proof = Equivalence(passed=False, forward=0.5, gradient=None, steps=None, failure="differs in layer dense")
    outcome = Outcome(kind="wrong", reason="differs from the reference first in layer dense", remedy="timetrial verify")
    return failed("keras-tensorflow", outcome, equivalence=proof)


def crash() -> Record:
    outcome = Outcome(
        kind="crash",
        reason=f"it broke {HOSTILE}",
        remedy=HOSTILE,
        exit="signal SIGSEGV",
        stderr=("first line", HOSTILE),
    )
    return failed(f"evil{HOSTILE}", outcome)


def study() -> list[Record]:
    """A quick step after a slow start, a slow step after a quick start, one process alone, and three that failed."""
    trained = Training(losses=(1.0, 0.5), epochs=2, accuracy=0.875)
    return [
        *runs("jax", 1e-3, start=4.0, training=trained),
        *runs("torch", 2e-3, start=1.0),
        *runs("keras-torch", 2.01e-3, start=2.0, equivalence=Equivalence(
            passed=True, forward=1e-7, gradient=1e-6, steps=None, differences=DIFFERENCES)),
        *runs(f"odd{HOSTILE}", 5e-3, processes=1),
        missing(), wrong(), crash(),
    ]  # fmt: skip
