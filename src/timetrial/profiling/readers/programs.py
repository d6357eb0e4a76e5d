"""To which layer and phase the instructions of a compiled XLA program belong.

An instruction's own name tells it, or the names of what was fused into it. XLA loses some names on the way: those
instructions are placed by who reads their result, else by the most that is fused into them, else by what they read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from timetrial.profiling.readers.hlo import Instruction, Program
from timetrial.profiling.readers.scopes import NOWHERE, Place, Scopes, shares

WORKING = ("convolution", "dot")
GATHERING = ("reduce-window", "select-and-scatter", "scatter", "sort", "reduce")
MOVING = (
    "broadcast", "copy", "transpose", "reshape", "bitcast", "concatenate", "slice", "pad", "convert", "iota", "reverse",
    "dynamic-slice", "dynamic-update-slice", "gather",
)  # fmt: skip
SILENT = ("parameter", "constant", "tuple", "get-tuple-element")  # compute nothing
CONTAINERS = ("while", "conditional", "call")  # what they contain is told as operations of its own
Parts = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Known:
    """What is known of an instruction. `parts` are the layers it does the work of, where they are several."""

    place: Place
    attribution: str
    kind: str
    bytes: int
    parts: Parts = ()


def known(program: Program, scopes: Scopes, otherwise: Place = NOWHERE) -> dict[str, Known | None]:
    """By the name of the instruction; None for those that only contain others. `otherwise` is the place of what nothing
    tells."""
    found: dict[str, Known | None] = {}
    callers = _callers(program)
    for key, instructions in program.computations.items():
        caller = callers.get(key)
        if caller is None:
            found.update(_Computation(program, instructions, scopes, otherwise).known())
        elif caller.opcode in CONTAINERS:
            place = scopes.place(caller.op_name)
            place = otherwise if place == NOWHERE else place
            found.update(_Computation(program, instructions, scopes, place).known())
    return found


def _callers(program: Program) -> dict[int, Instruction]:
    every = (i for instructions in program.computations.values() for i in instructions.values())
    return {called: i for i in every for called in i.called}


class _Computation:
    def __init__(self, program: Program, own: dict[int, Instruction], scopes: Scopes, otherwise: Place) -> None:
        self._program, self._own, self._scopes, self._otherwise = program, own, scopes, otherwise
        self._readers = _readers(own.values())

    def known(self) -> dict[str, Known | None]:
        told = {key: self._told(instruction) for key, instruction in self._own.items()}
        places = {key: known.place for key, known in told.items()}
        for order, ask in (
            (reversed(self._own), self._by_readers),
            (iter(self._own), self._by_most),
            (iter(self._own), self._by_sources),
        ):
            _fill(places, order, ask)
        found: dict[str, Known | None] = {}
        for key, instruction in self._own.items():
            if instruction.opcode in SILENT or instruction.opcode in CONTAINERS:
                found[instruction.name] = None
                continue
            place = self._otherwise if places[key] == NOWHERE else places[key]
            inferred = place != told[key].place
            found[instruction.name] = replace(told[key], place=place, attribution="inferred") if inferred else told[key]
        return found

    # --- what names tell --------------------------------------------------------------------------------------------

    def _told(self, instruction: Instruction) -> Known:
        inner, place = self._inside(instruction), self._scopes.place(instruction.op_name)
        kind, parts = _kind(instruction, max(inner, key=_rank)), self._parts(inner, place)
        if len(parts) > 1:
            place = replace(place, layer=max(parts, key=lambda part: part[1])[0])
            return Known(place, "fused_split", kind, instruction.bytes, parts)
        if place.layer is None and parts:
            place = replace(place, layer=parts[0][0])
        return Known(place, "none" if place == NOWHERE else "scope", kind, instruction.bytes)

    def _parts(self, inner: list[Instruction], place: Place) -> Parts:
        """The layers of the same phase: what a gradient computes anew of the forward pass is the gradient's."""
        if place.phase not in ("forward", "backward"):
            return ()
        weights = []
        for instruction in inner:
            own = self._scopes.place(instruction.op_name)
            if own.layer is not None and own.phase == place.phase:
                works = instruction.opcode in WORKING
                weights.append((own.layer, self._scopes.weight(own.layer) if works else instruction.bytes / 4))
        return shares(weights)

    def _inside(self, instruction: Instruction) -> list[Instruction]:
        """What a fusion computes; any other instruction is alone."""
        found = [inner for inner in self._nested(instruction) if inner.opcode not in SILENT]
        return found or [instruction]

    def _nested(self, instruction: Instruction) -> Iterator[Instruction]:
        for called in instruction.called if instruction.opcode == "fusion" else ():
            for inner in self._program.computations.get(called, {}).values():
                if inner.opcode == "fusion":
                    yield from self._nested(inner)
                else:
                    yield inner

    # --- what neighbours tell ---------------------------------------------------------------------------------------

    def _by_readers(self, key: int, places: dict[int, Place]) -> Iterator[Place]:
        for reader in self._readers.get(key, ()):
            yield from self._entrance(reader, key)
            yield places[reader.id]

    def _by_most(self, key: int, places: dict[int, Place]) -> Iterator[Place]:
        """The name of the most that a fusion without a name does."""
        yield self._scopes.place(max(self._inside(self._own[key]), key=_rank).op_name)

    def _by_sources(self, key: int, places: dict[int, Place]) -> Iterator[Place]:
        for source in self._own[key].operands:
            if source in places:
                yield places[source]

    def _entrance(self, reader: Instruction, key: int) -> Iterator[Place]:
        """Of a fusion that reads a result: what it does with it first."""
        if reader.opcode != "fusion" or not reader.called:
            return
        inner = self._program.computations.get(reader.called[0], {})
        readers, number = _readers(inner.values()), reader.operands.index(key)
        waiting, seen = [i for i in inner.values() if i.opcode == "parameter" and i.number == number], set[int]()
        while waiting:
            for following in readers.get(waiting.pop(0).id, ()):
                if following.id in seen:
                    continue
                seen.add(following.id)
                place = self._scopes.place(following.op_name)
                if place != NOWHERE:
                    yield place
                    return
                waiting.append(following)


def _readers(instructions: Iterable[Instruction]) -> dict[int, list[Instruction]]:
    found: dict[int, list[Instruction]] = {}
    for instruction in instructions:
        for operand in instruction.operands:
            found.setdefault(operand, []).append(instruction)
    return found


def _fill(
    places: dict[int, Place], order: Iterator[int], ask: Callable[[int, dict[int, Place]], Iterator[Place]]
) -> None:
    """Give those without a layer the place of a neighbour: one with a layer before one of a phase alone. A known phase
    stays."""
    for key in list(order):
        place = places[key]
        if place.layer is not None or place.phase in ("loss", "optimiser"):
            continue
        fitting = [found for found in ask(key, places) if found != NOWHERE and place.phase in (found.phase, "unknown")]
        places[key] = next((found for found in fitting if found.layer is not None), next(iter(fitting), place))


def _rank(instruction: Instruction) -> tuple[int, int]:
    kinds = (MOVING, (), GATHERING, WORKING)
    return next((i for i, kind in enumerate(kinds) if instruction.opcode in kind), 1), instruction.bytes


def _kind(instruction: Instruction, main: Instruction) -> str:
    """The opcode; of a fusion with what it mostly does, by the name that the network's author would know it by."""
    if instruction.opcode != "fusion":
        return instruction.opcode
    primitive = re.sub(r".*/", "", main.op_name).replace("_", "-")
    pools = main.opcode in ("scatter", "reduce-window") and primitive
    return f"fusion({primitive if pools else main.opcode})"
