"""The equivalence gate: no time is compared before the engines are shown to compute the same function.

Every engine and a float64 reference get the same weights and the same few batches. The reference runs once per
network, recipe and set of named differences; a proof holds until the network, the engine's version or the adapter's
source changes.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timetrial.engines.locate import Located, locate
from timetrial.meters.hardware import Machine
from timetrial.records.record import Equivalence, Outcome
from timetrial.records.store import write_atomically
from timetrial.runner.batches import proof_batches
from timetrial.runner.process import Bounds, Finished, run
from timetrial.runner.surroundings import cores_given, surroundings
from timetrial.runner.work import (
    adapter_digest,
    base_job,
    digest,
    kept_arrays,
    load_arrays,
    network_digest,
    save_arrays,
    starting_weights,
)
from timetrial.spec.placement import Placement
from timetrial.spec.recipe import Recipe
from timetrial.spec.region import DRAWN
from timetrial.spec.trial import Settings, Trial
from timetrial.stats.equivalence import TOLERANCES, Proof, compare

SAMPLES = 8  # in a proof batch: few, because the reference works in float64
STEPS = 5
ADAPTIVE = ("adam", "rmsprop")


class NoReference(RuntimeError):
    """There is nothing to hold the engine against. `outcome`: what the reference came to instead."""

    def __init__(self, model: str, outcome: Outcome) -> None:
        super().__init__(f"the reference could not compute {model}: {outcome.reason}")
        self.outcome = outcome


@dataclass(frozen=True)
class Judged:
    """The gate's answer for one trial: an outcome (`ok`, `wrong`, or why it could not be proved) and the proof."""

    outcome: Outcome
    proof: Proof | None = None
    differences: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    def summary(self) -> Equivalence | None:
        if self.proof is None:
            return None
        failure = self.proof.first_failure
        return Equivalence(
            passed=self.proof.passed,
            forward=_finite(max(self.proof.worst("activation"), self.proof.worst("output"))),
            gradient=_finite(self.proof.worst("gradient")),
            steps=_finite(self.proof.worst("step")),
            failure=_words(self.proof) if failure else "",
            differences=self.differences,
        )


