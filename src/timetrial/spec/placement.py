"""Where a trial runs: `cpu` (one thread), `cpu:4` (four threads), `cuda:0`; in a study also `cpu:1-4`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator


class Placement(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    device: str = "cpu"
    threads: int = 1  # of the host; a GPU's host side works with one thread unless said otherwise

    def __str__(self) -> str:
        return self.device if self.threads == 1 else f"{self.device}:{self.threads}"

    @classmethod
    def parse(cls, text: Any) -> Placement:
        if isinstance(text, Placement):
            return text
        if match := re.fullmatch(r"cpu(?::([1-9]\d{0,3}))?", str(text)):
            return cls(device="cpu", threads=int(match[1] or 1))
        if re.fullmatch(r"cuda:\d{1,2}", str(text)):
            return cls(device=str(text), threads=1)
        raise ValueError(f"'{text}' is not a placement; write cpu, cpu:THREADS, cpu:FIRST-LAST or cuda:INDEX")


def written_out(values: Any) -> Any:
    """`cpu:1-4` stands for one, two, three and four threads."""
    if not isinstance(values, (list, tuple)):
        return values
    found: list[Any] = []
    for value in values:
        match = re.fullmatch(r"cpu:([1-9]\d{0,3})-([1-9]\d{0,3})", str(value))
        found += [f"cpu:{n}" for n in range(int(match[1]), int(match[2]) + 1)] if match else [value]
        if match and int(match[1]) >= int(match[2]):
            raise ValueError(f"'{value}' counts down; write cpu:{match[2]}-{match[1]}")
    return found


AnyPlacement = Annotated[Placement, PlainValidator(Placement.parse), PlainSerializer(str)]
