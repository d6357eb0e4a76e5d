"""Writes the cases to a folder, runs probes over them, and reads back what they found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tests.contract.cases import ALL, Case
from timetrial.runner.batches import proof_batches
from timetrial.runner.surroundings import surroundings
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Settings
from timetrial.spec.weights import initial_weights
from timetrial.stats.equivalence import TOLERANCES, Proof, compare

STEPS = 5
PROBE = Path(__file__).with_name("probe.py")


def write(folder: Path, case: Case, precision: str, loop: str, more: Mapping[str, Any] = MappingProxyType({})) -> None:
    place = folder / case.name
    place.mkdir(parents=True)
    recipe = case.make_recipe(precision=precision)
    np.savez(place / "batches.npz", **proof_batches(case.network, recipe, STEPS, seed=7))
    np.savez(place / "weights.npz", **initial_weights(case.network, seed=3))
    settings = {"device": "cpu", "threads": 1, "seed": 1, "precision": precision, "loop": loop, **more}
    job = {
        "network": case.network.lowered(recipe.loss, dropout=False),
        "recipe": recipe.model_dump(mode="json"),
        "settings": settings,
        "steps": STEPS,
    }
    (place / "job.json").write_text(json.dumps(job))


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    return surroundings(Placement(), Settings(), extra)


@dataclass(frozen=True)
class Workbench:
    """A folder of prepared cases of one precision."""

    folder: Path
    precision: str

    @classmethod
    def make(
        cls,
        folder: Path,
        precision: str = "float32",
        loop: str = "step",
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> Workbench:
        for case in ALL:
            write(folder, case, precision, loop, more)
        return cls(folder, precision)

    def with_traits(self, folder: Path, traits: dict[str, str]) -> Workbench:
        """The same cases for a reference that follows an engine's named differences."""
        for case in ALL:
            place = folder / case.name
            place.mkdir(parents=True)
            for name in ("batches.npz", "weights.npz"):
                os.link(self.folder / case.name / name, place / name)
            job = json.loads((self.folder / case.name / "job.json").read_text())
            job["settings"]["precision"] = job["recipe"]["precision"] = "float64"
            (place / "job.json").write_text(json.dumps({**job, "traits": traits}))
        return Workbench(folder, "float64")

    def probe(self, engine: str, interpreter: str = sys.executable, *cases: str, **environment: str) -> None:
        subprocess.run(
            [interpreter, str(PROBE), engine, str(self.folder), *cases],
            check=True, env=clean_environment(environment), stdin=subprocess.DEVNULL, timeout=3000,
        )  # fmt: skip

    def found(self, case: str, engine: str) -> dict[str, np.ndarray[Any, Any]]:
        with np.load(self.folder / case / f"{engine}.npz") as arrays:
            return {name: arrays[name] for name in arrays.files}

    def verdict(self, case: str, engine: str) -> dict[str, str]:
        return json.loads((self.folder / case / f"{engine}.json").read_text())

    def start(self, case: str) -> dict[str, np.ndarray[Any, Any]]:
        with np.load(self.folder / case / "weights.npz") as arrays:
            return {name: arrays[name] for name in arrays.files}

    def compare(self, case: Case, engine: str, reference: Workbench) -> Proof:
        kind = case.make_recipe().optimiser.kind
        return compare(
            self.found(case.name, engine),
            reference.found(case.name, "reference"),
            self.start(case.name),
            TOLERANCES[self.precision],
            adaptive=kind in ("adam", "rmsprop"),
        )
