"""What a run leaves. Raw values are kept; what was not measured is None, never zero."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from timetrial.records.energy import Energy
from timetrial.records.profiled import Profiled
from timetrial.spec.operations import operations
from timetrial.spec.trial import Trial

SCHEMA = 1

# A twin is the anchor cell under a second name: their difference is noise. Times of the others count for nothing.
Role = Literal["cell", "twin", "memory", "energy", "profile"]
TIMED: tuple[Role, ...] = ("cell", "twin")
APART: tuple[Role, ...] = ("energy", "profile")  # neither time nor memory is that of a usual run
Kind = Literal["ok", "unsupported", "missing", "oom", "timeout", "crash", "diverged", "wrong", "invalid", "skipped"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limit(_Model):
    """What a run was stopped at: with more of it, it may come to its end."""

    timeout: float | None = None  # seconds
    memory: float | None = None  # bytes


class Outcome(_Model):
    kind: Kind
    reason: str = ""
    remedy: str = ""
    exit: str = ""  # "exit 3", "signal SIGSEGV"
    limit: Limit | None = None  # of the study, where that stopped it
    stderr: tuple[str, ...] = ()  # its last lines

    @property
    def ok(self) -> bool:
        return self.kind == "ok"


class Laps(_Model):
    """Seconds a step, lap by lap, each lap of `steps` steps; the warm-up's single steps before them."""

    seconds: tuple[float, ...]
    steps: int
    warmup: tuple[float, ...]
    stable: bool
    repeated: tuple[float, ...] = ()  # of some laps after them, that met one input again and again
    device: tuple[float, ...] = ()  # the same laps by the device's own clock, where it has one
    input: tuple[float, ...] = ()  # of them, what a step waited for its batch, where that can be told
    epoch: int | None = None  # steps of an epoch, where laps are whole epochs


class Effort(_Model):
    """What the steady laps took of the machine, and what the loop itself cost a step."""

    cpu_seconds: float
    wall_seconds: float
    threads: int | None
    involuntary_switches: int
    idle_step_seconds: float
    clock_resolution: float

    @property
    def cores_used(self) -> float:
        return self.cpu_seconds / self.wall_seconds if self.wall_seconds else 0.0


class Progress(_Model):
    """How a training went, about once a second; `step_seconds` of the steps since the last word."""

    epoch: int
    step: int
    seconds: float  # since it began
    step_seconds: float
    loss: float
    resident: int | None = None


class Training(_Model):
    losses: tuple[float, ...]  # of the last batch of each epoch
    epochs: int
    accuracy: float | None = None
    mse: float | None = None
    mae: float | None = None
    saved_bytes: int | None = None
    progress: tuple[Progress, ...] = ()
    history: tuple[dict[str, float], ...] = ()  # epoch by epoch: step, loss, and accuracy or error where it was tested
    baselines: dict[str, dict[str, float]] = {}  # mse and mae of guesses that need no network, over the same samples
    unit: str = ""  # of the targets: one is `unit_size` of them
    unit_size: float | None = None


class Equivalence(_Model):
    """The gate's answer for this trial: the worst error of each stage, relative to the float64 reference."""

    passed: bool
    forward: float | None
    gradient: float | None
    steps: float | None
    failure: str = ""  # the first array that differs, and by how much
    differences: tuple[str, ...] = ()  # named differences of the framework's definition that the reference followed


class Record(_Model):
    schema_version: int = SCHEMA
    run: str
    trial: str
    study: str
    block: int
    role: Role = "cell"
    cooldown: float = 0.0  # seconds that the machine was left alone before the run
    session: str = ""  # of one start of a study; its canary and its limits lie beside the records
    attempt: int = 0  # of those made because the machine was not steady; the last one counts
    flags: tuple[str, ...] = ()  # why the machine was not steady
    remarks: tuple[str, ...] = ()  # what else was seen of the machine meanwhile
    canary: dict[str, Any] = {}  # before and after the run
    contention: dict[str, Any] = {}  # what others took of the machine during the run
    cell: dict[str, Any]  # the trial's coordinates and sizes, flat, for queries
    outcome: Outcome
    phases: dict[str, float] = {}  # seconds
    laps: Laps | None = None
    effort: Effort | None = None
    training: Training | None = None
    equivalence: Equivalence | None = None
    memory: dict[str, int] = {}  # bytes, by method
    energy: Energy | None = None  # of runs that were made for it
    profile: Profiled | None = None  # likewise
    includes: str = ""  # the timed region in words
    versions: dict[str, str] = {}
    readback: dict[str, Any] = {}
    machine: str = ""  # fingerprint; the inventory lies beside the records
    hashes: dict[str, str] = {}
    parent_cpu_share: float | None = None
    started: str = ""
    wall_seconds: float | None = None


def describe_cell(trial: Trial) -> dict[str, Any]:
    network = trial.network
    return {
        **trial.coordinates,
        "network": network.name,
        "parameters": network.parameter_count(trainable_only=True),
        "parameters_all": network.parameter_count(),
        "multiply_adds": network.multiply_adds,
        "operations": getattr(operations(network, trial.recipe.batch), trial.task),  # of one step
    }
