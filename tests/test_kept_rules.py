"""The rules of what becomes of what is kept name the tests that hold them, and those are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "decisions" / "changes-of-what-is-kept.md"
NAMED = re.compile(r"`([a-z_/]+\.py)(?:::(\w+))?`")
ROWS = [
    line
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and "held by" not in line
]


@cache
def names(file: Path) -> set[str]:
    """Return the functions and classes of a file."""
    return {
        each.name
        for each in ast.walk(ast.parse(file.read_text()))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


@pytest.mark.parametrize("row", [row for row in ROWS if "---" not in row])
def test_each_rule_names_tests_that_are_there(row: str) -> None:
    found = NAMED.findall(row.split("|")[3])

    assert found, "no test holds it"
    for file, test in found:
        assert (TESTS / file).exists(), file
        assert not test or test in names(TESTS / file), f"{file}::{test}"
