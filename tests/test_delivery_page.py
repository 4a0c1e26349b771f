"""The page about delivery: each of its lines is a promise with a name, and tests hold every promise."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.compiler.component.promises import size
from headrace.compiler.delivery import BATCHES_UNDER_WAY
from headrace.connectors.kafka.connection import LIMITS as KAFKA
from headrace.connectors.kafka.sink import REQUEST_BYTES
from headrace.connectors.mqtt.source import IN_FLIGHT
from headrace.web.docs.__main__ import main
from headrace.web.docs.heldpromises import held_promises, unmatched

REPOSITORY = Path(__file__).parent.parent
PAGE = (REPOSITORY / "docs" / "delivery.md").read_text()
SAID, LISTED = PAGE.split("\n## Tests\n")

TESTS = re.findall(r"^\|.*\| `(\S+::\S+)` \|$", LISTED, re.MULTILINE)
"""Each test that the page lists, as pytest calls it."""
NAME = re.compile(r"`[a-z0-9_]+(?:\.[a-z0-9_]+)+`")


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


def test_every_line_names_its_promise() -> None:
    heads = [row for row in rows() if row[-1] in ("promise", "promises")]
    lines = [row for row in rows() if row not in heads]

    assert len(heads) == 15
    assert [row for row in lines if not NAME.fullmatch(row[-1])] == []


def test_a_name_that_the_page_declares_stands_at_one_place() -> None:
    declared = Counter(re.findall(r"`(delivery\.[a-z0-9_.]+)`", SAID))

    assert len(declared) > 30
    assert [name for name, count in declared.items() if count > 1] == []
    listed = {name.strip("`") for name in NAME.findall(LISTED)}
    assert declared.keys() <= listed


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        ("delivery.case.rebalance", f"up to {KAFKA.revoke_seconds:g} s"),
        ("delivery.case.member_dies", f"after {KAFKA.session_seconds:g} s"),
        ("delivery.case.deleted", f"{size(REQUEST_BYTES)} of each partition"),
        ("delivery.mqtt.window", f"Mosquitto: {IN_FLIGHT}"),
        ("delivery.blocked.window", f"has {BATCHES_UNDER_WAY} batches under way"),
    ],
)
def test_a_number_of_the_prose_is_the_one_that_counts(promise: str, said: str) -> None:
    [paragraph] = [each for each in re.split(r"\n\n|\n(?=\|)", SAID) if f"`{promise}`" in each]

    assert said in paragraph


@pytest.mark.parametrize("test", sorted(set(TESTS)))
def test_a_test_that_is_listed_is_there(test: str) -> None:
    path, _, name = test.partition("::")

    assert name.rpartition("::")[2] in names_in(REPOSITORY / path)


def test_the_marks_of_tests_are_read_from_their_text(tmp_path: Path) -> None:
    (tmp_path / "tests" / "inner").mkdir(parents=True)
    (tmp_path / "tests" / "inner" / "test_b.py").write_text(
        'class TestIt:\n    @promise("a.b.c")\n    @other("x")\n    async def test_two(self): ...\n'
        '@promise("a.b.c", "d.e")\n@promise("f.g")\ndef test_one(): ...\n'
    )
    (tmp_path / "tests" / "test_a.py").write_text("def test_nothing(): ...\n")

    assert held_promises(tmp_path) == {
        "a.b.c": [
            "tests/inner/test_b.py::TestIt::test_two",
            "tests/inner/test_b.py::test_one",
        ],
        "d.e": ["tests/inner/test_b.py::test_one"],
        "f.g": ["tests/inner/test_b.py::test_one"],
    }


def test_a_promise_without_a_test_and_a_mark_without_a_promise_are_told() -> None:
    held = {"kept.one": ["tests/test_a.py::test_one"], "gone": ["tests/test_a.py::test_two"]}

    assert [*unmatched(["kept.one", "new.one"], held)] == [
        "no test holds the promise 'new.one': mark one with @promise(\"new.one\")",
        "tests/test_a.py::test_two: nothing promises 'gone'",
    ]
    assert [*unmatched(["kept.one", "gone"], held)] == []


def test_what_is_told_of_promises_fails_the_check(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.symlink_to(REPOSITORY / "docs")  # without the tests beside it
    (tmp_path / "bench").symlink_to(REPOSITORY / "bench")

    told = CliRunner().invoke(main, ["--check", "--no-consoles", "--docs", str(docs)])

    assert told.exit_code == 1
    assert "no test holds the promise 'kafka.on_delivery.kill'" in told.stdout
