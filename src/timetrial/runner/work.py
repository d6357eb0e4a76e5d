"""The working folder of a study: jobs, starting weights and proof batches, made once and shared by all engines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from timetrial.engines.locate import Located
from timetrial.records.store import cannot_write
from timetrial.runner.process import WORKER
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe
from timetrial.spec.trial import Trial
from timetrial.spec.weights import initial_weights


def digest(*parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def network_digest(network: Network) -> str:
    return digest(network.model_dump(mode="json", exclude={"name"}))


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> Path:
    """Atomically: a file under its name is whole."""
    import numpy as np

    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(temporary, **arrays)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise cannot_write(path, error) from error
    return path


def load_arrays(path: Path) -> dict[str, Any]:
    """Raises ValueError where the file is cut short or not one."""
    import zipfile

    import numpy as np

    try:
        with open(path, "rb") as file, np.load(file) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: damaged or cut short ({error}); delete it, it is made again") from None


def kept_arrays(path: Path, make: Callable[[], Mapping[str, Any]]) -> Path:
    """The file with these arrays: made where it is not there, and again where it is damaged."""
    if path.exists():
        try:
            load_arrays(path)
            return path
        except ValueError:
            path.unlink()
    return save_arrays(path, make())


def starting_weights(network: Network, seed: int, folder: Path) -> Path:
    """They depend on the network and the seed alone."""
    path = folder / "weights" / f"{network_digest(network)}-{seed}.npz"
    return kept_arrays(path, lambda: initial_weights(network, seed))


@cache
def adapter_digest(adapter: str) -> str:
    """Of the worker's own source: what was measured with other code is another measurement."""
    folder = WORKER.parent
    sources = sorted([*folder.glob("*.py"), *(folder / "adapters").glob("*.py")])
    foreign = Path(adapter.rpartition(":")[0])  # FILE.py:Class
    if foreign.suffix == ".py" and foreign.is_file():
        sources.append(foreign)
    return digest(adapter, [(path.name, path.read_text(encoding="utf-8")) for path in sources])


def settings_of(trial: Trial) -> dict[str, Any]:
    return {
        **trial.settings.model_dump(),
        # A run is shown its own GPU alone (`surroundings`), which is then the first, whatever its number outside.
        "device": "cuda:0" if trial.placement.device.startswith("cuda") else trial.placement.device,
        "threads": trial.placement.threads if trial.settings.threads == "limited" else None,
        "precision": trial.recipe.precision,
        "seed": trial.seed,
    }


def base_job(trial: Trial, located: Located, recipe: Recipe, weights: Path, dropout: bool) -> dict[str, Any]:
    return {
        "engine": trial.engine,
        "adapter": located.engine.adapter,
        "network": trial.network.lowered(recipe.loss, dropout=dropout),
        "recipe": recipe.model_dump(mode="json"),
        "settings": settings_of(trial),
        "weights": str(weights),
        "task": trial.task,
    }
