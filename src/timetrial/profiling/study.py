"""The published tables of operations, cell by cell, and the slips in them. Facts of the study of 2018, no measurements.

Below their first rows the tables carry wrong names: values stand in the order of the report, names in one that was
fixed. `real` is the operation that a value belongs to: by its bytes, which are told apart by the model of `requested`;
several names where those without bytes cannot be. One figure, 4.16, is the report of table 4.8's run with its names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """`value (A%, B%)` as printed."""

    text: str
    below: float
    own: float

    @property
    def amount(self) -> float:
        """In microseconds or bytes, as far as the digits go."""
        unit = next(unit for unit in _UNITS if self.text.endswith(unit))
        return float(self.text.removesuffix(unit)) * _UNITS[unit]


@dataclass(frozen=True)
class Line:
    printed: str  # the name it was given
    real: tuple[str, ...]
    time: Cell
    bytes: Cell


@dataclass(frozen=True)
class Table:
    number: str
    model: str  # in the zoo
    precision: float  # at 1, as told
    exact: bool  # bytes as asked for; else by an allocator that rounds up to 256
    slips: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def shares(self) -> dict[str, float]:
        """Percent of the time, of the operations whose value is certain."""
        return {line.real[0]: line.time.own for line in self.lines if len(line.real) == 1}


_UNITS = {"sec": 1e6, "ms": 1e3, "us": 1.0, "MB": 1e6, "KB": 1e3, "B": 1.0}
_IN_PLACE = "BiasAdd or Relu"
_HANDED_ON = "Identity or Reshape"
_UNKNOWN = "BiasAdd, Relu, Add, Identity or Reshape"


def _cell(text: str) -> Cell:
    value, below, own = text.replace("(", " ").replace(",", " ").replace("%", " ").replace(")", " ").split()
    return Cell(value, float(below), float(own))


def _line(row: str) -> Line:
    printed, time, size, real = (part.strip() for part in row.split("|"))
    names = real.replace(" or ", ", ").split(", ")
    return Line(printed, tuple(names), _cell(time), _cell(size))


def _table(number: str, model: str, precision: float, exact: bool, rows: str, *slips: str) -> Table:
    lines = tuple(_line(row) for row in rows.strip().splitlines())
    return Table(number, model, precision, exact, slips, lines)


_SHIFTED = "names and values are shifted against each other below the first rows"
_NO_LAST = "the last row, InTopKV2 with 128B, is left out"
_ROUNDED = "bytes are rounded up to 256 by the allocator: not to be compared with tables 4.4, 4.7 and 4.8"

TABLES = (
    _table("4.3", "profiling/cnn", 0.86, False, """
        Conv2D | 40.34ms (100.00%, 72.02%) | 25.55MB (100.00%, 28.08%) | Conv2D
        LRN | 5.78ms (27.98%, 10.33%) | 9.44MB (24.32%, 10.37%) | LRN
        BiasAdd | 2.67ms (17.65%, 4.76%) | 0B (0.00%, 0.00%) | BiasAdd
        MaxPool | 2.38ms (12.89%, 4.26%) | 6.82MB (13.52%, 7.49%) | MaxPool
        Relu | 2.22ms (8.63%, 3.97%) | 0B (0.00%, 0.00%) | Relu
        MatMul | 1.57ms (4.66%, 2.81%) | 385.00KB (13.95%, 0.42%) | MatMul
        QueueManyV2 | 687us (1.85%, 1.23%) | 0B (0.00%, 0.00%) | QueueDequeueManyV2
        Add | 136us (0.62%, 0.24%) | 0B (0.00%, 0.00%) | Add
        InTopKV2 | 115us (0.38%, 0.21%) | 256B (24.32%, 0.00%) | InTopKV2
        VariableV2 | 49us (0.18%, 0.09%) | 4.52MB (4.97%, 4.97%) | VariableV2
        Const | 23us (0.09%, 0.04%) | 1.02KB (100.00%, 0.00%) | Const
        FIFOQueueV2 | 12us (0.05%, 0.02%) | 43.30MB (71.92%, 47.60%) | FIFOQueueV2
        Identity | 10us (0.03%, 0.02%) | 0B (0.00%, 0.00%) | Identity
        Reshape | 4us (0.01%, 0.01%) | 0B (0.00%, 0.00%) | Reshape
        """, _ROUNDED, "A of the bytes runs in the order of names, A of the time in that of time",
        "the bytes of QueueDequeueManyV2 are printed as 0B; the other shares leave 1.06 % for them, about 0.96MB"),
    _table("4.4", "profiling/cnn-stride-2", 0.796, True, f"""
        Conv2D | 6.54ms (100.00%, 64.67%) | 5.01MB (100.00%, 12.40%) | Conv2D
        LRN | 1.15ms (35.33%, 11.37%) | 1.47MB (87.60%, 3.65%) | LRN
        BiasAdd | 605us (23.97%, 5.98%) | 1.31MB (83.95%, 3.24%) | MaxPool
        MaxPool | 548us (17.98%, 5.42%) | 0B (0.00%, 0.00%) | {_IN_PLACE}
        Relu | 458us (12.56%, 4.53%) | 300.03KB (80.71%, 0.74%) | MatMul
        MatMul | 364us (8.03%, 3.60%) | 0B (0.00%, 0.00%) | {_IN_PLACE}
        QueueManyV2 | 242us (4.43%, 2.39%) | 885.25KB (79.97%, 2.19%) | QueueDequeueManyV2
        Add | 134us (2.04%, 1.33%) | 0B (0.00%, 0.00%) | Add
        InTopKV2 | 32us (0.71%, 0.32%) | 1.13MB (77.78%, 2.79%) | VariableV2
        VariableV2 | 32us (0.71%, 0.32%) | 30.32MB (74.99%, 74.99%) | FIFOQueueV2
        Const | 14us (0.40%, 0.14%) | 20B (0.00%, 0.00%) | Const
        FIFOQueueV2 | 12us (0.26%, 0.12%) | 0B (0.00%, 0.00%) | {_HANDED_ON}
        Identity | 10us (0.14%, 0.10%) | 0B (0.00%, 0.00%) | {_HANDED_ON}
        """, _SHIFTED, _NO_LAST,
        "the time 32us (0.71%, 0.32%) stands twice; below, times and bytes may be off by one row"),
    _table("4.5", "profiling/cnn-stride-3", 0.747, False, f"""
        Conv2D | 2.61ms (100.00%, 56.73%) | 2.26MB (100.00%, 4.74%) | Conv2D
        LRN | 531us (43.27%, 11.52%) | 698.83KB (95.26%, 1.46%) | LRN
        BiasAdd | 333us (31.75%, 7.23%) | 885.29KB (93.80%, 1.85%) | QueueDequeueManyV2
        MaxPool | 312us (24.52%, 6.77%) | 373.96KB (91.95%, 0.78%) | MatMul
        Relu | 249us (17.75%, 5.40%) | 0B (0.00%, 0.00%) | {_UNKNOWN}
        MatMul | 248us (12.35%, 5.38%) | 735.88KB (91.16%, 1.54%) | MaxPool
        QueueManyV2 | 116us (6.97%, 2.52%) | 0B (0.00%, 0.00%) | {_UNKNOWN}
        Add | 111us (4.45%, 2.41%) | 0B (0.00%, 0.00%) | {_UNKNOWN}
        InTopKV2 | 45us (2.04%, 0.98%) | 1.04MB (89.62%, 2.18%) | VariableV2
        VariableV2 | 19us (1.06%, 0.41%) | 1.02KB (87.44%, 0.00%) | Const
        Const | 13us (0.65%, 0.28%) | 41.74MB (87.44%, 87.44%) | FIFOQueueV2
        FIFOQueueV2 | 10us (0.37%, 0.22%) | 0B (0.00%, 0.00%) | {_HANDED_ON}
        Identity | 7us (0.15%, 0.15%) | 256B (0.00%, 0.00%) | InTopKV2
        """, _SHIFTED, _ROUNDED, "one row without bytes is left out"),
    _table("4.6", "profiling/cnn-stride-5", 0.70, False, f"""
        Conv2D | 1.24ms (100.00%, 43.69%) | 862.61KB (100.00%, 1.86%) | Conv2D
        LRN | 341us (56.31%, 12.02%) | 885.28KB (98.14%, 1.91%) | QueueDequeueManyV2
        BiasAdd | 327us (44.29%, 11.52%) | 367.25KB (96.23%, 0.79%) | MatMul or LRN
        MaxPool | 321us (32.77%, 11.31%) | 485.14KB (95.43%, 1.05%) | LRN or MaxPool
        Relu | 159us (21.46%, 5.60%) | 419.73KB (94.39%, 0.91%) | MaxPool or LRN
        MatMul | 136us (15.86%, 4.79%) | 0B (0.00%, 0.00%) | {_UNKNOWN}
        QueueManyV2 | 125us (11.06%, 4.40%) | 0B (0.00%, 0.00%) | {_UNKNOWN}
        Add | 99us (6.66%, 3.49%) | 0B (0.00%, 0.00%) | {_UNKNOWN}
        InTopKV2 | 44us (3.17%, 1.55%) | 832.77KB (93.48%, 1.80%) | VariableV2
        VariableV2 | 18us (1.62%, 0.63%) | 1.02KB (91.68%, 0.00%) | Const
        Const | 13us (0.99%, 0.46%) | 42.46MB (91.68%, 91.68%) | FIFOQueueV2
        FIFOQueueV2 | 10us (0.53%, 0.35%) | 0B (0.00%, 0.00%) | {_HANDED_ON}
        Identity | 5us (0.18%, 0.18%) | 256B (0.00%, 0.00%) | InTopKV2
        """, _SHIFTED, _ROUNDED, "one row without bytes is left out",
        "three rows of a few hundred KB cannot be told apart by the rounded bytes"),
    _table("4.7", "profiling/cnn-filters-32", 0.837, True, f"""
        Conv2D | 20.97ms (100.00%, 75.14%) | 11.80MB (100.00%, 22.19%) | Conv2D
        LRN | 2.27ms (24.86%, 8.12%) | 4.72MB (77.81%, 8.88%) | LRN
        BiasAdd | 1.48ms (16.74%, 5.30%) | 2.95MB (68.93%, 5.55%) | MaxPool
        MaxPool | 1.18ms (11.44%, 4.22%) | 0B (0.00%, 0.00%) | {_IN_PLACE}
        Relu | 865us (7.21%, 3.10%) | 0B (0.00%, 0.00%) | {_IN_PLACE}
        MatMul | 740us (4.11%, 2.65%) | 300.03KB (63.38%, 0.56%) | MatMul
        QueueManyV2 | 246us (1.46%, 0.88%) | 885.25KB (62.82%, 1.67%) | QueueDequeueManyV2
        Add | 89us (0.58%, 0.32%) | 0B (0.00%, 0.00%) | Add
        InTopKV2 | 30us (0.26%, 0.11%) | 2.19MB (61.15%, 4.11%) | VariableV2
        VariableV2 | 14us (0.15%, 0.05%) | 30.32MB (57.04%, 57.04%) | FIFOQueueV2
        Const | 10us (0.10%, 0.04%) | 20B (0.00%, 0.00%) | Const
        FIFOQueueV2 | 10us (0.07%, 0.04%) | 0B (0.00%, 0.00%) | {_HANDED_ON}
        Identity | 5us (0.03%, 0.02%) | 0B (0.00%, 0.00%) | {_HANDED_ON}
        """, _SHIFTED, _NO_LAST),
    _table("4.8", "profiling/cnn-large-pool", 0.863, True, """
        Conv2D | 32.51ms (100.00%, 74.82%) | 22.84MB (100.00%, 31.86%) | Conv2D
        LRN | 3.73ms (25.18%, 8.57%) | 7.93MB (68.14%, 11.06%) | LRN
        BiasAdd | 2.15ms (16.61%, 4.95%) | 0B (0.00%, 0.00%) | BiasAdd
        MaxPool | 1.99ms (11.65%, 4.59%) | 5.14MB (57.08%, 7.18%) | MaxPool
        Relu | 1.52ms (7.07%, 3.50%) | 0B (0.00%, 0.00%) | Relu
        MatMul | 1.15ms (3.57%, 2.65%) | 300.03KB (49.91%, 0.42%) | MatMul
        QueueManyV2 | 244us (0.91%, 0.56%) | 885.25KB (49.49%, 1.23%) | QueueDequeueManyV2
        Add | 81us (0.35%, 0.19%) | 0B (0.00%, 0.00%) | Add
        InTopKV2 | 30us (0.17%, 0.07%) | 4.27MB (48.25%, 5.96%) | VariableV2
        VariableV2 | 12us (0.10%, 0.03%) | 20B (42.29%, 0.00%) | Const
        Const | 11us (0.07%, 0.03%) | 30.32MB (42.29%, 42.29%) | FIFOQueueV2
        FIFOQueueV2 | 10us (0.04%, 0.02%) | 0B (0.00%, 0.00%) | Identity
        Identity | 5us (0.02%, 0.01%) | 0B (0.00%, 0.00%) | Reshape
        """, _SHIFTED, _NO_LAST,
        "figure 4.16, of the same run, has MaxPool's bytes as (57.00%, 7.18%), Relu's time as (7.07%, 3.59%) and "
        "VariableV2's bytes as (48.23%, 5.98%); the other cells of its columns contradict these three"),
)  # fmt: skip


def published(model: str) -> Table | None:
    """The table of a model of the zoo, where the study has one."""
    return next((table for table in TABLES if table.model == model), None)
