"""Finds models by name: `backends/cnn-softmax`, `backends/cnn-softmax?filters=0.5&layers=2`, `libraries/mlp-4x100`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module

from timetrial.zoo.entry import Entry, Model, OptionError, Value

_MODULES = ("quick", "solar", "parallel", "profiling", "backends", "libraries", "modern")


class UnknownModel(ValueError):
    """No entry has this name."""


def entries() -> list[Entry]:
    """Every model and family of models, study by study."""
    return list(_entries())


def names() -> list[str]:
    """Every published model by a name that `find` takes."""
    return [name for entry in _entries() for name in entry.names]


def lookup(name: str) -> Entry:
    """The entry that a name belongs to, without making the model."""
    return _resolve(name)[0]


def find(name: str, /, **options: Value) -> Model:
    """The network and recipe of a name; options may stand in the name after `?` or be given apart."""
    entry, plain, given = _resolve(name)
    given = _merged(name, given, options)
    values = entry.read(given)
    model = _made(entry, name, values)
    return replace(
        model,
        network=model.network.model_copy(update={"name": entry.title(plain, values)}),
        dataset=model.dataset or entry.dataset,
        preprocessing=model.preprocessing or entry.preprocessing,
    )


def _made(entry: Entry, name: str, values: Mapping[str, Value]) -> Model:
    """Each option may be good by itself, and together they may still make no network."""
    from pydantic import ValidationError

    from timetrial.spec.errors import explain
    from timetrial.spec.network import Network

    try:
        return entry.make(**values)
    except ValidationError as error:
        layer = "" if error.title == "Network" else f": layer '{error.title.lower()}'"
        problem = explain(error, Network, f"'{name}' cannot be made{layer}")
        raise OptionError(f"{problem}. Take other options. {entry.advice()}") from None


@cache
def _entries() -> tuple[Entry, ...]:
    modules = (import_module(f"timetrial.zoo.{module}") for module in _MODULES)
    return tuple(entry for module in modules for entry in module.ENTRIES)


def _resolve(name: str) -> tuple[Entry, str, dict[str, Value]]:
    """The entry, the name without its query, and the options that the name holds."""
    plain, given = _split(name)
    for entry in _entries():
        meaning = dict(entry.aliases).get(plain)
        if meaning is not None:
            plain, implied = _split(meaning)
            given = _merged(name, implied, given)
        found = entry.match(plain)
        if found is not None:
            return entry, plain, _merged(name, found, given)
    raise UnknownModel(_unknown(plain))


def _split(name: str) -> tuple[str, dict[str, Value]]:
    plain, _, query = name.partition("?")
    given: dict[str, Value] = {}
    for part in filter(None, query.split("&")):
        option, equals, value = part.partition("=")
        if not equals:
            raise OptionError(f"'{name}': write options as 'name?option=value&option=value', not '{part}'")
        given = _merged(name, given, {option: value})
    return plain, given


def _merged(name: str, first: Mapping[str, Value], second: Mapping[str, Value]) -> dict[str, Value]:
    for option in first.keys() & second.keys():
        if str(first[option]) != str(second[option]):
            raise OptionError(f"'{name}': option '{option}' is given as {first[option]} and as {second[option]}")
    return {**first, **second}


def _unknown(name: str) -> str:
    every = list(dict.fromkeys(known.partition("?")[0] for known in names()))
    close = difflib.get_close_matches(name, every, n=3, cutoff=0.5)
    if not close:
        close = [known for known in every if known.partition("/")[2] == name]
    if close:
        return f"there is no model '{name}'; did you mean {' or '.join(repr(known) for known in close)}?"
    studies = ", ".join(dict.fromkeys(known.partition("/")[0] for known in every))
    return f"there is no model '{name}'; models are named 'study/model', the studies are {studies}"
