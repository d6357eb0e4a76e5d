"""Validation errors in words: where in the file, what is wrong, and the remedy."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import BaseModel, ValidationError

_WORDS = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not a key here",
    "tuple_type": "should be a list",
    "too_short": "should not be empty",
}


def explain(error: ValidationError, model: type[BaseModel], place: str) -> str:
    """One line a problem, without the library's own wording where ours is clearer."""
    details = error.errors(include_url=False)
    within = {detail["loc"][:1] for detail in details if len(detail["loc"]) > 1}
    # A list with a bad item is reported as too short as well: the item is what matters.
    details = [d for d in details if d["type"] != "too_short" or d["loc"] not in within]
    lines = [_line(detail, model) for detail in details]
    return "\n".join(f"{place}: {line}" for line in dict.fromkeys(lines))


def _line(detail: Any, model: type[BaseModel]) -> str:
    path = ".".join(str(step) for step in detail["loc"] if not _internal(step))
    kind = detail["type"]
    if kind == "value_error":
        message = str(detail["ctx"]["error"]).strip()
        inner = detail["ctx"]["error"]
        if isinstance(inner, ValidationError):
            message = "; ".join(_line(d, model) for d in inner.errors(include_url=False))
        return f"{path}: {message}" if path else message
    if kind == "extra_forbidden":
        advice = "; " + _advice(str(detail["loc"][-1]), model) if len(detail["loc"]) == 1 else ""
        return f"'{path}' {_WORDS[kind]}{advice}"
    if kind in _WORDS:
        return f"'{path}' {_WORDS[kind]}"
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return f"'{path}': {message}, not {detail['input']!r}" if path else message


def _internal(step: Any) -> bool:
    """Names of validators that the library puts into a place; a person never wrote them."""
    return isinstance(step, str) and "[" in step


def _advice(word: str, model: type[BaseModel]) -> str:
    close = difflib.get_close_matches(word, list(model.model_fields), n=1)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(model.model_fields)
