"""What `add` and `remove` are told: an engine, one of its versions, or a whole family."""

from __future__ import annotations

from dataclasses import dataclass

from timetrial.engines.pins import Recipe, own, recipe, served
from timetrial.engines.registry import ENGINES, FAMILIES, Asked, UnknownEngine, advice, parse


class NoEnvironment(ValueError):
    """The engine needs none."""


@dataclass(frozen=True)
class Target:
    """`asked` is the engine that must work; None where a family is meant, of which any may."""

    name: str
    asked: Asked | None
    plan: Recipe

    @property
    def version(self) -> str | None:
        return self.asked.version if self.asked else None

    @property
    def tried(self) -> tuple[Asked, ...]:
        """The engines to check: where several frameworks share an environment, all, for one may fail alone."""
        if self.asked is None or self.plan.family.main is None:
            return served(self.plan.folder)
        return (self.asked,)


def target(name: str) -> Target:
    word, at, label = name.strip().partition("@")
    if word in FAMILIES and word not in ENGINES:
        if at:
            serving = ", ".join(asked.name for asked in served(word))
            raise UnknownEngine(
                f"'{label}' in '{name}' is a version of what? {word} has {serving}; ask for one of them"
            )
        return Target(word, None, own(FAMILIES[word]))
    if word not in ENGINES:
        raise UnknownEngine(f"there is no engine '{word}'; {advice(word, dict.fromkeys((*ENGINES, *FAMILIES)))}")
    asked = parse(name)
    plan = recipe(asked)
    if plan is None:
        raise NoEnvironment(f"{asked.engine.name} runs in timetrial's own Python; it has no environment of its own")
    return Target(asked.name, asked, plan)
