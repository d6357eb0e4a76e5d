"""What this machine can do at most, measured on it with the same libraries: the yardstick for "percent of the limit".

Every installed engine multiplies matrices with its own routine, NumPy does too, and NumPy copies memory; each in a
process of its own, pinned, with a given number of threads. The best of all libraries counts as the machine's limit: it
is what somebody has been seen to reach, no figure from a data sheet. Nothing is started here: `measure` is given a
function that runs one question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from timetrial.meters.hardware import Machine
from timetrial.spec.placement import Placement

Kind = Literal["product", "copy", "add"]
Event = Mapping[str, Any]

DTYPES = ("float32", "float64", "bfloat16")
SIZES = (256, 512, 1024, 2048)
GPU_SIZES = (1024, 2048, 4096, 8192)
NUMPY = "reference"  # the engine that is plain NumPy
# An array is to be larger than the last-level cache; three of them have to fit beside everything else.
LEAST_BYTES, MOST_BYTES = 64 * 2**20, 256 * 2**20


@dataclass(frozen=True)
class Question:
    """One process: all sizes and dtypes of one engine on one placement. `job` lacks what only the runner knows: the
    engine's `adapter` and the `cores`."""

    engine: str
    placement: Placement
    job: Mapping[str, Any]


@dataclass(frozen=True)
class Attempt:
    """The best of several laps with one size."""

    kind: Kind
    engine: str
    version: str
    device: str
    threads: int
    dtype: str
    size: int  # rows of the matrices, or bytes of an array
    rate: float  # operations or bytes a second


@dataclass(frozen=True)
class MachineLimits:
    """Every attempt is kept, and why there are none where there are none."""

    attempts: tuple[Attempt, ...]
    missing: tuple[str, ...] = ()

    def best(self, dtype: str, threads: int, device: str = "cpu") -> Attempt | None:
        """The fastest product of any library; with these very threads, because a limit grows with them."""
        return self._best("product", threads, device, dtype)

    def bandwidth(self, threads: int, kind: Literal["copy", "add"] = "add") -> Attempt | None:
        return self._best(kind, threads, "cpu", "float64")

    def _best(self, kind: Kind, threads: int, device: str, dtype: str) -> Attempt | None:
        wanted = (kind, threads, device, dtype)
        fitting = [one for one in self.attempts if (one.kind, one.threads, one.device, one.dtype) == wanted]
        return max(fitting, key=lambda one: one.rate, default=None)


def questions(engines: Sequence[str], placements: Iterable[Placement], machine: Machine) -> tuple[Question, ...]:
    """NumPy on every number of threads, and each engine on every placement."""
    asked = []
    for placement in dict.fromkeys(placements):
        gpu = placement.device != "cpu"
        names = engines if gpu else dict.fromkeys([NUMPY, *engines])
        asked += [Question(name, placement, _job(name, placement, machine)) for name in names]
    return tuple(asked)


def _job(engine: str, placement: Placement, machine: Machine) -> dict[str, Any]:
    gpu = placement.device != "cpu"
    # In double precision JAX lets all dtypes be; the others do in any.
    settings = {"device": placement.device, "threads": placement.threads, "precision": "float64", "seed": 1}
    return {
        "mode": "limits",
        "settings": settings,
        "dtypes": DTYPES,
        "sizes": GPU_SIZES if gpu else SIZES,
        "copy_bytes": array_bytes(machine) if engine == NUMPY else 0,
    }


def array_bytes(machine: Machine) -> int:
    """Four times the last-level cache, as far as the memory allows it; to the page."""
    cache = machine.cpu.caches.l3 or machine.cpu.caches.l2 or 0
    sizes = (machine.memory.available, machine.limits.memory)
    room = min((size for size in sizes if size is not None), default=MOST_BYTES * 8) // 8
    return max(min(4 * cache, MOST_BYTES, room) // 4096 * 4096, LEAST_BYTES)


def measure(asked: Iterable[Question], start: Callable[[Question], Sequence[Event]]) -> MachineLimits:
    """`start` runs one question in a worker and returns its events; an engine that fails only lacks its attempts."""
    attempts, missing = list[Attempt](), list[str]()
    for question in asked:
        events = start(question)
        found = attempts_of(question, events)
        attempts += found
        missing += _reasons(question, events, bool(found))
    return MachineLimits(tuple(attempts), tuple(missing))


def attempts_of(question: Question, events: Sequence[Event]) -> list[Attempt]:
    versions: Mapping[str, str] = next((event["versions"] for event in events if event["event"] == "started"), {})
    version = str(next(iter(versions.values()), ""))
    where = (question.engine, version, question.placement.device, question.placement.threads)
    found = []
    for event in events:
        if event["event"] == "product":
            found.append(Attempt("product", *where, event["dtype"], event["size"], event["rate"]))
        elif event["event"] == "bandwidth":
            found.append(Attempt(event["kernel"], *where, "float64", event["bytes"], event["rate"]))
    return found


def _reasons(question: Question, events: Sequence[Event], any_found: bool) -> list[str]:
    place = f"{question.engine} on {question.placement}"
    dtypes: dict[str, list[str]] = {}
    for event in events:
        if event["event"] == "no_product":
            dtypes.setdefault(event["reason"], []).append(event["dtype"])
    found = [f"{place}, {', '.join(names)}: {reason}" for reason, names in dtypes.items()]
    outcome = next((event for event in reversed(events) if event["event"] == "outcome"), None)
    if outcome is None or outcome["kind"] != "ok":
        why = f"{outcome['kind']}: {outcome['reason']}" if outcome else "no result"
        found.append(f"{place}: {why}; " + ("the attempts before it are kept" if any_found else "not measured"))
    return found


def percent_of_limit(operations_per_step: float, seconds_per_step: float | None, best: Attempt | None) -> float | None:
    """Of the best product's rate. Above 100 is possible: some convolutions take fewer operations than are counted."""
    if best is None or not seconds_per_step or not operations_per_step:
        return None
    return 100 * operations_per_step / seconds_per_step / best.rate
