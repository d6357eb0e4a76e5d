"""The published report to the character, the study's tables, and the bytes that its step asks for by the model."""

from __future__ import annotations

import itertools
import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import made_profiles as made
from timetrial.profiling import published
from timetrial.profiling.published import Row, memory_text, printed, time_text
from timetrial.profiling.requested import requested
from timetrial.profiling.study import TABLES, Table
from timetrial.profiling.study import published as table_of
from timetrial.spec.network import Network
from timetrial.zoo.catalogue import find

MODELS = ("cnn", "cnn-stride-2", "cnn-stride-3", "cnn-stride-5", "cnn-filters-32", "cnn-large-pool")
# spec: bytes of each type of operation, for the six networks in this order.
GOLDEN = {
    "Conv2D": (23_592_960, 5_013_504, 2_228_224, 851_968, 11_796_480, 22_839_296),
    "LRN": (9_437_184, 1_474_560, 655_360, 327_680, 4_718_592, 7_929_856),
    "MaxPool": (5_898_240, 1_310_720, 557_056, 327_680, 2_949_120, 5_144_576),
    "MatMul": (300_032,) * 6,
    "QueueDequeueManyV2": (885_248,) * 6,
    "VariableV2": (4_273_192, 1_127_464, 832_552, 832_552, 2_186_664, 4_273_192),
    "Const": (20,) * 6,
    "FIFOQueueV2": (30_319_744,) * 6,
    "InTopKV2": (128,) * 6,
    **dict.fromkeys(("BiasAdd", "Relu", "Add", "Identity", "Reshape"), (0,) * 6),
}
TOTALS = {"cnn": 74_706_748, "cnn-stride-2": 40_431_420, "cnn-filters-32": 53_156_028, "cnn-large-pool": 71_692_092}
EXACT = tuple(table for table in TABLES if table.exact)

# Figure 4.16: the report of the study, its times as printed (a row's digits are all that is known of them).
FIGURE = """
Conv2D              | 22.84MB (100.00%, 31.86%) | 32.51ms (100.00%, 74.82%)
LRN                 | 7.93MB (68.14%, 11.06%)   | 3.73ms (25.18%, 8.57%)
BiasAdd             | 0B (0.00%, 0.00%)         | 2.15ms (16.61%, 4.95%)
MaxPool             | 5.14MB (57.08%, 7.18%)    | 1.99ms (11.65%, 4.59%)
Relu                | 0B (0.00%, 0.00%)         | 1.52ms (7.07%, 3.50%)
MatMul              | 300.03KB (49.91%, 0.42%)  | 1.15ms (3.57%, 2.65%)
QueueDequeueManyV2  | 885.25KB (49.49%, 1.23%)  | 244us (0.91%, 0.56%)
Add                 | 0B (0.00%, 0.00%)         | 81us (0.35%, 0.19%)
VariableV2          | 4.27MB (48.25%, 5.96%)    | 30us (0.17%, 0.07%)
Const               | 20B (42.29%, 0.00%)       | 12us (0.10%, 0.03%)
FIFOQueueV2         | 30.32MB (42.29%, 42.29%)  | 11us (0.07%, 0.03%)
Identity            | 0B (0.00%, 0.00%)         | 10us (0.04%, 0.02%)
Reshape             | 0B (0.00%, 0.00%)         | 5us (0.02%, 0.01%)
InTopKV2            | 128B (0.00%, 0.00%)       | 4us (0.01%, 0.01%)
"""
MICROS = (32_510, 3_730, 2_150, 1_990, 1_520, 1_150, 244, 81, 30, 12, 11, 10, 5, 4)


def network(model: str) -> Network:
    return find(f"profiling/{model}").network


def figure() -> list[tuple[str, str, str]]:
    rows = (line.split("|") for line in FIGURE.strip().splitlines())
    return [(name.strip(), size.strip(), time.strip()) for name, size, time in rows]


def rows_of(report: str) -> list[tuple[str, ...]]:
    """Name and cells of each row."""
    body = report.partition("cpu execution time\n")[2].splitlines()
    return [
        (line.split()[0], *re.findall(r"\S+ \(\S+%, \S+%\)|not measured", line[25:]))
        for line in itertools.takewhile(bool, body)
    ]


# --- the model of the bytes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "model"), list(enumerate(MODELS)))
def test_the_bytes_of_every_type_of_operation_follow_from_the_network(at: int, model: str) -> None:
    found = requested(network(model))
    assert found == {kind: sizes[at] for kind, sizes in GOLDEN.items()}
    assert sum(found.values()) == TOTALS.get(model, sum(found.values()))


