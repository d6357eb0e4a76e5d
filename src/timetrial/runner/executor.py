"""From one step to its record: the engine found, the proof asked for, the process run, what came back written down."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from timetrial.data.prepare import Prepared, prepare
from timetrial.data.samples import DataError
from timetrial.engines.locate import Located, locate
from timetrial.meters.energy import EnergyMeter, EnergySampler, Readings
from timetrial.meters.energy_sources import Choice
from timetrial.meters.hardware import Machine, TooFewCores, cores_for
from timetrial.meters.limits import MachineLimits
from timetrial.meters.memory import MemorySampler, Peak, figures
from timetrial.records.energy import Energy
from timetrial.records.profiled import Profiled
from timetrial.records.record import Effort, Laps, Outcome, Progress, Record, Training, describe_cell
from timetrial.records.traces import keep_trace, trace_name
from timetrial.runner.gate import Gate, Judged
from timetrial.runner.limits import machine_limits
from timetrial.runner.process import Bounds, Event, Finished, run
from timetrial.runner.profiles import energy_plan, lap_plan, memory_plan
from timetrial.runner.session import Look, Session
from timetrial.runner.steps import Listener, Notice, Step
from timetrial.runner.surroundings import cores_given, surroundings
from timetrial.runner.work import adapter_digest, base_job, digest, network_digest, starting_weights
from timetrial.spec.region import includes
from timetrial.spec.study import Study
from timetrial.spec.trial import Trial

ARRAYS = ("x_train", "y_train", "x_test", "y_test")
Beside = Peak | Readings | None  # what was measured beside a run, by another process
TRACE = "trace"  # in the folder of a run: what the framework's profiler writes
REPEATED_LAPS = 3  # once a cell: whether an engine remembers its input does not change from run to run
FREE_SLACK = 1.1  # what is free is never quite the same at two starts of a study
THREAD_SLACK = 1.1  # more CPU time than this over the given threads, and the cell is invalid


class Executor:
    """Carries out steps of one study on this machine."""

    def __init__(self, study: Study, folder: Path, machine: Machine, fingerprint: str) -> None:
        self.study, self.folder = study, folder
        self.machine, self.fingerprint = machine, fingerprint
        self.energy = EnergyMeter(_choice(study))
        self._gate = Gate(folder / ".work", machine, self._bounds())
        self._located: dict[str, Located] = {}
        self._prepared: dict[str, Prepared] = {}

    def locate(self, engine: str) -> Located:
        if engine not in self._located:
            self._located[engine] = locate(engine)
        return self._located[engine]

    def _bounds(self) -> Bounds:
        """A run may use nine tenths of what is free, unless the study sets a limit: then the machine stays usable."""
        free = self._free()
        limit = self.study.limits.memory or (0.9 * free if free else None)
        return Bounds(self.study.limits.timeout, limit)

    def _free(self) -> int | None:
        sizes = (self.machine.memory.available, self.machine.limits.memory)
        return min((size for size in sizes if size is not None), default=None)

    def may_go_further(self, outcome: Outcome) -> bool:
        """Whether it was stopped at a limit of the study, and that is now larger."""
        stopped, now = outcome.limit, self._bounds()
        if stopped is None:
            return False
        if stopped.timeout is not None:
            return now.timeout > stopped.timeout
        slack = 1.0 if self.study.limits.memory else FREE_SLACK
        return stopped.memory is not None and (now.memory is None or now.memory > slack * stopped.memory)

    def limits(self) -> MachineLimits:
        return machine_limits(self.study.engines, self.study.placements, self.machine, self._bounds())

    def carry_out(self, step: Step, session: Session, floor: float, listen: Listener) -> Record:
        located = self.locate(step.trial.engine)
        if refusal := self._refusal(step.trial, located):
            return self.refused(step, refusal, session)
        judged = self._gate.judge(step.trial, located)
        listen(Notice("proved", step))
        if not judged.outcome.ok:
            return self._record(step, session, Finished(judged.outcome), judged=judged)
        finished, seen, beside = self._run(step, located, session, floor, listen)
        return self._record(step, session, finished, judged, seen, beside)

    def refused(self, step: Step, outcome: Outcome, session: Session) -> Record:
        """A record of what was not even tried."""
        return self._record(step, session, Finished(outcome))

    def _refusal(self, trial: Trial, located: Located) -> Outcome | None:
        if located.interpreter is None:
            return Outcome(kind="missing", reason=located.problem or "", remedy=located.remedy or "")
        try:
            cores_for(trial.placement.threads, self.machine)
        except TooFewCores as error:
            return Outcome(kind="unsupported", reason=str(error), remedy="leave this placement out on this machine")
        try:
            self._data(trial)
        except DataError as error:
            return Outcome(kind="unsupported", reason=str(error))
        return None

    def _run(
        self, step: Step, located: Located, session: Session, floor: float, listen: Listener
    ) -> tuple[Finished, Look, Beside]:
        assert located.interpreter is not None
        trial = step.trial
        folder = Path(tempfile.mkdtemp(prefix="timetrial-"))
        try:
            job = self._job(step, located, folder)
            variables = surroundings(trial.placement, trial.settings, located.variables)

            with session.look(job["cores"], floor) as seen, self._sampler(step, job["cores"]) as sampler:

                def told(event: Event) -> None:
                    sampler.told(event)
                    listen(Notice("event", step, event=event))

                finished = run(located.interpreter, job, folder, variables, self._bounds(), told, sampler.follow)
                beside = sampler.stop()
            if finished.last("profiled"):
                keep_trace(self.folder / self.study.study, step.run, folder / TRACE, trial)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if finished.outcome.ok:
            finished.outcome = threads_kept(finished, trial)
        return finished, seen, beside

    def _job(self, step: Step, located: Located, folder: Path) -> dict[str, Any]:
        trial = step.trial
        prepared = self._data(trial)
        weights = starting_weights(trial.network, trial.seed, self.folder / ".work")
        return {
            **base_job(trial, located, trial.recipe, weights, dropout=True),
            "mode": "measure",
            "data": {name: str(getattr(prepared, name)) for name in ARRAYS},
            "plan": self._plan(step),
            "accuracy": trial.task == "train" and (step.block, step.role) == (0, "cell") and self.study.accuracy,
            "profile": str(folder / TRACE) if step.role == "profile" else None,
            "repeat": REPEATED_LAPS if (step.block, step.role) == (0, "cell") else 0,
            "cores": cores_given(trial, self.machine),
            "folder": str(folder),
        }

    def _plan(self, step: Step) -> dict[str, Any]:
        if step.role == "energy":
            return energy_plan(self.study, step.trial, self.energy.window)
        return (memory_plan if step.role in ("memory", "profile") else lap_plan)(self.study, step.trial)

    def _sampler(self, step: Step, cores: Sequence[int]) -> MemorySampler | EnergySampler | Idle:
        """Memory and energy are sampled in runs of their own: the times of others are not to be disturbed by it."""
        if step.role == "energy":
            return self.energy.sampler(cores)
        return MemorySampler(cores) if step.role == "memory" else Idle()

    def _energy(self, step: Step, finished: Finished, beside: Beside) -> Energy | None:
        if step.role != "energy" or not finished.outcome.ok:
            return None
        seen = beside if isinstance(beside, Readings) else None
        return self.energy.energy(seen, _laps(finished), step.trial.placement.device)

    def _data(self, trial: Trial) -> Prepared:
        recipe = trial.recipe.model_dump(mode="json")
        wanted = (trial.dataset, trial.seed, trial.samples, trial.preprocessing)
        key = digest(network_digest(trial.network), recipe, *wanted)
        if key not in self._prepared:
            self._prepared[key] = prepare(
                trial.dataset,
                trial.network,
                trial.recipe,
                trial.seed,
                self.folder / ".work" / "data",
                trial.samples,
                trial.preprocessing,
            )
        return self._prepared[key]

    def _record(
        self,
        step: Step,
        session: Session,
        finished: Finished,
        judged: Judged | None = None,
        seen: Look | None = None,
        beside: Beside = None,
    ) -> Record:
        trial = step.trial
        located = self.locate(trial.engine)
        started = finished.last("started") or {}
        readback = finished.last("readback") or {}
        effort = _effort(finished)
        return Record(
            run=step.run,
            trial=trial.id,
            study=self.study.study,
            block=step.block,
            role=step.role,
            session=session.name,
            cooldown=session.cooldown,
            attempt=step.attempt,
            cell={**describe_cell(trial), "version": located.version, "profile": self.study.profile},
            outcome=finished.outcome,
            phases=_phases(finished),
            laps=_laps(finished),
            effort=effort,
            training=self._training(finished, trial),
            equivalence=judged.summary() if judged else None,
            memory=figures(finished.events, beside if isinstance(beside, Peak) else None),
            energy=self._energy(step, finished, beside),
            profile=_profiled(finished, step.run),
            includes=_includes(finished, trial),
            versions=started.get("versions") or located.versions,
            readback=readback.get("values", {}),
            machine=self.fingerprint,
            hashes=self._hashes(trial, located),
            parent_cpu_share=_share(finished),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            wall_seconds=finished.wall_seconds or None,
            **(seen.as_record(effort) if seen else {}),
        )

    def _training(self, finished: Finished, trial: Trial) -> Training | None:
        """With what the error is to be held against, where the dataset knows such a thing."""
        trained = finished.last("trained")
        if trained is None:
            return None
        saved, known = finished.last("saved") or {}, self._data(trial).provenance
        unit = known.get("unit", {})
        return Training(
            **{k: v for k, v in trained.items() if k != "event"},
            progress=tuple(Progress(**_fields(event)) for event in finished.all("progress")),
            history=tuple(_fields(event) for event in finished.all("epoch")),
            saved_bytes=saved.get("bytes"),
            baselines=known.get("baselines", {}),
            unit=unit.get("name", ""),
            unit_size=unit.get("size"),
        )

    def _hashes(self, trial: Trial, located: Located) -> dict[str, str]:
        return {
            "network": network_digest(trial.network),
            "recipe": digest(trial.recipe.model_dump(mode="json")),
            "adapter": adapter_digest(located.engine.adapter),
        }


def _choice(study: Study) -> Choice:
    model = study.energy.model
    return Choice(replay=study.energy.replay, model=(model.idle, model.core) if model else None)


def _includes(finished: Finished, trial: Trial) -> str:
    """The timed region in the adapter's own words, if it has any: a batch may have to cross to the device each step."""
    told: str | None = (finished.last("includes") or {}).get("words")
    return told or includes(trial)


