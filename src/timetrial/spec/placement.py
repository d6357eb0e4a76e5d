"""Where a trial runs: `cpu` (one thread), `cpu:4` (four threads), `cuda:0`."""

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
        raise ValueError(f"'{text}' is not a placement; write cpu, cpu:THREADS or cuda:INDEX")


AnyPlacement = Annotated[Placement, PlainValidator(Placement.parse), PlainSerializer(str)]
