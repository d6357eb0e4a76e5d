"""What the steps of a trace computed, as it was written down beside the trace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from timetrial.profiling.schema import TraceError
from timetrial.records.traces import WORKLOAD
from timetrial.spec.network import Network
from timetrial.spec.recipe import Recipe


@dataclass(frozen=True)
class Workload:
    model: str
    network: Network
    recipe: Recipe
    task: str
    engine: str


def read_workload(folder: Path) -> Workload:
    path = folder / WORKLOAD
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Workload(
            content["model"],
            Network.model_validate(content["network"]),
            Recipe.model_validate(content["recipe"]),
            content["task"],
            content["engine"],
        )
    except FileNotFoundError:
        raise TraceError(f"{folder}: the trace is not there any more; profile again with --fresh") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path}: damaged ({type(error).__name__}); profile again with --fresh") from None
