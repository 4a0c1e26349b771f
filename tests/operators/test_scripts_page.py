"""The page of the script language says what is true: its examples, its tables, its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.jsontext import encode
from headrace.compiler.lowering.lines import SLICE_SECONDS
from headrace.compiler.runtime.monitoring import failures
from headrace.operators.script import host
from headrace.operators.script.compiling import LIMITS, OPERATIONS, SECONDS
from headrace.operators.script.host import ScriptHost
from headrace.operators.script.names import FUNCTIONS
from headrace.operators.script.sources import LARGEST
from headrace.operators.script.wording import KINDS
from tests.operators.scripted import examined, outcome

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "scripts.md").read_text()
COMPONENT = (DOCS / "components" / "transform" / "script.md").read_text()

EXAMPLE = re.compile(r"^```rhai\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = [*EXAMPLE.findall(PAGE), *EXAMPLE.findall(COMPONENT)]


def tables(head: str) -> Iterator[list[str]]:
    """Yield the cells of every row of the tables with such a head."""
    rows: list[str] = []
    for line in [*PAGE.splitlines(), ""]:
        if line.startswith("| "):
            rows.append(line)
            continue
        if rows and rows[0] == head:
            for row in rows[2:]:
                yield [each.strip() for each in re.split(r"(?<!\\)\|", row)[1:-1]]
        rows = []


def code(cell: str) -> str:
    """Return what stands in backticks in a cell."""
    found = re.fullmatch(r"(`+) ?(.*?) ?\1", cell)
    assert found is not None, cell
    return found[2].replace(r"\|", "|")


def values(text: str) -> list[Any]:
    """Return the JSON values that stand beside each other in a line."""
    found, decoder = [], json.JSONDecoder()
    text = text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_gives_what_stands_below_it(example: str) -> None:
    first, *lines = example.splitlines()
    given, expected = first.removeprefix("// "), []
    while lines[-1].startswith("// "):
        expected.insert(0, values(lines.pop().removeprefix("// ")))
    is_batch = given.startswith("batch: ")

    found = outcome(
        "\n".join(lines),
        values(given.removeprefix("batch: ")),
        scope="batch" if is_batch else "message",
    )

    assert found.failures == []
    assert json.dumps(found.batches) == json.dumps(expected)


ROWS = [*tables("| expression | gives |")]
[MESSAGE] = re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_an_expression_gives_what_stands_beside_it(row: list[str]) -> None:
    expression, gives = row

    found = outcome(f"emit({{ {code(expression)} }})", [json.loads(MESSAGE)])

    if gives == "fails":
        assert found.failure
    else:
        assert json.dumps(found.messages) == json.dumps([json.loads(code(gives))])


LISTED = [*tables("| function | for example | gives |")]


@pytest.mark.parametrize("row", LISTED, ids=[f"{row[0]} {n}" for n, row in enumerate(LISTED)])
def test_an_example_of_a_function_calls_it_and_gives_what_stands_beside_it(row: list[str]) -> None:
    name, example, gives = row

    found = outcome(f"emit({{ {code(example)} }})", [json.loads(MESSAGE)])

    assert re.search(rf"\b{code(name)}\b", code(example))
    if gives == "fails":
        assert found.failure
    elif gives.startswith("nothing"):
        assert (found.failures, found.batches) == ([], [])
    else:
        assert json.dumps(found.messages) == json.dumps([json.loads(code(gives))])


def test_every_function_of_the_language_has_an_example() -> None:
    assert {code(row[0]) for row in LISTED} == FUNCTIONS


def test_a_number_as_text_is_not_always_as_json_writes_it() -> None:
    assert outcome("emit(msg.to_string())", [0.000001]).messages == ["0.000001"]
    assert encode(0.000001) == b"1e-6"


def test_every_function_is_in_the_table() -> None:
    listed = re.findall(
        r"`(\w+)\(", " ".join(row[0] for row in tables("| function | what it does |"))
    )

    assert {*listed} == {*ScriptHost("script").functions(), "emit", "print", "debug"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("null", "()"),
        ("true", "bool"),
        ("7", "i64"),
        ("9223372036854775808", "f64"),
        ("42.0", "f64"),
        ('"a"', "string"),
        ("[1]", "array"),
        ('{"a": 1}', "map"),
    ],
)
def test_the_table_of_values_has_the_types_of_the_script(value: str, kind: str) -> None:
    cells = " ".join(row[1] for row in tables("| JSON | in a script | back |"))

    assert outcome("emit(type_of(msg))", [json.loads(value)]).messages == [kind]
    name = KINDS[kind].removeprefix("an ").removeprefix("a ")
    assert f"`{name}`" in cells
    assert name == kind or f'`"{kind}"` of {KINDS[kind]}' in PAGE


[WORDS] = re.findall(r"<!-- words -->(.*?)<!-- /words -->", PAGE, re.DOTALL)


@pytest.mark.parametrize("word", re.findall(r"`(\w+)`", WORDS))
def test_a_field_of_that_name_needs_quotes_and_the_check_says_so(word: str) -> None:
    [fault] = examined(f"emit(msg.{word});")

    assert fault.suggestion == f'a field of that name is msg["{word}"]'
    assert outcome(f'emit(msg["{word}"]); emit(#{{ "{word}": 1 }});', [{word: 2}]).messages == [
        2,
        {word: 1},
    ]


def notes_of_a_run() -> int:
    """Return how many lines the engine keeps of what a run prints."""
    source = (Path(__file__).parents[2] / "rhai-python" / "src" / "run.rs").read_text()
    [most] = re.findall(r"MOST_NOTES: usize = (\d+)", source)
    return int(most)


def test_the_limits_are_those_that_hold() -> None:
    numbers = {
        row[0]: [float(each) for each in re.findall(r"\d+", row[1])]
        for row in tables("| what | limit |")
    }

    assert numbers == {
        "operations of a run": [OPERATIONS],
        "time of a run": [SECONDS],
        "string": [LIMITS["max_string"]],
        "array": [LIMITS["max_array"]],
        "map": [LIMITS["max_map"]],
        "expressions inside each other": [LIMITS["max_expression_depth"]],
        "functions that call each other": [LIMITS["max_calls"]],
        "values inside each other": [LIMITS["max_nesting"]],
        "what a run emits": [LIMITS["max_emitted"], LIMITS["max_emitted_bytes"]],
        "what a run holds in memory": [LIMITS["max_memory"]],
        "modules": [LIMITS["max_modules"]],
        "different warnings": [host.MOST_WARNINGS],
        "what a run writes to the log": [notes_of_a_run(), failures.MOST_BYTES],
        "what a script writes to the log": [host.MOST_NOTES, host.NOTES_SECONDS],
    }


def test_the_numbers_of_the_text_are_those_that_hold() -> None:
    assert f"{host.MOST_BYTES} bytes, as JSON, under one key" in PAGE
    assert f"at most {LARGEST // 2**20} MiB" in PAGE
    assert SLICE_SECONDS == 0.002
    assert "two milliseconds" in PAGE
