"""Kinds by name: parses `relu`, `{conv2d: {filters: 32}}` and `{kind: conv2d, filters: 32}` into one typed object.

Adding a kind is adding a class with `@registry.register("name")`; nothing is edited.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

T = TypeVar("T", bound=BaseModel)
C = TypeVar("C", bound=type)


class Registry(Generic[T]):
    def __init__(self, noun: str, base: type[T]) -> None:
        self.noun, self.base = noun, base
        self.kinds: dict[str, type[T]] = {}
        self._shorthands: dict[str, dict[str, Any]] = {}

    def register(self, kind: str) -> Callable[[C], C]:
        def add(cls: C) -> C:
            cls.kind = kind  # type: ignore[attr-defined]
            self.kinds[kind] = cls
            return cls

        return add

    def shorthand(self, word: str, **fields: Any) -> None:
        """Let `word` stand for a kind with fields: `relu` for `{kind: activation, function: relu}`."""
        self._shorthands[word] = fields

    def parse(self, value: Any) -> T:
        if isinstance(value, self.base):
            return value
        kind, fields = self._split(value)
        if kind in self._shorthands:
            fields = {**self._shorthands[kind], **fields}
            kind = fields.pop("kind")
        if kind not in self.kinds:
            raise ValueError(f"there is no {self.noun} '{kind}'; {_advice(kind, {**self.kinds, **self._shorthands})}")
        cls = self.kinds[kind]
        for word in fields:
            if word not in cls.model_fields:
                raise ValueError(f"{self.noun} '{kind}' has no field '{word}'; {_advice(word, cls.model_fields)}")
        return cls.model_validate(fields)

    def dump(self, value: T) -> dict[str, Any]:
        return {"kind": value.kind, **value.model_dump(mode="json", exclude_none=True)}  # type: ignore[attr-defined]

    def _split(self, value: Any) -> tuple[str, dict[str, Any]]:
        if isinstance(value, str):
            return value, {}
        if isinstance(value, Mapping):
            fields = dict(value)
            if "kind" in fields:
                return str(fields.pop("kind")), fields
            if len(fields) == 1:
                kind, inner = next(iter(fields.items()))
                if inner is None or isinstance(inner, Mapping):
                    return str(kind), dict(inner or {})
        raise ValueError(f"write the {self.noun} as a name, as `name: {{field: value}}` or as `{{kind: name, …}}`")


def _advice(word: str, known: Iterable[str]) -> str:
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(words)