@pytest.mark.parametrize("table", EXACT, ids=lambda table: table.number)
def test_every_printed_byte_of_the_exact_tables_comes_out(table: Table) -> None:
    """Value, own and cumulative percent: the rows in the order of the table, and the one that was left out last."""
    asked = requested(find(table.model).network)
    sizes = [asked[line.real[0]] for line in table.lines] + [asked["InTopKV2"]]
    assert all(len({asked[name] for name in line.real}) == 1 for line in table.lines)
    cells = published.cells(sizes, memory_text)[:-1]
    assert cells == [f"{c.text} ({c.below:.2f}%, {c.own:.2f}%)" for c in (line.bytes for line in table.lines)]


@pytest.mark.parametrize("table", [table for table in TABLES if not table.exact], ids=lambda table: table.number)
def test_the_other_tables_are_an_allocator_s_that_rounds_up(table: Table) -> None:
    asked = requested(find(table.model).network)
    known = {line.real[0]: line.bytes.amount for line in table.lines if len(line.real) == 1}
    assert known["Const"] == pytest.approx(4 * 256, abs=5)
    assert known["InTopKV2"] == 256
    for kind in ("Conv2D", "FIFOQueueV2", "VariableV2", "MatMul"):
        assert known.get(kind, asked[kind]) >= asked[kind] * 0.999  # as printed, to three digits


def test_a_network_of_other_operations_is_refused() -> None:
    with pytest.raises(ValueError, match="'lstm_1': what lstm asks for is not known, only of conv2d, dense, flatten"):
        requested(Network.model_validate({"input": {"shape": (8, 4)}, "layers": [{"lstm": {"units": 3}}]}))


# --- the tables of the study ------------------------------------------------------------------------------------------


def test_the_tables_are_those_of_the_networks_and_name_their_slips() -> None:
    assert [table.model for table in TABLES] == [f"profiling/{model}" for model in MODELS]
    assert all(table_of(table.model) is table and table.slips for table in TABLES)
    assert table_of("quick/cnn") is None
    assert all("4.16" not in slip or table.number == "4.8" for table in TABLES for slip in table.slips)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.number)
def test_the_times_of_a_table_are_told_in_falling_order_and_their_shares_fit(table: Table) -> None:
    times = [line.time.amount for line in table.lines]
    assert times == sorted(times, reverse=True)
    total = times[0] / table.lines[0].time.own * 100
    for line in table.lines:
        assert line.time.own == pytest.approx(100 * line.time.amount / total, abs=0.06)


def test_convolution_comes_first_and_loses_share_with_the_stride() -> None:
    shares = {table.model.partition("/")[2]: table.shares["Conv2D"] for table in TABLES}
    assert [shares[model] for model in MODELS[:4]] == [72.02, 64.67, 56.73, 43.69]
    assert all(table.lines[0].real == ("Conv2D",) for table in TABLES)


# --- the report -------------------------------------------------------------------------------------------------------


def test_the_figure_of_the_study_comes_out_of_the_network() -> None:
    """The bytes to the character; the times' shares as far as their printed digits tell."""
    asked = requested(network("cnn-large-pool"))
    given = [Row(name, asked[name], 0, time) for (name, *_), time in zip(figure(), MICROS, strict=True)]
    found = rows_of(printed(reversed(given)))
    assert [row[:2] for row in found] == [(name, size) for name, size, _ in figure()]
    for (_, _, total, accelerator, cpu), (_, _, time) in zip(found, figure(), strict=True):
        assert total == cpu
        assert accelerator == "0us (0.00%, 0.00%)"
        assert cpu.split()[0] == time.split()[0]
        shares, theirs = ([float(n) for n in re.findall(r"([\d.]+)%", text)] for text in (cpu, time))
        assert shares == pytest.approx(theirs, abs=0.031)


def test_the_report_is_laid_out_as_the_tool_had_it() -> None:
    lines = printed([Row("MatMul", 300_032, 0, 1_150), Row("Const", 20, 0, 12)]).splitlines()
    assert lines[1] == "==================Model Analysis Report======================"
    assert lines[3] == "Doc:"
    assert lines[4].startswith("op: The nodes are operation kernel type, such as MatMul, Conv2D.")
    assert [line.partition(":")[0] for line in lines[4:9]] == [
        "op", "requested bytes", "total execution time", "cpu execution time", "accelerator execution time",
    ]  # fmt: skip
    assert lines[10:12] == [
        "Profile:",
        "node name | requested bytes | total execution time | accelerator execution time | cpu execution time",
    ]
    assert lines[12] == (
        "MatMul                       300.03KB (100.00%, 99.99%),       1.15ms (100.00%, 98.97%),"
        "             0us (0.00%, 0.00%),       1.15ms (100.00%, 98.97%)"
    )
    assert len(lines[12]) == 25 + 4 * 30 + 3 * 2
    assert lines[-1] == "======================End of Report=========================="


