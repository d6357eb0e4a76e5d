"""The traces of frameworks' own profilers: `FOLDER/STUDY/traces/RUN/`, packed, with the workload they are of.

They are kept as the framework wrote them; what they say is worked out when somebody asks.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

from timetrial.records.store import cannot_write
from timetrial.spec.trial import Trial

TRACES = "traces"  # beside the records of a study
WORKLOAD = "workload.json"
PACKED = ".gz"


def trace_name(run: str) -> str:
    return f"{TRACES}/{run}"


def keep_trace(study: Path, run: str, written: Path, trial: Trial) -> Path:
    """Every file that lies under `written`, packed; whole or not at all."""
    place = study / trace_name(run)
    temporary = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for path in sorted(path for path in written.rglob("*") if path.is_file()):
            target = temporary / f"{path.relative_to(written).as_posix().replace('/', '.')}{PACKED}"
            with open(path, "rb") as source, gzip.open(target, "wb", compresslevel=4) as packed:
                shutil.copyfileobj(source, packed)
        (temporary / WORKLOAD).write_text(json.dumps(_workload(trial)) + "\n", encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        os.replace(temporary, place)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise cannot_write(place, error) from error
    return place


def _workload(trial: Trial) -> dict[str, Any]:
    """What reading a trace takes: which layers there are, and what one step computes."""
    return {
        "model": trial.model,
        "network": trial.network.model_dump(mode="json"),
        "recipe": trial.recipe.model_dump(mode="json"),
        "task": trial.task,
        "engine": trial.engine,
    }
