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