class Gate:
    """Judges trials; remembers what it proved under `folder`."""

    def __init__(self, folder: Path, machine: Machine, bounds: Bounds) -> None:
        self.folder, self.machine, self.bounds = folder.absolute(), machine, bounds
        self._judged: dict[str, Judged] = {}

    def judge(self, trial: Trial, located: Located) -> Judged:
        key = self._key(trial, located)
        if key not in self._judged:
            self._judged[key] = self._remembered(key) or self._prove(key, trial, located)
        return self._judged[key]

    def output(self, trial: Trial, located: Located) -> Any:
        """What it predicted for the batch of its proof; None where there was no proof yet."""
        try:
            return load_arrays(self._outputs(self._key(trial, located)))["output"]
        except (ValueError, KeyError):
            return None

    def _outputs(self, key: str) -> Path:
        return self.folder / "outputs" / f"{key}.npz"

    def _key(self, trial: Trial, located: Located) -> str:
        settings = trial.settings.model_dump(exclude={"allocator", "threads", "wait", *DRAWN})
        return digest(
            network_digest(trial.network), _proof_recipe(trial).model_dump(mode="json"), settings,
            trial.placement.device, trial.seed, trial.engine, located.versions, adapter_digest(located.engine.adapter),
        )  # fmt: skip

    def _remembered(self, key: str) -> Judged | None:
        """Only good proofs are kept on disk: a failure is always looked at again."""
        try:
            kept = json.loads((self.folder / "proofs" / f"{key}.json").read_text())
            proof = _proof_from(kept["checks"])
            judged = Judged(Outcome(kind="ok"), proof, tuple(kept["differences"]), kept["versions"])
            return judged if proof.passed else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _prove(self, key: str, trial: Trial, located: Located) -> Judged:
        finished, found = self._collect(trial, located, _proof_recipe(trial), {})
        if not finished.outcome.ok or found is None:
            return Judged(finished.outcome)
        started = finished.last("started") or {}
        traits = dict(started.get("traits", {}))
        try:
            reference = self._reference(trial, traits)
        except NoReference as error:
            met = error.outcome
            return Judged(
                Outcome(kind="crash", reason=str(error), remedy=met.remedy, limit=met.limit, stderr=met.stderr)
            )
        start = load_arrays(starting_weights(trial.network, trial.seed, self.folder))
        recipe = trial.recipe
        proof = compare(
            found, reference, start, TOLERANCES[recipe.precision], adaptive=recipe.optimiser.kind in ADAPTIVE
        )
        save_arrays(self._outputs(key), {"output": found["output"]})
        differences = tuple(f"{name}: {value}" for name, value in sorted(traits.items()))
        judged = Judged(_verdict(proof), proof, differences, started.get("versions", {}))
        if proof.passed:
            self._keep(key, judged)
        return judged

    def _keep(self, key: str, judged: Judged) -> None:
        assert judged.proof is not None
        checks = [[c.stage, c.name, c.error, c.tolerance, c.note] for c in judged.proof.checks]
        content = {"checks": checks, "differences": judged.differences, "versions": judged.versions}
        write_atomically(self.folder / "proofs" / f"{key}.json", json.dumps(content))

    def _reference(self, trial: Trial, traits: dict[str, str]) -> dict[str, Any]:
        recipe = _proof_recipe(trial)
        relevant = recipe.model_dump(mode="json", exclude={"precision"})
        key = digest(network_digest(trial.network), relevant, trial.seed, traits, adapter_digest("reference"))
        path = self.folder / "references" / f"{key}.npz"
        if path.exists():
            try:
                return load_arrays(path)
            except ValueError:
                path.unlink()
        plain = trial.model_copy(
            update={"engine": "reference", "placement": Placement(), "settings": Settings(), "recipe": recipe}
        )
        finished, found = self._collect(plain, locate("reference"), recipe, traits)
        if found is None:
            raise NoReference(trial.model, finished.outcome)
        save_arrays(path, found)
        return found

    def _collect(
        self, trial: Trial, located: Located, recipe: Recipe, traits: dict[str, str]
    ) -> tuple[Finished, dict[str, Any] | None]:
        """Let one engine write what is compared."""
        assert located.interpreter is not None
        weights = starting_weights(trial.network, trial.seed, self.folder)
        with tempfile.TemporaryDirectory(prefix="timetrial-") as name:
            folder = Path(name)
            job = {
                **base_job(trial, located, recipe, weights, dropout=False),
                "mode": "prove",
                "batches": str(_batches(trial, recipe, self.folder)),
                "result": str(folder / "found.npz"),
                "cores": cores_given(trial, self.machine),
            }
            if traits:
                job["traits"] = traits
            variables = surroundings(trial.placement, trial.settings, located.variables)
            finished = run(located.interpreter, job, folder, variables, self.bounds)
            found = load_arrays(folder / "found.npz") if finished.outcome.ok else None
        return finished, found


def _proof_recipe(trial: Trial) -> Recipe:
    return trial.recipe.model_copy(update={"batch": SAMPLES, "epochs": 1})


def _batches(trial: Trial, recipe: Recipe, folder: Path) -> Path:
    key = digest(network_digest(trial.network), recipe.loss, recipe.labels, recipe.batch, trial.seed)
    path = folder / "batches" / f"{key}.npz"
    return kept_arrays(path, lambda: proof_batches(trial.network, recipe, STEPS, trial.seed))


def _verdict(proof: Proof) -> Outcome:
    if proof.passed:
        return Outcome(kind="ok")
    return Outcome(
        kind="wrong",
        reason=_words(proof),
        remedy="its times are not ranked; timetrial verify shows every array that was compared",
    )


def _words(proof: Proof) -> str:
    check = proof.first_failure
    if check is None:
        return ""
    what = {"activation": "the output of layer", "output": "the", "gradient": "the gradient of",
            "step": "the update of", "loss": "the value of the"}[check.stage]  # fmt: skip
    detail = check.note or f"off by {check.error:.1e}, allowed {check.tolerance:.0e}"
    return f"differs from the reference first in {what} {check.name}: {detail}"


def _proof_from(checks: list[list[Any]]) -> Proof:
    from timetrial.stats.equivalence import Check

    return Proof(tuple(Check(*values) for values in checks))


def _finite(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None
