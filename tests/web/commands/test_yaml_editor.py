"""What an editor makes of `headrace schema`: the YAML language server, asked as VS Code asks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.web.commands.cli import printed
from tests.services.yaml_editor import YamlEditor, editing

START = "- id: p\n  inputs:\n    - "
CHAIN = f"{START}{{ type: dummy, duration: 1 }}\n  transforms:\n    - "


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YamlEditor]:
    schema = tmp_path_factory.mktemp("editor") / "headrace.schema.json"
    schema.write_text(printed("config"))
    with editing(schema) as editor:
        yield editor


@pytest.fixture(scope="module")
def editor_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YamlEditor]:
    schema = tmp_path_factory.mktemp("editor") / "headrace-tests.schema.json"
    schema.write_text(printed("tests"))
    with editing(schema) as editor:
        yield editor


@pytest.mark.long
def test_every_kind_is_offered_with_what_it_is(editor: YamlEditor) -> None:
    offered = editor.offered(f"{START}type: |\n")

    assert sorted(offered) == sorted(catalogue().family("input"))
    assert offered["kafka"] == "Read JSON records from a topic, as a member of a consumer group."


def test_the_keys_of_the_kind_that_is_there_are_offered_and_no_others(editor: YamlEditor) -> None:
    offered = editor.offered(f"{CHAIN}type: buffer\n      |\n")

    assert {"size", "seconds", "max_messages", "until"} <= set(offered)
    assert "out_size" not in offered
    assert offered["size"] == "Hand on batches of exactly this many as they fill."


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f"{START}type: dumy\n      duration: 1\n", 3, 'Valid values: "dummy", "http", "kafka"'),
        (f"{START}type: dummy\n      duration: 1\n      ampl: 2\n", 5, "ampl is not allowed"),
        (f"{START}type: dummy\n      duration: soon\n", 4, 'Expected "integer"'),
        (f"{CHAIN}type: splitter\n", 5, 'Missing property "out_size"'),
        (f"{CHAIN}type: map\n      mappings:\n        - type: copi\n", 7, '"copy", "constant"'),
        ("pipelines: []\nstat: {}\n", 2, "stat is not allowed"),
    ],
)
def test_a_mistake_is_told_once_and_where_it_is(
    editor: YamlEditor, text: str, line: int, said: str
) -> None:
    [(at, message)] = editor.faults(text)

    assert at == line
    assert said in message


def test_what_loads_has_no_mistakes(editor: YamlEditor) -> None:
    specs = Path(__file__).parents[3] / "specs"

    for file in sorted(specs.glob("*/config.yaml")):
        assert editor.faults(file.read_text()) == []


TEST = "tests:\n  it works:\n    "


def test_the_keys_of_a_file_of_tests_and_of_a_test_are_offered(editor_of_tests: YamlEditor) -> None:
    of_file = editor_of_tests.offered("|\n")
    of_test = editor_of_tests.offered(f"{TEST}|\n")

    assert {"config", "messages", "start", "tests"} <= {*of_file}
    assert of_file["messages"] == "Names for marbles."
    assert {"given", "expect", "replies", "faults", "until", "frame", "tags", "skip"} <= {*of_test}
    assert of_test["until"].startswith("When everything is ended, as at the stop of a server.")


def test_what_a_test_expects_to_be_said_is_offered(editor_of_tests: YamlEditor) -> None:
    of_expect = editor_of_tests.offered(f"{TEST}expect:\n      |\n")
    of_failure = editor_of_tests.offered(f"{TEST}expect:\n      failures:\n        - |\n")

    assert {"failures", "warnings", "refused"} <= {*of_expect}
    assert of_expect["failures"].startswith("Failures, all of them")
    assert {"at", "says", "times"} <= {*of_failure}
    assert of_failure["says"] == "A part of its text."


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f"{TEST}given: {{}}\n    untill: 5s\n", 4, "untill is not allowed"),
        (f"{TEST}given: 5\n", 3, "Incorrect type"),
        (f"{TEST}expect: {{ failures: [{{ at: p, saying: x }}] }}\n", 3, "saying is not allowed"),
        (f"{TEST}expect: {{ refused: {{ p: many }} }}\n", 3, 'Expected "integer"'),
        ("test: {}\ntests: {}\n", 1, "test is not allowed"),
    ],
)
def test_a_mistake_in_a_file_of_tests_is_told_where_it_is(
    editor_of_tests: YamlEditor, text: str, line: int, said: str
) -> None:
    faults = editor_of_tests.faults(text)

    assert [at for at, message in faults if said in message] == [line], faults


def test_the_tests_of_the_specs_have_no_mistakes(editor_of_tests: YamlEditor) -> None:
    root = Path(__file__).parents[3]

    for file in [
        *sorted(root.glob("specs/*/config.tests.yaml")),
        *root.glob("docs/testing/*.tests.yaml"),
    ]:
        assert editor_of_tests.faults(file.read_text()) == []