class Idle:
    """Stands where a sampler would."""

    def __enter__(self) -> Idle:
        return self

    def __exit__(self, *error: object) -> None: ...

    def follow(self, pid: int) -> None: ...

    def told(self, event: Event) -> None: ...

    def stop(self) -> None: ...


def threads_kept(finished: Finished, trial: Trial) -> Outcome:
    """Threads are not believed but checked: CPU time over wall time of the steady laps. Those that an engine ships with
    are shown, and have no limit to be held against."""
    steady = finished.last("steady")
    if steady is None or not steady["wall_seconds"] or trial.settings.threads == "as-shipped":
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
    warm, told = finished.last("warm"), finished.all("lap")
    if warm is None or not told:
        return None
    return Laps(
        seconds=tuple(event["seconds"] for event in told),
        steps=warm["steps_per_lap"],
        warmup=tuple(warm["values"]),
        stable=warm["stable"],
        repeated=tuple((finished.last("repeated") or {}).get("seconds", ())),
        device=tuple(event["device_seconds"] for event in told if "device_seconds" in event),
        input=tuple(event["input_seconds"] for event in told if "input_seconds" in event),
        epoch=warm.get("steps_per_epoch"),
    )


def _phases(finished: Finished) -> dict[str, float]:
    """As the worker timed them; its end, when it gives back all that it held, can only be seen from outside."""
    told = dict[str, float]()
    for event in finished.all("end"):  # a training that is tested after each epoch is a phase in parts
        told[str(event["phase"])] = told.get(str(event["phase"]), 0.0) + float(event["seconds"])
    return told if finished.teardown_seconds is None else {**told, "teardown": finished.teardown_seconds}


def _profiled(finished: Finished, run: str) -> Profiled | None:
    told = finished.last("profiled")
    if told is None:
        return None
    return Profiled(**{k: v for k, v in told.items() if k != "event"}, trace=trace_name(run))


def _fields(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("event", "epochs")}


def _effort(finished: Finished) -> Effort | None:
    steady = finished.last("steady")
    return Effort(**{k: v for k, v in steady.items() if k != "event"}) if steady else None


def _share(finished: Finished) -> float | None:
    return finished.parent_cpu_seconds / finished.wall_seconds if finished.wall_seconds else None
