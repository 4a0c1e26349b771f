"""The page about delivery: each of its lines names tests, and each test that it names is there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
SAID, LISTED = (REPOSITORY / "docs" / "delivery.md").read_text().split("\n## Tests\n")

TESTS = dict(re.findall(r"^\| (\d+) \| `(\S+)` \|$", LISTED, re.MULTILINE))
"""Path and name of each test, by its number on the page."""
NUMBERS = re.compile(r"\d+(?: \d+)*")


def rows() -> Iterator[list[str]]:
    """Yield the cells of every line of a table, but for its head."""
    for line in SAID.splitlines():
        if line.startswith("|") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


@cache
def names_in(file: Path) -> frozenset[str]:
    """Return the names of the tests of a file."""
    found = ast.walk(ast.parse(file.read_text()))
    functions = (node for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_line_names_its_tests() -> None:
    heads = [row for row in rows() if row[-1] == "tests"]
    lines = [row for row in rows() if row[-1] != "tests"]

    assert heads
    assert [row for row in lines if not NUMBERS.fullmatch(row[-1])] == []


def test_every_number_is_of_a_test_and_every_test_has_a_line() -> None:
    last_cells = (row[-1] for row in rows() if row[-1] != "tests")
    in_sentences = re.findall(r"\(tests? (\d+(?: \d+)*)\)", SAID)
    named = {number for cell in [*last_cells, *in_sentences] for number in cell.split()}

    assert named == TESTS.keys()


@pytest.mark.parametrize("test", TESTS.values())
def test_a_test_that_is_named_is_there(test: str) -> None:
    path, _, name = test.partition("::")

    assert name in names_in(REPOSITORY / path)
