"""The document on the method: every rule has a row, every row a test, and every test that is named exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from timetrial.records.record import Kind

ROOT = Path(__file__).parents[2]
NOT_YET = "not yet"
RULES = [
    f"{part}{number}" for part, count in (("E", 7), ("R", 10), ("S", 8), ("M", 8)) for number in range(1, count + 1)
]


@cache
def rows() -> dict[str, tuple[str, str]]:
    """What is done and what shows it, by rule."""
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    table = text[text.index("## Every rule") :]
    found: dict[str, tuple[str, str]] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("| ") or cells[0] == "rule":
            continue
        assert len(cells) == 3, line
        rule, done, shown = cells
        assert rule not in found, f"{rule} is there twice"
        found[rule] = (done, shown.rstrip(" |"))
    return found


def named() -> list[str]:
    return sorted({test for _, shown in rows().values() for test in re.findall(r"`([^`]+)`", shown)})


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("rule", [*RULES, *get_args(Kind)])
def test_every_rule_and_every_outcome_has_a_row(rule: str) -> None:
    done, shown = rows()[rule]
    assert len(done) > 10
    assert shown == NOT_YET or shown.startswith("`tests/")


def test_every_row_names_a_test_or_says_not_yet() -> None:
    for rule, (_, shown) in rows().items():
        assert shown == NOT_YET or re.fullmatch(r"`tests/\S+\.py::test_\w+`(, `tests/\S+\.py::test_\w+`)*", shown), rule


@pytest.mark.parametrize("test", named())
def test_every_test_that_is_named_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert (ROOT / file).is_file(), file
    assert name in names_in(file), test


def test_every_known_defect_is_in_the_table() -> None:
    file = "tests/unit/test_known_defects.py"
    defects = {f"{file}::{name}" for name in names_in(file) if name.startswith("test_")}
    assert len(defects) >= 17
    assert defects <= set(named())


def test_what_is_not_shown_yet_is_known() -> None:
    """The list may only become shorter."""
    assert {rule for rule, (_, shown) in rows().items() if shown == NOT_YET} == set()
