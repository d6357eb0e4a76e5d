"""Profiles as files: a row an operation as CSV or Parquet, and a trace that Perfetto and chrome://tracing open.

Whole or not at all: a file that was there stays as it was until the new one is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from timetrial.profiling.events import events
from timetrial.profiling.profile import Profile
from timetrial.profiling.schema import DERIVED, RAW, Frame
from timetrial.records.store import whole

OF_RUN = ("run", "engine", "version", "model", "task", "batch", "placement", "precision")


def table(profiles: Iterable[Profile]) -> Frame:
    """All operations of all profiles, each with what it is of."""
    found = []
    for profile in profiles:
        ops = profile.ops[[*RAW, *DERIVED]]
        own = {name: getattr(profile.header, name) for name in OF_RUN}
        words = {name: ops[name].astype(object) for name in ops if isinstance(ops[name].dtype, pd.CategoricalDtype)}
        known = {
            name: ops[name].where(ops[name] > 0) for name in ("flops", "bytes")
        }  # no work is counted for the others
        found.append(ops.assign(**words, **known, **own)[[*OF_RUN, *RAW, *DERIVED]])
    joined = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*OF_RUN, *RAW, *DERIVED])
    return joined.astype({name: "category" for name in OF_RUN if name != "batch"})


def write_csv(path: Path, profiles: Iterable[Profile]) -> None:
    with whole(path) as temporary:
        table(profiles).to_csv(temporary, index=False)


def write_parquet(path: Path, profiles: Iterable[Profile]) -> None:
    with whole(path) as temporary:
        table(profiles).to_parquet(temporary, index=False)


def write_trace(path: Path, profiles: Mapping[str, Profile]) -> None:
    """Chrome's JSON, an event a line; profiles by their labels."""
    about = {label: _about(profile) for label, profile in profiles.items()}
    with whole(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ms","otherData":' + json.dumps(about, default=str) + ',\n"traceEvents":[\n')
        for number, event in enumerate(_all(profiles)):
            file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")


def _about(profile: Profile) -> dict[str, Any]:
    return {**asdict(replace(profile.header, facts={})), "problems": profile.header.problems}


def _all(profiles: Mapping[str, Profile]) -> Iterator[dict[str, Any]]:
    for number, (label, profile) in enumerate(profiles.items(), 1):
        yield from events(profile, label, number)
