"""Runs a study: randomised blocks, one process a run, a record for every outcome, resumable at any moment."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from timetrial.data.prepare import Prepared, prepare
from timetrial.data.samples import DataError
from timetrial.engines.locate import Located, locate
from timetrial.meters.hardware import Machine, TooFewCores, cores_for, fingerprint, inventory
from timetrial.records.record import Effort, Laps, Outcome, Record, Training, describe_cell
from timetrial.records.store import Store
from timetrial.runner.gate import Gate, Judged
from timetrial.runner.process import Bounds, Event, Finished, run
from timetrial.runner.profiles import lap_plan, processes
from timetrial.runner.surroundings import surroundings
from timetrial.runner.work import adapter_digest, base_job, digest, network_digest, starting_weights
from timetrial.spec.study import Study, blocks
from timetrial.spec.trial import Trial

INCLUDES = {
    ("train", "step"): "batches already on the device: forward, loss, backward, update, wait for the device",
    ("train", "fit"): "one fit call over host arrays: batching, copy, forward, loss, backward, update, callbacks",
    ("infer", "step"): "batches already on the device: forward with the last activation, wait for the device",
    ("infer", "fit"): "one predict call over host arrays: batching, copy, forward, collecting of the outputs",
}
ARRAYS = ("x_train", "y_train", "x_test", "y_test")
THREAD_SLACK = 1.1  # more CPU time than this over the given threads, and the cell is invalid


@dataclass(frozen=True)
class Step:
    """One run that is to be made: trial, block, and the name its record will have."""

    trial: Trial
    block: int
    run: str


@dataclass(frozen=True)
class Notice:
    """What a campaign tells while it goes on: `begin`, `proved`, `lap`, `phase`, `end`."""

    kind: str
    step: Step
    record: Record | None = None
    event: Event | None = None


Listener = Callable[[Notice], None]


def steps(study: Study, trials: Sequence[Trial]) -> list[Step]:
    plan = digest(study.profile, study.accuracy)
    return [
        Step(trial, block, f"{trial.id}-{plan[:6]}-{block:02d}")
        for block, order in enumerate(blocks(trials, processes(study), study.seed))
        for trial in order
    ]


class Campaign:
    """One study on this machine. `todo` is what is left; `go` runs it and yields each record as it is written."""

    def __init__(self, study: Study, trials: Sequence[Trial], folder: Path, fresh: bool = False) -> None:
        self.study, self.folder = study, folder.absolute()  # a run works in a folder of its own
        self.store = Store(self.folder)
        self.machine: Machine = inventory()
        self.fingerprint = fingerprint(self.machine)
        self.all_steps = steps(study, trials)
        self._located: dict[str, Located] = {}
        self._prepared: dict[str, Prepared] = {}
        done = {} if fresh else self.store.runs(study.study)
        self.done = {step.run: done[step.run] for step in self.all_steps if self._counts(done.get(step.run), step)}

    @property
    def todo(self) -> list[Step]:
        return [step for step in self.all_steps if step.run not in self.done]

    def go(self, listen: Listener = lambda notice: None) -> Iterator[Record]:
        self.store.keep_machine(self.fingerprint, asdict(self.machine))
        gate = Gate(self.folder / ".work", self.machine, self._bounds())
        for step in self.todo:
            listen(Notice("begin", step))
            record = self._one(step, gate, listen)
            self.store.write(record)
            self.done[step.run] = record
            listen(Notice("end", step, record))
            yield record

    def locate(self, engine: str) -> Located:
        if engine not in self._located:
            self._located[engine] = locate(engine)
        return self._located[engine]

    def _counts(self, record: Record | None, step: Step) -> bool:
        """A finished record is not run again, but one whose engine was missing is worth another look."""
        if record is None or record.outcome.kind == "missing":
            return False
        located = self.locate(step.trial.engine)
        same_code = record.hashes.get("adapter") == adapter_digest(located.engine.adapter)
        # An engine may tell fewer versions than are known of its environment, or more.
        same_versions = all(record.versions.get(name, have) == have for name, have in located.versions.items())
        return same_code and same_versions and record.machine == self.fingerprint

    def _bounds(self) -> Bounds:
        """A run may use nine tenths of what is free, unless the study sets a limit: then the machine stays usable."""
        sizes = (self.machine.memory.available, self.machine.limits.memory)
        free = min((size for size in sizes if size is not None), default=None)
        limit = self.study.limits.memory or (0.9 * free if free else None)
        return Bounds(self.study.limits.timeout, limit)

    def _one(self, step: Step, gate: Gate, listen: Listener) -> Record:
        located = self.locate(step.trial.engine)
        if located.interpreter is None:
            outcome = Outcome(kind="missing", reason=located.problem or "", remedy=located.remedy or "")
            return self._record(step, located, Finished(outcome), None)
        try:
            cores_for(step.trial.placement.threads, self.machine)
        except TooFewCores as error:
            outcome = Outcome(kind="unsupported", reason=str(error), remedy="leave this placement out on this machine")
            return self._record(step, located, Finished(outcome), None)
        try:
            self._data(step.trial)
        except DataError as error:
            return self._record(step, located, Finished(Outcome(kind="unsupported", reason=str(error))), None)
        judged = gate.judge(step.trial, located)
        listen(Notice("proved", step))
        finished = self._run(step, located, listen) if judged.outcome.ok else Finished(judged.outcome)
        return self._record(step, located, finished, judged)

    def _run(self, step: Step, located: Located, listen: Listener) -> Finished:
        assert located.interpreter is not None
        trial = step.trial
        folder = Path(tempfile.mkdtemp(prefix="timetrial-"))
        try:
            job = self._job(step, located, folder)
            variables = surroundings(trial.placement, trial.settings, located.engine.backend_env)
            finished = run(
                located.interpreter, job, folder, variables, self._bounds(),
                lambda event: listen(Notice("event", step, event=event)),
            )  # fmt: skip
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if finished.outcome.ok:
            finished.outcome = threads_kept(finished, trial)
        return finished

    def _job(self, step: Step, located: Located, folder: Path) -> dict[str, Any]:
        trial = step.trial
        prepared = self._data(trial)
        weights = starting_weights(trial.network, trial.seed, self.folder / ".work")
        return {
            **base_job(trial, located, trial.recipe, weights, dropout=True),
            "mode": "measure",
            "data": {name: str(getattr(prepared, name)) for name in ARRAYS},
            "plan": lap_plan(self.study.profile, trial),
            "accuracy": self.study.accuracy and trial.task == "train" and step.block == 0,
            "cores": cores_for(trial.placement.threads, self.machine),
            "folder": str(folder),
        }

    def _data(self, trial: Trial) -> Prepared:
        recipe = trial.recipe.model_dump(mode="json")
        key = digest(network_digest(trial.network), recipe, trial.dataset, trial.seed, trial.samples)
        if key not in self._prepared:
            self._prepared[key] = prepare(
                trial.dataset, trial.network, trial.recipe, trial.seed, self.folder / ".work" / "data", trial.samples
            )
        return self._prepared[key]

    def _record(self, step: Step, located: Located, finished: Finished, judged: Judged | None) -> Record:
        trial = step.trial
        started = finished.last("started") or {}
        readback = finished.last("readback") or {}
        return Record(
            run=step.run,
            trial=trial.id,
            study=self.study.study,
            block=step.block,
            cell={**describe_cell(trial), "version": located.version, "profile": self.study.profile},
            outcome=finished.outcome,
            phases={event["phase"]: event["seconds"] for event in finished.all("end")},
            laps=_laps(finished),
            effort=_effort(finished),
            training=_training(finished),
            equivalence=judged.summary() if judged else None,
            memory=_memory(finished),
            includes=INCLUDES[trial.task, trial.settings.loop],
            versions=started.get("versions") or located.versions,
            readback=readback.get("values", {}),
            machine=self.fingerprint,
            hashes=self._hashes(trial, located),
            parent_cpu_share=_share(finished),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            wall_seconds=finished.wall_seconds or None,
        )

    def _hashes(self, trial: Trial, located: Located) -> dict[str, str]:
        return {
            "network": network_digest(trial.network),
            "recipe": digest(trial.recipe.model_dump(mode="json")),
            "adapter": adapter_digest(located.engine.adapter),
        }


def threads_kept(finished: Finished, trial: Trial) -> Outcome:
    """Threads are not believed but checked: CPU time over wall time of the steady laps."""
    steady = finished.last("steady")
    if steady is None or not steady["wall_seconds"]:
        return finished.outcome
    used = steady["cpu_seconds"] / steady["wall_seconds"]
    if used <= trial.placement.threads * THREAD_SLACK:
        return finished.outcome
    return Outcome(
        kind="invalid",
        reason=f"kept {used:.2f} cores busy where it was given {trial.placement.threads}",
        remedy=f"compare it on placement cpu:{math.ceil(used)}, or find the thread pool that is not limited",
    )


def _laps(finished: Finished) -> Laps | None:
    warm = finished.last("warm")
    seconds = tuple(event["seconds"] for event in finished.all("lap"))
    if warm is None or not seconds:
        return None
    return Laps(seconds=seconds, steps=warm["steps_per_lap"], warmup=tuple(warm["values"]), stable=warm["stable"])


def _effort(finished: Finished) -> Effort | None:
    steady = finished.last("steady")
    return Effort(**{k: v for k, v in steady.items() if k != "event"}) if steady else None


def _training(finished: Finished) -> Training | None:
    trained = finished.last("trained")
    if trained is None:
        return None
    saved = finished.last("saved") or {}
    return Training(**{k: v for k, v in trained.items() if k != "event"}, saved_bytes=saved.get("bytes"))


def _memory(finished: Finished) -> dict[str, int]:
    """Kernel's high-water mark at the end of the named phases, and the framework's own allocator figures."""
    marks = {
        f"resident_after_{event['phase']}": event["resident_peak"]
        for event in finished.all("end")
        if event["phase"] in ("import", "build", "steady") and event["resident_peak"] is not None
    }
    allocator = (finished.last("readback") or {}).get("memory") or {}
    return {**marks, **{f"allocator_{name}": int(value) for name, value in allocator.items()}}


def _share(finished: Finished) -> float | None:
    return finished.parent_cpu_seconds / finished.wall_seconds if finished.wall_seconds else None
