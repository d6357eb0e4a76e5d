"""Programs of XLA as they stand in a trace: instructions, what they read, and what is fused into them.

Field numbers are those of `xla/service/hlo.proto` and `xla/xla_data.proto`.
"""

from __future__ import annotations

from dataclasses import dataclass

from timetrial.profiling.readers.protos import Span, numbers, signed, text, walk

MODULE_OF_PROTO = 1
MODULE = {"name": 1, "computations": 3, "entry_computation_id": 6}
COMPUTATION = {"instructions": 2, "id": 5}
INSTRUCTION = {
    "name": 1, "opcode": 2, "shape": 3, "metadata": 7, "parameter_number": 9, "id": 35, "operand_ids": 36,
    "called_computation_ids": 38,
}  # fmt: skip
METADATA = {"op_name": 2}
SHAPE = {"element_type": 2, "dimensions": 3, "tuple_shapes": 4}
WIDTHS = {
    1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 8, 16: 2, 18: 16, 19: 1, 20: 1,
}  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    name: str
    opcode: str
    op_name: str
    id: int
    operands: tuple[int, ...]
    called: tuple[int, ...]  # computations: what is fused into it, the body of a loop
    bytes: int  # of its result
    number: int  # of a parameter: which operand of the caller it is


@dataclass(frozen=True)
class Program:
    name: str
    computations: dict[int, dict[int, Instruction]]
    entry: int


def program(data: bytes, span: Span) -> Program:
    """From the bytes of an HloProto."""
    name, entry, computations = "", 0, dict[int, dict[int, Instruction]]()
    module = next((v for n, v in walk(data, span) if n == MODULE_OF_PROTO and isinstance(v, Span)), Span(0, 0))
    for number, value in walk(data, module):
        if number == MODULE["name"]:
            name = text(data, value)
        elif number == MODULE["entry_computation_id"]:
            entry = signed(value)
        elif number == MODULE["computations"] and isinstance(value, Span):
            key, instructions = _computation(data, value)
            computations[key] = instructions
    return Program(name, computations, entry)


def _computation(data: bytes, span: Span) -> tuple[int, dict[int, Instruction]]:
    key, found = 0, dict[int, Instruction]()
    for number, value in walk(data, span):
        if number == COMPUTATION["id"]:
            key = signed(value)
        elif number == COMPUTATION["instructions"] and isinstance(value, Span):
            instruction = _instruction(data, value)
            found[instruction.id] = instruction
    return key, found


def _instruction(data: bytes, span: Span) -> Instruction:
    texts, op_name, key, size, which = {"name": "", "opcode": ""}, "", 0, 0, 0
    operands, called = list[int](), list[int]()
    for number, value in walk(data, span):
        if number == INSTRUCTION["name"]:
            texts["name"] = text(data, value)
        elif number == INSTRUCTION["opcode"]:
            texts["opcode"] = text(data, value)
        elif number == INSTRUCTION["metadata"] and isinstance(value, Span):
            op_name = next((text(data, v) for n, v in walk(data, value) if n == METADATA["op_name"]), "")
        elif number == INSTRUCTION["id"]:
            key = signed(value)
        elif number == INSTRUCTION["parameter_number"]:
            which = signed(value)
        elif number == INSTRUCTION["operand_ids"]:
            operands += numbers(data, value)
        elif number == INSTRUCTION["called_computation_ids"]:
            called += numbers(data, value)
        elif number == INSTRUCTION["shape"] and isinstance(value, Span):
            size = _size(data, value)
    return Instruction(texts["name"], texts["opcode"], op_name, key, tuple(operands), tuple(called), size, which)


def _size(data: bytes, span: Span) -> int:
    """Bytes of a shape; of a tuple those of its parts together."""
    width, count, parts = 0, 1, 0
    for number, value in walk(data, span):
        if number == SHAPE["element_type"]:
            width = WIDTHS.get(signed(value), 0)
        elif number == SHAPE["dimensions"]:
            for dimension in numbers(data, value):
                count *= dimension
        elif number == SHAPE["tuple_shapes"] and isinstance(value, Span):
            parts += _size(data, value)
    return width * count + parts
