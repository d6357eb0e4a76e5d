"""What the catalogue holds: a model's name or family of names, where it comes from, its options, and how it is made."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timetrial.spec.network import Network
    from timetrial.spec.recipe import Recipe

Value = int | float | str | bool | None

_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


class OptionError(ValueError):
    """An option that the model does not have, or a value that the option does not take."""


@dataclass(frozen=True)
class Model:
    """A network with its recipe, and the data it was published with. `examples`: how many to train on; None is all."""

    network: Network
    recipe: Recipe
    dataset: str = ""
    preprocessing: tuple[str, ...] = ()  # steps of `data.steps`
    examples: int | None = None


@dataclass(frozen=True)
class Option:
    """`published` are the values of the study's own sweep; `choices`, where given, are all there are."""

    name: str
    type: type[int] | type[float] | type[str] | type[bool]
    meaning: str
    default: Value = None
    published: tuple[Value, ...] = ()
    choices: tuple[Value, ...] = ()
    least: float | None = None
    pattern: str = ""  # of the option's text where it stands inside a model's name

    @property
    def expression(self) -> str:
        if self.choices:
            return "|".join(re.escape(str(choice)) for choice in self.choices)
        return self.pattern or (r"\d+" if self.type is int else r"[a-z0-9.]+")

    def __str__(self) -> str:
        kind = ", ".join(map(_text, self.choices)) if self.choices else _WORDS[self.type]
        return f"{self.name} ({kind}; default {_text(self.default)})"

    def read(self, value: Value) -> Value:
        """The value in the option's own type; text is understood as written in a name."""
        if value is None or value == "none":
            if self.default is None:
                return None
            raise OptionError(f"option '{self.name}' wants {_WORDS[self.type]}, not none")
        result = self._typed(value)
        if result is None:
            raise OptionError(f"option '{self.name}' wants {_WORDS[self.type]}, not '{value}'")
        if self.choices and result not in self.choices:
            raise OptionError(f"option '{self.name}' is one of {', '.join(map(_text, self.choices))}, not '{value}'")
        if self.least is not None and not isinstance(result, str) and result < self.least:
            raise OptionError(f"option '{self.name}' is at least {self.least:g}, not {value}")
        if self.pattern and not re.fullmatch(self.pattern, str(result)):
            raise OptionError(f"option '{self.name}' cannot be '{value}': {self.meaning}")
        return result

    def _typed(self, value: int | float | str | bool) -> Value:
        if self.type is bool:
            return value if isinstance(value, bool) else _TRUTH.get(str(value).lower())
        if isinstance(value, bool):
            return None
        if self.type is str:
            return str(value)
        try:
            number = Fraction(str(value))  # 0.5 and 1/2 are both read
        except (ValueError, ZeroDivisionError):
            return None
        if self.type is float:
            return float(number)
        return int(number) if number.denominator == 1 else None


@dataclass(frozen=True)
class Entry:
    """One model, or one family where the name has {options} in it. `aliases` are (name, what it stands for)."""

    name: str
    summary: str
    source: str
    dataset: str
    make: Callable[..., Model]
    preprocessing: tuple[str, ...] = ()  # steps of `data.steps`
    parameters: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def study(self) -> str:
        return self.name.partition("/")[0]

    @property
    def in_name(self) -> tuple[str, ...]:
        """The options that stand inside the name."""
        return tuple(re.findall(r"\{(\w+)\}", self.name))

    @property
    def names(self) -> Iterator[str]:
        """The published models by name, those of its sweeps written with `?`."""
        yield from self.examples if self.in_name else (self.name, *self.examples)
        yield from (alias for alias, _ in self.aliases)
        if not self.in_name:
            for option in self.parameters:
                yield from (f"{self.name}?{option.name}={_text(value)}" for value in option.published)

    def match(self, name: str) -> dict[str, str] | None:
        """The options read from a name without `?`, or None if it is not one of this entry's names."""
        expression = re.escape(self.name)
        for option in self.parameters:
            expression = expression.replace(rf"\{{{option.name}\}}", f"(?P<{option.name}>{option.expression})")
        found = re.fullmatch(expression, name)
        return found.groupdict() if found else None

    def read(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """All options with their values; refuses what it does not know and says what there is."""
        known = {option.name: option for option in self.parameters}
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean '{close[0]}'?" if close else "."
                raise OptionError(f"'{self.name}' has no option '{name}'{hint} {self.advice()}")
        try:
            return {name: o.read(given[name]) if name in given else o.default for name, o in known.items()}
        except OptionError as error:
            raise OptionError(f"'{self.name}': {error}. {self.advice()}") from None

    def advice(self) -> str:
        return f"Its options: {', '.join(map(str, self.parameters))}." if self.parameters else "It has no options."

    def title(self, name: str, values: Mapping[str, Value]) -> str:
        """The one way to write this model: options in the entry's order, defaults left out."""
        written = [
            f"{o.name}={_text(values[o.name])}"
            for o in self.parameters
            if o.name not in self.in_name and values[o.name] != o.default
        ]
        return f"{name}?{'&'.join(written)}" if written else name


def _text(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