def test_the_line_of_the_evaluation_follows() -> None:
    at = datetime(2018, 10, 4, 14, 28, 26, 522944)
    assert published.reached(0.863, at) == "2018-10-04 14:28:26.522944: precision @ 1 = 0.863"
    last = published.report(made.profile(), precision=0.5).splitlines()[-1]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: precision @ 1 = 0\.500", last)


@pytest.mark.parametrize(
    ("order", "names"), [("micros", "abc"), ("bytes", "cba"), ("name", "abc")]
)  # fmt: skip
def test_rows_are_ordered_as_asked(order: published.Order, names: str) -> None:
    given = [Row("b", 20, 0, 20), Row("c", 30, 0, 10), Row("a", 10, 0, 30)]
    assert "".join(row[0] for row in rows_of(printed(given, order))) == names


def test_a_row_falls_out_with_all_below_it() -> None:
    """A row without bytes stays as long as one below it has some."""
    given = [Row("a", 10, 0, 30), Row("b", 0, 0, 20), Row("c", 5, 0, 10), Row("d", 0, 0, 5)]
    assert [row[0] for row in rows_of(printed(given))] == ["a", "b", "c"]
    assert [row[0] for row in rows_of(printed(given, least_micros=36))] == ["a"]
    assert [row[0] for row in rows_of(printed(given, least_bytes=0))] == ["a", "b", "c", "d"]
    assert rows_of(printed(given, least_micros=36))[0][1] == "10B (100.00%, 100.00%)"  # of what is shown


def test_bytes_that_an_engine_does_not_tell_are_not_invented() -> None:
    found = rows_of(printed([Row("a", None, 0, 30), Row("b", None, 0, 10)]))
    assert [row[1] for row in found] == ["not measured"] * 2
    assert found[0][2] == "30us (100.00%, 75.00%)"


def test_an_empty_table_is_a_report_without_rows() -> None:
    assert rows_of(printed([])) == []


def test_a_profile_is_summed_by_type_in_a_mean_step() -> None:
    found = {row.name: row for row in published.rows(made.profile())}
    assert found["aten::conv2d"] == Row("aten::conv2d", 4096 + 8192, 0, 320)
    assert found["aten::relu"].bytes is None
    assert "not measured" in published.report(made.profile())


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0us"), (999, "999us"), (1000, "1.00ms"), (999_994, "999.99ms"), (999_999, "1000.00ms"), (10**6, "1.00sec")],
)
def test_units_of_time_change_at_a_thousand(micros: int, text: str) -> None:
    assert time_text(micros) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (999, "999B"), (1000, "1.00KB"), (999_999, "1000.00KB"), (10**6, "1.00MB"), (10**10, "10000.00MB")],
)
def test_units_of_memory_are_decimal_and_end_with_megabytes(size: int, text: str) -> None:
    assert memory_text(size) == text


SIZES = st.lists(st.integers(0, 10**12), min_size=1, max_size=30)


@given(SIZES)
def test_shares_add_up_and_fall_from_a_hundred(sizes: list[int]) -> None:
    found = published.shares(sizes, "time")
    if not sum(sizes):
        assert found == [(0.0, 0.0)] * len(sizes)
        return
    assert found[0][0] == 100.0
    assert sum(own for _, own in found) == pytest.approx(100)
    for (below, own), (after, _) in zip(found, [*found[1:], (0.0, 0.0)], strict=True):
        assert below == pytest.approx(own + after, abs=1e-9)


@given(SIZES)
def test_bytes_have_no_share_where_there_are_none(sizes: list[int]) -> None:
    for size, share, plain in zip(
        sizes, published.shares(sizes, "memory"), published.shares(sizes, "time"), strict=True
    ):
        assert share == (plain if size else (0.0, 0.0))


@given(st.integers(0, 10**13))
def test_a_text_is_its_value_to_half_of_its_last_digit(value: int) -> None:
    for text, units in (
        (time_text(value), {"us": 1, "ms": 1e3, "sec": 1e6}),
        (memory_text(value), {"B": 1, "KB": 1e3, "MB": 1e6}),
    ):
        number, unit = re.fullmatch(r"([\d.]+)([A-Za-z]+)", text).groups()  # type: ignore[union-attr]
        assert float(number) * units[unit] == pytest.approx(value, abs=0.00501 * units[unit], rel=1e-12)
